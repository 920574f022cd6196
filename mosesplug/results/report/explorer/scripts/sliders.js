// A slider, a number and the error surface of each feature; groups, order and search of many.

import { followFeature, followGroup, followSparse } from "./directions.js";
import { button, choice, drawing, element, replaceChildren } from "./elements.js";
import { formatCount, formatScore, formatWeight } from "./format.js";
import { computeSurface } from "./scorer.js";
import { parseNumber } from "./state.js";

/**
 * @typedef {import("./directions.js").Direction} Direction
 * @typedef {import("./session.js").Session} Session
 * @typedef {import("./session.js").RunSession} RunSession
 * @typedef {import("./model_scores.js").Weights} Weights
 * @typedef {{direction: Direction, node: HTMLElement, slider: HTMLInputElement,
 *   number: HTMLInputElement, curve: SVGElement, low: number, high: number, range: number,
 *   shown: number, isSeen: boolean, drawn: number}} Control
 *   `range` is the version of the ranges that `low` and `high` are of, `shown` the value in its
 *   fields, `drawn` the version of the weights that its curve shows
 */

const MANY = 24;
const CURVE = { width: 240, height: 54 };
const MOST_SPARSE = 50;

/**
 * @param {Session} session
 * @param {RunSession} run
 * @returns {{node: HTMLElement, update: () => void}}
 */
