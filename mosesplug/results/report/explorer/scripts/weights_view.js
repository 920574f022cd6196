// Weights: a slider, a number and the error surface of each feature, and what they choose.

import { describeMissingLists } from "./data.js";
import { button, choice, drawing, element, replaceChildren } from "./elements.js";
import { formatCount, formatDifference, formatScore, formatWeight } from "./format.js";
import { computeSparseShares, sumColumns } from "./model_scores.js";
import { computeSurface, findLengthRatio } from "./scorer.js";
import { parseNumber } from "./state.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {import("./session.js").RunSession} RunSession
 * @typedef {import("./model_scores.js").Weights} Weights
 * @typedef {{name: string, title?: string, range: [number, number], get: (weights: Weights) => number,
 *   set: (weights: Weights, value: number) => Weights,
 *   slopes: () => Float32Array | Float64Array}} Direction
 *   what a slider moves: `slopes` are what each hypothesis' model score gains per unit of the value
 * @typedef {{direction: Direction, node: HTMLElement, slider: HTMLInputElement,
 *   number: HTMLInputElement, curve: SVGElement, low: number, high: number, range: number,
 *   shown: number, isSeen: boolean, drawn: number}} Control
 *   `range` is the version of the ranges that `low` and `high` are of, `shown` the value in its
 *   fields, `drawn` the version of the weights that its curve shows
 */

const MANY = 24;
const CURVE = { width: 240, height: 54 };
const MOST_SPARSE = 50;
const MOST_LISTED = 30;
/** @type {[number, number]} */
const FACTORS = [-1, 3];

/**
 * Return the view of the weights.
 * @param {Session} session
 * @param {(sentence: number) => void} openSentence
 * @returns {{node: HTMLElement, update: () => void}}
 */
export function makeWeightsView(session, openSentence) {
  const node = element("section", { class: "weights" });
  /** @type {RunSession | null} */
  let shown = null;
  let update = () => {};
  return {
    node,
    update: () => {
      const run = session.run;
      if (run !== shown || run === null) {
        shown = run;
        if (run === null) {
          replaceChildren(node, element("p", { class: "note" }, describeMissingLists(session.document)));
          update = () => {};
        } else {
          update = build(node, session, run, openSentence);
        }
      }
      update();
    },
  };
}

/**
 * @param {HTMLElement} node
 * @param {Session} session
 * @param {RunSession} run
 * @param {(sentence: number) => void} openSentence
 * @returns {() => void}
 */
function build(node, session, run, openSentence) {
  const summary = element("div", { class: "summary", role: "status", "aria-live": "polite" });
  const held = describeHeld(run);
  const base = makeBaseChoice(session, run);
  /** @param {Weights} weights */
  const go = (weights) => {
    run.move(weights);
    session.notify();
  };
  const undo = button("Undo", () => {
    run.undo();
    session.notify();
  });
  const points = element(
    "div",
    { class: "buttons", role: "group", "aria-label": "Weights of the run" },
    run.points.map((point, place) =>
      button(point.label, () => go(run.pointWeights(place)), { "data-point": place })),
    listOtherRuns(session, run, go),
    undo,
  );
  const copy = makeCopy(run);
  const controls = makeControls(session, run);
  const changed = element("div", { class: "changed" });
  const isWarning = held.classList.contains("warning");
  replaceChildren(node, summary, isWarning && held, points, element("div", { class: "tools" }, base.node, copy),
    controls.node, changed, !isWarning && held);

  return () => {
    base.select.selectedIndex = run.basePoint;
    undo.toggleAttribute("disabled", run.history.length === 0);
    const present = run.findPoint();
    for (const one of points.querySelectorAll("[data-point]")) {
      one.setAttribute("aria-pressed", String(Number(one.getAttribute("data-point")) === present));
    }
    const sentences = run.listChanged();
    replaceChildren(summary, describeScore(run, sentences.length));
    replaceChildren(changed, listChanged(run, sentences, openSentence));
    controls.update();
  };
}

/**
 * Return the choice of the weights that the present ones are compared with.
 * @param {Session} session
 * @param {RunSession} run
 */
export function makeBaseChoice(session, run) {
  return choice("Compare with", run.points.map((point) => point.label), (place) => {
    run.compareWith(place);
    session.notify();
  }, { "data-role": "base" });
}

