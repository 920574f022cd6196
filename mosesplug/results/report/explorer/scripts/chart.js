// Charts of lines: values on hover and by arrow keys, series on and off, zoom by drag, button or key.

import { activate, button, drawing, element, replaceChildren } from "./elements.js";
import { formatTick } from "./format.js";

/**
 * @typedef {{x: number, y: number, low?: number, high?: number}} ChartPoint
 * @typedef {{name: string, points: ChartPoint[], shown?: boolean}} Series
 * @typedef {{title: string, xLabel: string, digits: number, series: Series[],
 *   fromZero?: boolean}} ChartSettings
 */

export const COLORS = [
  "var(--c1)", "var(--c2)", "var(--c3)", "var(--c4)",
  "var(--c5)", "var(--c6)", "var(--c7)", "var(--c8)",
];
const DASHES = ["", "6 3", "2 3", "8 3 2 3"];
const WIDTH = 560;
const HEIGHT = 266;
const LEFT = 62;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 40;
const MANY = 24;

/** @param {number} place @returns {{stroke: string, dash: string}} */
function styleOf(place) {
  return {
    stroke: COLORS[place % COLORS.length],
    dash: DASHES[Math.floor(place / COLORS.length) % DASHES.length],
  };
}

/**
 * Return round numbers between two ends.
 * @param {number} low
 * @param {number} high
 * @param {number} most
 * @returns {number[]}
 */
export function listTicks(low, high, most) {
  const width = (high - low) / most;
  if (!(width > 0)) return [low];
  const power = 10 ** Math.floor(Math.log10(width));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= width * 0.999) ?? 10 * power;
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++) {
    ticks.push(Number((k * step).toPrecision(12)));
  }
  return ticks;
}

/**
 * Return a chart with its legend.
 * @param {ChartSettings} settings
 * @returns {HTMLElement}
 */