export function makeSliders(session, run) {
  const nDense = run.run.features.length;
  let zoom = 1;
  let ranges = 1;
  let pending = 0;
  /** @type {Control[]} */
  const controls = [];
  const groups = element("div", { class: "features" });

  /** @param {Direction} direction @returns {Control} */
  const add = (direction) => {
    const { name, title } = direction;
    const id = `w${controls.length}`;
    let isMoving = false;
    /** @type {Weights | null} before a press */
    let pressed = null;
    const slider = /** @type {HTMLInputElement} */ (element("input", {
      type: "range", step: "any", id, "aria-label": `Weight of ${name}`,
      oninput: () => {
        // Undo returns to where a movement began.
        set(direction, Number(slider.value), !isMoving);
        isMoving = true;
      },
      onchange: () => (isMoving = false),
      onpointerdown: () => (pressed = run.present.weights),
      // A finger that scrolls the page moves the slider first.
      onpointercancel: () => {
        if (run.history.at(-1) !== pressed) return;
        isMoving = false;
        waiting = null;
        run.undo();
        session.notify();
      },
    }));
    const number = /** @type {HTMLInputElement} */ (element("input", {
      type: "text", inputmode: "decimal", "aria-label": `Weight of ${name}, a number`,
      onchange: () => {
        const value = parseNumber(number.value);
        if (value !== null) set(direction, value, true);
        else number.value = formatWeight(direction.get(run.present.weights));
      },
    }));
    const curve = drawing("svg", {
      viewBox: `0 0 ${CURVE.width} ${CURVE.height}`, class: "surface", preserveAspectRatio: "none",
      "aria-hidden": "true",
      onclick: (/** @type {MouseEvent} */ event) => {
        const box = curve.getBoundingClientRect();
        const share = (event.clientX - box.left) / box.width;
        set(direction, control.low + share * (control.high - control.low), true);
      },
    });
    const node = element("div", { class: title === undefined ? "feature" : "feature factor", title },
      element("label", { for: id }, name), number, slider, curve);
    /** @type {Control} */
    const control = { direction, node, slider, number, curve, low: 0, high: 0, range: 0, shown: NaN, isSeen: false, drawn: 0 };
    controls.push(control);
    return control;
  };
  run.run.features.forEach((_, place) => add(followFeature(run, place)));
  const factor = run.lists.sparse === null ? null : add(followSparse(run));
  let at = 0;
  const members = run.run.groups.map(([name, width]) => {
    const [first, end] = [at, (at += width)];
    return { name, controls: controls.slice(first, end),
      factor: width > 1 ? add(followGroup(run, name, first, end)) : null };
  });

  const sparseList = run.lists.sparse === null ? null : listSparse(run);
  /** @param {number} place @returns {number} absolute weight times spread */
  const influence = (place) => Math.abs(run.present.weights.dense[place]) * run.run.spreads[place];
  /** @param {number} place @returns {number} absolute difference from the base weight, times spread */
  const change = (place) =>
    Math.abs(run.present.weights.dense[place] - run.base.weights.dense[place]) * run.run.spreads[place];
  const orders = [
    { label: "groups", of: null },
    { label: "influence", of: influence },
    { label: "change", of: change },
  ];
  /** @param {((place: number) => number) | null} size the largest first; null: groups of the model */
  function arrange(size) {
    groups.classList.toggle("sorted", size !== null);
    if (size === null) replaceChildren(groups, members.map((group) => groupControls(group, nDense)));
    else {
      const sizes = run.run.features.map((_, place) => size(place));
      const sorted = [...sizes.keys()].sort((a, b) => sizes[b] - sizes[a] || a - b);
      replaceChildren(groups, sorted.map((place) => controls[place].node));
    }
    if (factor !== null && sparseList !== null) groups.append(factor.node, sparseList);
    search();
  }
  const { node: order } = choice("Order", orders.map(({ label }) => label), (place) =>
    arrange(orders[place].of), { "data-role": "order", title: "Influence is the absolute weight times the spread of " +
      "the feature's values in a list; change is the absolute difference from the weights to compare with, times the spread." });
  const filter = /** @type {HTMLInputElement} */ (element("input", {
    type: "search", placeholder: "Feature", "aria-label": "Show features whose name contains", oninput: () => search(),
  }));
  function search() {
    const wanted = filter.value.toLowerCase();
    for (const { node, direction } of controls) node.hidden = !direction.name.toLowerCase().includes(wanted);
    for (const group of groups.querySelectorAll("details.group")) {
      const hasMatch = group.querySelector(".feature:not([hidden])") !== null;
      group.toggleAttribute("hidden", !hasMatch);
      if (wanted !== "" && hasMatch) group.setAttribute("open", "");
    }
  }
  arrange(null);
  /** @param {number} by 0: the first range */
  const rescale = (by) => {
    zoom = by === 0 ? 1 : zoom * by;
    ranges += 1;
    update();
  };
  const tools = element("div", { class: "tools features-tools" },
    controls.length > 8 && [filter, order],
    element("span", { role: "group", "aria-label": "Range of the sliders" }, "Range ",
      button("narrower", () => rescale(0.5)), button("wider", () => rescale(2)), button("reset", () => rescale(0))));

  /** @param {Direction} direction @param {number} value @param {boolean} remember */
  function set(direction, value, remember) {
    if (remember) run.remember();
    waiting = direction.set(waiting ?? run.present.weights, value);
    // One frame shows the last of several moves.
    if (!pending) pending = requestAnimationFrame(apply);
  }
  /** @type {Weights | null} */
  let waiting = null;
  function apply() {
    pending = 0;
    if (waiting !== null) run.move(waiting, false);
    waiting = null;
    session.notify();
  }

  let version = 0;
  function update() {
    version += 1;
    for (const control of controls) {
      const value = control.direction.get(run.present.weights);
      if (control.shown === value && control.range === ranges) continue;
      // The range stays while the value moves within it: a slider must not move under the hand.
      if (control.range !== ranges) {
        const [low, high] = control.direction.range;
        const half = ((high - low) / 2) * zoom;
        const middle = zoom === 1 ? (high + low) / 2 : value;
        [control.low, control.high] = [middle - half, middle + half];
      }
      [control.shown, control.range] = [value, ranges];
      control.low = Math.min(control.low, value);
      control.high = Math.max(control.high, value);
      control.slider.min = String(control.low);
      control.slider.max = String(control.high);
      control.slider.value = String(value);
      control.slider.setAttribute("aria-valuetext", formatWeight(value));
      if (document.activeElement !== control.number || parseNumber(control.number.value) !== value) {
        control.number.value = formatWeight(value);
      }
      control.number.title = String(value);
      moveMark(control, value);
    }
    schedule();
  }

  let timer = 0;
  /** Draw the surfaces on the screen one by one, so that a slider never waits for them. */
  function schedule() {
    clearTimeout(timer);
    const next = () => {
      const control = controls.find(({ isSeen, drawn }) => isSeen && drawn !== version);
      if (control === undefined) return;
      control.drawn = version;
      drawSurface(run, control);
      timer = setTimeout(next);
    };
    timer = setTimeout(next, 150);
  }
  const watcher = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const control = controls.find(({ node }) => node === target);
      if (control !== undefined) control.isSeen = isIntersecting;
    }
    schedule();
  }, { rootMargin: "200px" });
  for (const { node } of controls) watcher.observe(node);
  const note = run.run.formula !== null && element("p", { class: "note" },
    `A curve shows ${run.run.metric} as one weight changes and all others stay. The red line is the present weight, ` +
    "the gray line 0; a click on the curve moves the weight there.");
  return { node: element("div", {}, tools, note, groups), update };
}