/** @param {RunSession} run @param {number} nChanged */
function describeScore(run, nChanged) {
  const { score, totals, choice: rows } = run.present;
  const base = run.points[run.basePoint].label;
  const better = run.run.isRate ? " (less is better)" : "";
  const ratio = findLengthRatio(run.run, totals);
  let words = 0;
  let sentences = 0;
  for (const row of rows) {
    if (row < 0) continue;
    words += run.lists.lengths[row];
    sentences += 1;
  }
  const difference = score === null || run.base.score === null ? null : score - run.base.score;
  /** @type {[string, string, string][]} */
  const facts = [
    score === null
      ? [run.run.metric, "not supported", "This page cannot compute the metric; it shows model scores only."]
      : [`${run.run.metric}${better}`, formatScore(score), "Score of the hypotheses that the present weights choose in the merged lists."],
    difference === null
      ? ["", "", ""]
      : [`change from ${base}`, formatDifference(difference), `Score at the present weights less that at the weights of ${base}.`],
    ratio === null
      ? ["words per sentence", (words / Math.max(1, sentences)).toFixed(2), "Mean length of the hypotheses that the present weights choose."]
      : ["length ratio", ratio.toFixed(4), "Length of the hypotheses that the present weights choose, divided by that of the references."],
    ["changed sentences", `${formatCount(nChanged)} of ${formatCount(run.lists.sentences.length)}`,
      `Sentences in which the present weights and those of ${base} choose different hypotheses.`],
  ];
  return facts.filter(([name]) => name !== "").map(([name, value, title]) =>
    element("div", { title }, element("span", { class: "name" }, name),
      element("output", { "data-fact": name.split(" ")[0] }, value)));
}

/** @param {RunSession} run */
function describeHeld(run) {
  const { held = 0, all = 0, sentences } = run.run;
  const { lists } = run;
  const some = sentences
    ? `The page holds the lists of ${formatCount(lists.sentences.length)} of ${formatCount(lists.nSentences)} ` +
      "sentences, evenly spread (--sentences): its scores are those of these sentences. "
    : "";
  const whole = some + (held === all
    ? `The page holds all ${formatCount(all)} hypotheses of ${sentences ? "these sentences" : "the run"}.`
    : `The page holds ${formatCount(held)} of ${sentences ? "their " : ""}${formatCount(all)} hypotheses: those that win near the ` +
      "weights of the run first, then those with the best ranks.");
  if (run.run.formula === null) return element("p", { class: "note" }, whole);
  const wrong = run.points.filter((point, place) => {
    const score = run.decide(run.pointWeights(place)).score;
    return score === null || formatScore(score) !== formatScore(point.score);
  });
  const same = wrong.length === 0
    ? held < all && "At the weights of all iterations and of the result, their score equals that of all hypotheses."
    : `Their score differs from that of ${sentences ? "all sentences" : "all hypotheses"} at: ${wrong.map((p) => `${p.label} (${formatScore(p.score)} of all)`).join(", ")}.`;
  return element("p", { class: wrong.length ? "warning" : "note", "data-role": "held" }, whole, same && ` ${same}`);
}

/**
 * @param {Session} session
 * @param {RunSession} run
 * @param {(weights: Weights) => void} go
 */
function listOtherRuns(session, run, go) {
  return session.runs.flatMap((other) => {
    if (other === null || other === run) return [];
    if (other.run.features.join("\n") !== run.run.features.join("\n")) return [];
    const dense = other.pointWeights(other.points.length - 1).dense;
    const isDense = run.lists.sparse === null && other.lists.sparse === null;
    return [button(`${isDense ? "" : "dense weights of the "}result of ${other.run.name}`,
      () => go({ ...run.present.weights, dense }))];
  });
}

/** @param {RunSession} run @param {number[]} sentences @param {(sentence: number) => void} open */
function listChanged(run, sentences, open) {
  const head = element("h3", {}, `Changed sentences: ${formatCount(sentences.length)}`);
  const scores = run.sentenceScores;
  if (!sentences.length) {
    return [head, element("p", { class: "note" },
      `The present weights and those of ${run.points[run.basePoint].label} choose the same hypotheses.`)];
  }
  const { present, base } = run;
  const sorted = sentences.map((sentence) => {
    const gain = scores === null ? 0 : scores[present.choice[sentence]] - scores[base.choice[sentence]];
    return { sentence, gain, size: Math.abs(gain) };
  }).sort((a, b) => b.size - a.size || a.sentence - b.sentence);
  const items = sorted.slice(0, MOST_LISTED).map(({ sentence, gain }) => {
    return element("li", {},
      button(run.lists.name(sentence), () => open(sentence), { "aria-label": `Open sentence ${run.lists.name(sentence)}` }),
      scores && element("span", { class: "gain" }, formatDifference(gain)),
      element("bdi", {}, run.lists.text(sentence, present.choice[sentence])));
  });
  const more = sorted.length > MOST_LISTED
    ? element("p", { class: "note" }, `The ${MOST_LISTED} with the largest differences; all are in Sentences, “changed only”.`)
    : null;
  return [head, element("ol", {}, items), more];
}

/** @param {RunSession} run */
function makeCopy(run) {
  const area = /** @type {HTMLTextAreaElement} */ (
    element("textarea", { readonly: true, rows: 6, hidden: true, "aria-label": "Present weights" })
  );
  /** @param {string} text */
  const show = async (text) => {
    area.value = text;
    area.hidden = false;
    area.select();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      document.execCommand("copy");
    }
  };
  return element("div", { class: "copy", role: "group", "aria-label": "Copy the present weights" },
    "Copy as ",
    button("moses.ini", () => show(formatIni(run))),
    button("JSON", () => show(formatJson(run))),
    button("NAME=W", () => show(formatPairs(run))),
    area);
}

