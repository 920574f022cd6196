// Weights: sliders, the weights of the run, the score of the present ones, and what they change.

import { makeCopies } from "./copies.js";
import { describeMissingLists } from "./data.js";
import { activate, button, choice, element, markWords, replaceChildren } from "./elements.js";
import { formatCount, formatDifference, formatScore } from "./format.js";
import { findLengthRatio } from "./scorer.js";
import { makeSliders } from "./sliders.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {import("./session.js").RunSession} RunSession
 * @typedef {import("./model_scores.js").Weights} Weights
 */

const MOST_LISTED = 30;
const MOST_KEPT = 1000;

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
  const copies = makeCopies(run);
  const sliders = makeSliders(session, run);
  const changed = makeChangedList(run, openSentence);
  const isWarning = held.classList.contains("warning");
  replaceChildren(node, summary, isWarning && held, points, element("div", { class: "tools" }, base.node, copies),
    sliders.node, changed.node, !isWarning && held);

  return () => {
    base.select.selectedIndex = run.basePoint;
    activate(undo, run.history.length > 0);
    const present = run.findPoint();
    for (const one of points.querySelectorAll("[data-point]")) {
      one.setAttribute("aria-pressed", String(Number(one.getAttribute("data-point")) === present));
    }
    const sentences = run.listChanged();
    replaceChildren(summary, describeScore(run, sentences.length));
    changed.update(sentences);
    sliders.update();
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

/**
 * Return the list of the sentences whose 1-best changes.
 * @param {RunSession} run
 * @param {(sentence: number) => void} open
 * @returns {{node: HTMLElement, update: (sentences: number[]) => void}}
 */
function makeChangedList(run, open) {
  const node = element("div", { class: "changed" });
  const scores = run.sentenceScores;
  /** @type {Map<string, HTMLElement>} items of pairs of hypotheses: most stay while a weight moves */
  const items = new Map();
  /** @param {number} row @param {number} base @param {number} sentence @param {number} gain */
  const render = (row, base, sentence, gain) => {
    const name = run.lists.name(sentence);
    return element("li", {},
      button(name, () => open(sentence), { "aria-label": `Open sentence ${name}` }),
      scores && element("span", { class: "gain" }, formatDifference(gain)),
      element("bdi", {}, markWords(run.lists.text(sentence, row), run.lists.text(sentence, base))));
  };
  /** @param {number[]} sentences */
  function update(sentences) {
    const { choice: rows } = run.present;
    const { choice: bases } = run.base;
    const label = run.points[run.basePoint].label;
    const sorted = sentences.map((sentence) => {
      const gain = scores === null ? 0 : scores[rows[sentence]] - scores[bases[sentence]];
      return { sentence, gain, size: Math.abs(gain) };
    }).sort((a, b) => b.size - a.size || a.sentence - b.sentence);
    if (items.size > MOST_KEPT) items.clear();
    const listed = sorted.slice(0, MOST_LISTED).map(({ sentence, gain }) => {
      const key = `${rows[sentence]} ${bases[sentence]}`;
      const item = items.get(key) ?? render(rows[sentence], bases[sentence], sentence, gain);
      items.set(key, item);
      return item;
    });
    replaceChildren(node,
      element("h3", {}, `Changed sentences: ${formatCount(sentences.length)}`),
      element("p", { class: "note" }, sentences.length === 0
        ? `The present weights and those of ${label} choose the same hypotheses.`
        : `Words that only the present weights choose are underlined, those that only the weights of ${label} choose are struck out.`),
      element("ol", {}, listed),
      sorted.length > MOST_LISTED && element("p", { class: "note" },
        `The ${MOST_LISTED} with the largest differences; all are in Sentences, “changed only”.`));
  }
  return { node, update };
}