/**
 * Return the controls of a group of the model; among many features, it can be closed.
 * @param {{name: string, controls: Control[], factor: Control | null}} group
 * @param {number} nDense
 * @returns {HTMLElement}
 */
function groupControls({ name, controls, factor }, nDense) {
  const nodes = controls.map((control) => control.node);
  return element("div", { class: "group" }, factor && factor.node,
    nDense > MANY && factor !== null
      ? element("details", { class: "group", open: nDense <= 2 * MANY },
        element("summary", {}, `${name} (${nodes.length})`), nodes)
      : nodes);
}

/** @param {Control} control @param {number} value */
function moveMark(control, value) {
  const mark = control.curve.querySelector(".mark");
  if (mark === null) return;
  const x = (CURVE.width * (value - control.low)) / (control.high - control.low);
  mark.setAttribute("x1", String(x));
  mark.setAttribute("x2", String(x));
}

/** @param {RunSession} run @param {Control} control */
function drawSurface(run, control) {
  if (run.run.formula === null) return;
  const { weights, scores, choice: rows, totals } = run.present;
  const { name, get, slopes } = control.direction;
  const value = get(weights);
  const { ends, scores: heights } = computeSurface(run.lists,
    { slopes: slopes(), scores, choice: rows, totals, at: value, low: control.low, high: control.high });
  let least = Math.min(...heights);
  let most = Math.max(...heights);
  const margin = Math.max((most - least) * 0.1, 0.002);
  least -= margin;
  most += margin;
  /** @param {number} x */
  const toX = (x) => ((x - control.low) / (control.high - control.low)) * CURVE.width;
  /** @param {number} y */
  const toY = (y) => CURVE.height * (1 - (y - least) / (most - least));
  let path = `M0 ${toY(heights[0]).toFixed(1)}`;
  heights.forEach((height, k) => {
    path += `V${toY(height).toFixed(1)}H${toX(ends[k + 1]).toFixed(1)}`;
  });
  const best = run.run.isRate ? Math.min(...heights) : Math.max(...heights);
  const place = heights.indexOf(best);
  const middle = (ends[place] + ends[place + 1]) / 2;
  const text = `Best ${run.run.metric} along ${name}: ${formatScore(best)} at ${formatWeight(middle)}.`;
  control.slider.setAttribute("aria-description", text);
  const x = toX(value);
  replaceChildren(control.curve,
    drawing("title", {}, `${text} Click to move to a value.`),
    drawing("line", { class: "zero", x1: toX(0), x2: toX(0), y1: 0, y2: CURVE.height }),
    drawing("path", { d: path, class: "line" }),
    drawing("line", { class: "mark", x1: x, x2: x, y1: 0, y2: CURVE.height }));
}

/** @param {RunSession} run */
function listSparse(run) {
  const names = run.run.sparseNames ?? [];
  const list = element("ul", { class: "sparse" });
  const search = /** @type {HTMLInputElement} */ (element("input", {
    type: "search", placeholder: "Sparse feature", "aria-label": "Search sparse features", oninput: () => show(),
  }));
  function show() {
    const { sparse, factor } = run.present.weights;
    const wanted = search.value.toLowerCase();
    const matching = names.map((name, k) => /** @type {[string, number]} */ ([name, factor * sparse[k]]))
      .filter(([name, weight]) => weight !== 0 && name.toLowerCase().includes(wanted))
      .sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]));
    replaceChildren(list, matching.slice(0, MOST_SPARSE).map(([name, weight]) =>
      element("li", {}, element("bdi", {}, name), ` ${formatWeight(weight)}`)),
      matching.length > MOST_SPARSE && element("li", {}, `${formatCount(matching.length - MOST_SPARSE)} more`));
  }
  const details = element("details", { ontoggle: show }, element("summary", {}, `${formatCount(names.length)} sparse weights`), search, list);
  return details;
}