/** @param {RunSession} run @returns {[string, number[]][]} the weights of each group */
function groupWeights(run) {
  let at = 0;
  return run.run.groups.map(([name, width]) =>
    [name, [...run.present.weights.dense.slice(at, (at += width))]]);
}

/** @param {RunSession} run @returns {[string, number][]} sparse weights that are not 0 */
function sparseWeights(run) {
  const { sparse, factor } = run.present.weights;
  /** @type {[string, number][]} */
  const pairs = (run.run.sparseNames ?? []).map((name, k) => [name, factor * sparse[k]]);
  return pairs.filter(([, weight]) => weight !== 0);
}

/** @param {RunSession} run */
export function formatIni(run) {
  const lines = groupWeights(run).map(([name, values]) => `${name}= ${values.join(" ")}`);
  const sparse = sparseWeights(run);
  const note = sparse.length
    ? `# ${sparse.length} sparse weights belong into a file of [weight-file]: copy them as JSON\n` : "";
  return `[weight]\n${lines.join("\n")}\n${note}`;
}

/** @param {RunSession} run */
export function formatJson(run) {
  const dense = groupWeights(run).map(([name, values]) => [name, values.length === 1 ? values[0] : values]);
  const sparse = sparseWeights(run);
  const parts = { dense: Object.fromEntries(dense), ...(sparse.length ? { sparse: Object.fromEntries(sparse) } : {}) };
  return `${JSON.stringify(parts, null, 1)}\n`;
}

/** @param {RunSession} run @returns {string} the format `equals`, whose numbers start at 1 */
export function formatPairs(run) {
  const dense = groupWeights(run).flatMap(([name, values]) =>
    values.map((value, k) => `${values.length === 1 ? name : `${name}_${k + 1}`}=${value}`));
  return `${[...dense, ...sparseWeights(run).map(([name, value]) => `${name}=${value}`)].join(" ")}\n`;
}

/**
 * @param {Session} session
 * @param {RunSession} run
 * @returns {{node: HTMLElement, update: () => void}}
 */
function makeControls(session, run) {
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
    const slider = /** @type {HTMLInputElement} */ (element("input", {
      type: "range", step: "any", id, "aria-label": `Weight of ${name}`,
      oninput: () => {
        // Undo returns to where a movement began.
        set(direction, Number(slider.value), !isMoving);
        isMoving = true;
      },
      onchange: () => (isMoving = false),
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
  return { node: element("div", {}, tools, groups), update };
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

/** @param {RunSession} run @param {number} place @returns {Direction} the weight of a feature */
function followFeature(run, place) {
  const sizes = run.points.map((point) => Math.abs(point.weights[place]));
  const reach = Math.max(0.2, 2 * Math.max(...sizes));
  return {
    name: run.run.features[place],
    range: [-reach, reach],
    get: ({ dense }) => dense[place],
    set: (weights, value) => ({ ...weights, dense: weights.dense.with(place, value) }),
    slopes: () => run.lists.features[place],
  };
}

/** @param {RunSession} run @returns {Direction} the factor of all sparse weights */
function followSparse(run) {
  return {
    name: "sparse features (factor)",
    title: "Multiplies all sparse weights.",
    range: FACTORS,
    get: ({ factor }) => factor,
    set: (weights, value) => ({ ...weights, factor: value }),
    slopes: () => computeSparseShares(run.lists, run.present.weights),
  };
}

/**
 * Return the factor of a group's weights; it is 1 again when one of them moves by itself.
 * @param {RunSession} run
 * @param {string} name
 * @param {number} first
 * @param {number} end
 * @returns {Direction}
 */
function followGroup(run, name, first, end) {
  let base = run.present.weights.dense.slice(first, end);
  /** @param {Weights} weights */
  const get = ({ dense }) => {
    const own = dense.subarray(first, end);
    const largest = base.reduce((best, weight, k) => Math.abs(weight) > Math.abs(base[best]) ? k : best, 0);
    const factor = own[largest] / base[largest];
    const error = 1e-12 * Math.abs(own[largest]);
    if (own.every((weight, k) => Math.abs(weight - factor * base[k]) <= error)) return factor;
    base = own.slice();
    return 1;
  };
  return {
    name: `${name} (factor)`,
    title: `Multiplies the ${end - first} weights of ${name}.`,
    range: FACTORS,
    get,
    set: (weights, value) => {
      get(weights);
      const dense = weights.dense.slice();
      base.forEach((weight, k) => (dense[first + k] = value * weight));
      return { ...weights, dense };
    },
    slopes: () => sumColumns(run.lists, first, base),
  };
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