export function makeChart(settings) {
  const series = settings.series.filter((one) => one.points.length > 0);
  const shown = series.map((one) => one.shown !== false);
  const xs = [...new Set(series.flatMap((one) => one.points.map((point) => point.x)))].sort((a, b) => a - b);
  /** Places in `xs`: the ends of the shown range, and the value under the cursor. */
  let [from, to] = [0, xs.length - 1];
  let hovered = -1;
  const plot = drawing("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    // Screen readers leave the keys to an application; they read the values below the chart.
    role: "application",
    "aria-roledescription": "chart",
    tabindex: 0,
    class: "chart",
    "aria-label": `${settings.title}. Left and right arrow keys show the values, plus and minus zoom.`,
    onpointermove: (/** @type {PointerEvent} */ event) => move(event),
    // A finger leaves when it is lifted: the values stay.
    onpointerleave: (/** @type {PointerEvent} */ event) => event.pointerType === "mouse" && hover(-1),
    onkeydown: (/** @type {KeyboardEvent} */ event) => press(event),
    onpointerdown: (/** @type {PointerEvent} */ event) => {
      dragged = position(event);
      hover(nearest(dragged));
      plot.setPointerCapture(event.pointerId);
    },
    onpointerup: (/** @type {PointerEvent} */ event) => zoomTo(event),
    onpointercancel: () => release(),
  });
  const values = element("p", { class: "values", "aria-live": "polite" });
  const zoomIn = button("+", () => zoom(0.5), { title: "Zoom in", "aria-label": `Zoom in: ${settings.title}` });
  const zoomOut = button("−", () => zoom(2), { title: "Zoom out", "aria-label": `Zoom out: ${settings.title}` });
  const selection = drawing("rect", { class: "selection", y: TOP, height: HEIGHT - TOP - BOTTOM });
  /** @type {number | null} */
  let dragged = null;

  /** @param {ChartPoint} point */
  const isInside = ({ x }) => x >= xs[from] && x <= xs[to];
  const visible = () => series.flatMap((one, k) => shown[k] ? one.points.filter(isInside) : []);
  /** @param {number} x */
  const toX = (x) =>
    LEFT + ((WIDTH - LEFT - RIGHT) * (to > from ? (x - xs[from]) / (xs[to] - xs[from]) : 0.5));
  /** @param {PointerEvent} event @returns {number} */
  function position(event) {
    const box = plot.getBoundingClientRect();
    const share = (((event.clientX - box.left) / box.width) * WIDTH - LEFT) / (WIDTH - LEFT - RIGHT);
    return xs[from] + Math.min(1, Math.max(0, share)) * (xs[to] - xs[from]);
  }
  /** @param {PointerEvent} event */
  function move(event) {
    const x = position(event);
    if (dragged !== null) {
      const ends = [toX(dragged), toX(x)].sort((a, b) => a - b);
      selection.setAttribute("x", String(ends[0]));
      selection.setAttribute("width", String(ends[1] - ends[0]));
      plot.append(selection);
    }
    hover(nearest(x));
  }
  /** @param {number} x @returns {number} the place of the nearest value */
  function nearest(x) {
    return xs.reduce((best, at, k) => Math.abs(at - x) < Math.abs(xs[best] - x) ? k : best, 0);
  }
  function release() {
    dragged = null;
    selection.remove();
  }
  /** @param {PointerEvent} event */
  function zoomTo(event) {
    if (dragged === null) return;
    const [start, end] = [nearest(dragged), nearest(position(event))].sort((a, b) => a - b);
    release();
    if (start < end) show(start, end);
  }
  /** @param {KeyboardEvent} event */
  function press(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const factors = { "+": 0.5, "-": 2 };
    const factor = factors[/** @type {"+"} */ (event.key)];
    const moves = { ArrowRight: 1, ArrowLeft: -1 };
    const by = moves[/** @type {"ArrowLeft"} */ (event.key)];
    if (factor !== undefined) zoom(factor);
    else if (by !== undefined) step(by);
    else return;
    event.preventDefault();
  }
  /** @param {number} by to the next value; the range moves along */
  function step(by) {
    const start = by > 0 ? from - 1 : to + 1;
    const place = Math.min(xs.length - 1, Math.max(0, (hovered < 0 ? start : hovered) + by));
    const shift = Math.min(0, place - from) + Math.max(0, place - to);
    if (shift) show(from + shift, to + shift);
    hover(place);
  }
  /** @param {number} factor of the width of the range, around the cursor or the middle */
  function zoom(factor) {
    const width = Math.min(xs.length - 1, Math.max(1, Math.round((to - from) * factor)));
    const middle = hovered < 0 ? (from + to) / 2 : hovered;
    const start = Math.min(xs.length - 1 - width, Math.max(0, Math.round(middle - width / 2)));
    show(start, start + width);
  }
  /** @param {number} start @param {number} end */
  function show(start, end) {
    [from, to] = [start, end];
    if (hovered < from || hovered > to) hovered = -1;
    draw();
  }
  /** @param {number} place */
  function hover(place) {
    if (place === hovered) return;
    hovered = place;
    draw();
  }
  function draw() {
    const points = visible();
    const ys = points.flatMap((point) => [point.y, point.low ?? point.y, point.high ?? point.y]);
    let low = Math.min(...ys, ...(settings.fromZero ? [0] : []));
    let high = Math.max(...ys);
    if (!ys.length) [low, high] = [0, 1];
    const margin = (high - low) * 0.05 || Math.abs(high) * 0.05 || 1;
    if (!(settings.fromZero && low === 0)) low -= margin;
    high += margin;
    /** @param {number} y */
    const toY = (y) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - (y - low) / (high - low));
    const yTicks = listTicks(low, high, 5);
    const gap = yTicks.length > 1 ? yTicks[1] - yTicks[0] : 1;
    const digits = Math.max(0, Math.min(6, -Math.floor(Math.log10(gap) + 1e-9)));
    const xTicks = listTicks(xs[from], xs[to], 8).filter(Number.isInteger);
    replaceChildren(
      plot,
      yTicks.map((y) => [
        drawing("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: toY(y), y2: toY(y), class: "grid" }),
        drawing("text", { x: LEFT - 6, y: toY(y) + 4, "text-anchor": "end" }, formatTick(y, digits)),
      ]).flat(),
      xTicks.map((x) =>
        drawing("text", { x: toX(x), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, x)),
      drawing("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 3, "text-anchor": "middle",
        class: "label" }, settings.xLabel),
      hovered >= 0 && drawing("line", { x1: toX(xs[hovered]), x2: toX(xs[hovered]), y1: TOP,
        y2: HEIGHT - BOTTOM, class: "cursor" }),
      series.map((one, k) => (shown[k] ? drawSeries(one, k, toY) : null)),
      dragged !== null && selection,
    );
    activate(zoomIn, to - from > 1);
    activate(zoomOut, to - from < xs.length - 1);
    showValues();
  }
  /** @param {Series} one @param {number} place @param {(y: number) => number} toY */
  function drawSeries(one, place, toY) {
    const { stroke, dash } = styleOf(place);
    const own = one.points.filter(isInside);
    const path = own.map((point, k) => `${k ? "L" : "M"}${toX(point.x)} ${toY(point.y)}`).join("");
    return drawing(
      "g",
      { stroke, fill: "none" },
      own.filter((point) => point.low !== undefined).map((point) =>
        drawing("path", { d: `M${toX(point.x)} ${toY(point.low ?? 0)}V${toY(point.high ?? 0)}`,
          class: "interval" })),
      drawing("path", { d: path, "stroke-dasharray": dash, "stroke-width": 1.8 }),
      own.map((point) =>
        drawing("circle", { cx: toX(point.x), cy: toY(point.y), r: 2.6, fill: stroke })),
    );
  }
  function showValues() {
    if (hovered < 0) {
      replaceChildren(values, "\u00a0");
      return;
    }
    const x = xs[hovered];
    const parts = series.flatMap((one, k) => {
      const point = shown[k] ? one.points.find((other) => other.x === x) : undefined;
      if (point === undefined) return [];
      const interval = point.low === undefined ? "" :
        ` [${formatTick(point.low, settings.digits)}, ${formatTick(point.high ?? 0, settings.digits)}]`;
      return [`${one.name} ${formatTick(point.y, settings.digits)}${interval}`];
    });
    replaceChildren(values, `${settings.xLabel} ${x}: ${parts.join(", ") || "no value"}`);
  }
  const boxes = series.map((_, k) => /** @type {HTMLInputElement} */ (
    element("input", { type: "checkbox", checked: shown[k], onchange: () => {
      shown[k] = boxes[k].checked;
      draw();
    } })
  ));
  const labels = series.map((one, k) => {
    const { stroke, dash } = styleOf(k);
    const sample = drawing("svg", { viewBox: "0 0 22 8", width: 22, height: 8, "aria-hidden": "true" },
      drawing("line", { x1: 0, x2: 22, y1: 4, y2: 4, stroke, "stroke-width": 2,
        "stroke-dasharray": dash }));
    return element("label", {}, boxes[k], sample, one.name);
  });
  const filter = /** @type {HTMLInputElement} */ (element("input", {
    type: "search", placeholder: `${series.length} series`, "aria-label": "Show series whose name contains",
    oninput: () => labels.forEach((label, k) => {
      label.hidden = !series[k].name.toLowerCase().includes(filter.value.toLowerCase());
    }),
  }));
  const none = button("None", () => {
    for (const box of boxes) box.checked = false;
    shown.fill(false);
    draw();
  });
  const legend = element("div", { role: "group", "aria-label": `Series of ${settings.title}` },
    series.length > MANY && element("div", { class: "tools" }, filter, none),
    element("div", { class: "legend" }, labels));
  draw();
  const heading = element("div", { class: "tools" }, element("h3", {}, settings.title),
    xs.length > 2 && element("span", {}, zoomIn, zoomOut));
  return element("section", { class: "plot" }, heading, legend, plot, values);
}
