// Charts of lines: values on hover and by arrow keys, series on and off, zoom.

import { drawing, element, button, replaceChildren } from "./elements.js";
import { formatFixed } from "./format.js";

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
const HEIGHT = 260;
const LEFT = 62;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 34;
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
  const all = series.flatMap((one) => one.points.map((point) => point.x));
  const whole = [Math.min(...all), Math.max(...all)];
  let [first, last] = whole;
  let hovered = -1;
  const plot = drawing("svg", {
    viewBox: `0 0 ${WIDTH} ${HEIGHT}`,
    role: "img",
    tabindex: 0,
    class: "chart",
    "aria-label": `${settings.title}. Arrow keys show the values.`,
    onpointermove: (/** @type {PointerEvent} */ event) => hover(nearest(event)),
    onpointerleave: () => hover(-1),
    onkeydown: (/** @type {KeyboardEvent} */ event) => step(event),
    onpointerdown: (/** @type {PointerEvent} */ event) => (dragged = position(event)),
    onpointerup: (/** @type {PointerEvent} */ event) => zoom(event),
  });
  const values = element("p", { class: "values", "aria-live": "polite" });
  const reset = button("Whole range", () => show(whole[0], whole[1]), { hidden: true });
  /** @type {number | null} */
  let dragged = null;

  const xs = () =>
    [...new Set(all)].filter((x) => x >= first && x <= last).sort((a, b) => a - b);
  const visible = () =>
    series.flatMap((one, k) =>
      shown[k] ? one.points.filter((point) => point.x >= first && point.x <= last) : [],
    );
  /** @param {number} x */
  const toX = (x) =>
    LEFT + ((WIDTH - LEFT - RIGHT) * (last > first ? (x - first) / (last - first) : 0.5));
  /** @param {PointerEvent} event @returns {number} */
  function position(event) {
    const box = plot.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * WIDTH;
    return first + ((x - LEFT) / (WIDTH - LEFT - RIGHT)) * (last - first);
  }
  /** @param {PointerEvent} event @returns {number} place among the values of x */
  function nearest(event) {
    const x = position(event);
    const places = xs();
    return places.reduce((best, at, k) =>
      Math.abs(at - x) < Math.abs(places[best] - x) ? k : best, 0);
  }
  /** @param {KeyboardEvent} event */
  function step(event) {
    const count = xs().length;
    const moves = { ArrowRight: 1, ArrowLeft: -1 };
    const move = moves[/** @type {"ArrowLeft"} */ (event.key)];
    if (move === undefined) return;
    event.preventDefault();
    hover(Math.min(count - 1, Math.max(0, hovered < 0 ? (move > 0 ? 0 : count - 1) : hovered + move)));
  }
  /** @param {PointerEvent} event */
  function zoom(event) {
    if (dragged === null) return;
    const ends = [dragged, position(event)].sort((a, b) => a - b);
    dragged = null;
    const inside = xs().filter((x) => x >= ends[0] && x <= ends[1]);
    if (inside.length >= 2 && inside.length < xs().length) show(inside[0], inside[inside.length - 1]);
  }
  /** @param {number} low @param {number} high */
  function show(low, high) {
    [first, last] = [low, high];
    reset.hidden = first === whole[0] && last === whole[1];
    hovered = -1;
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
    const xTicks = listTicks(first, last, 8).filter(Number.isInteger);
    replaceChildren(
      plot,
      yTicks.map((y) => [
        drawing("line", { x1: LEFT, x2: WIDTH - RIGHT, y1: toY(y), y2: toY(y), class: "grid" }),
        drawing("text", { x: LEFT - 6, y: toY(y) + 4, "text-anchor": "end" }, formatFixed(y, digits)),
      ]).flat(),
      xTicks.map((x) =>
        drawing("text", { x: toX(x), y: HEIGHT - BOTTOM + 16, "text-anchor": "middle" }, x)),
      drawing("text", { x: (LEFT + WIDTH - RIGHT) / 2, y: HEIGHT - 3, "text-anchor": "middle",
        class: "label" }, settings.xLabel),
      hovered >= 0 && drawing("line", { x1: toX(xs()[hovered]), x2: toX(xs()[hovered]), y1: TOP,
        y2: HEIGHT - BOTTOM, class: "cursor" }),
      series.map((one, k) => (shown[k] ? drawSeries(one, k, toY) : null)),
    );
    showValues();
  }
  /** @param {Series} one @param {number} place @param {(y: number) => number} toY */
  function drawSeries(one, place, toY) {
    const { stroke, dash } = styleOf(place);
    const own = one.points.filter((point) => point.x >= first && point.x <= last);
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
    const x = hovered < 0 ? undefined : xs()[hovered];
    if (x === undefined) {
      replaceChildren(values, "\u00a0");
      return;
    }
    const parts = series.flatMap((one, k) => {
      const point = shown[k] ? one.points.find((other) => other.x === x) : undefined;
      if (point === undefined) return [];
      const interval = point.low === undefined ? "" :
        ` [${formatFixed(point.low, settings.digits)}, ${formatFixed(point.high ?? 0, settings.digits)}]`;
      return [`${one.name} ${formatFixed(point.y, settings.digits)}${interval}`];
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
    element("div", { class: "legend" }, labels, reset));
  draw();
  return element("section", { class: "plot" }, element("h3", {}, settings.title), legend, plot, values);
}
