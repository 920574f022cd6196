// Weights: sliders, the weights of the run, the score of the present ones, and what they change.

import { makeCopies } from "./copies.js";
import { describeMissingLists } from "./data.js";
import { button, choice, element, replaceChildren } from "./elements.js";
import { formatCount, formatDifference, formatScore } from "./format.js";
import { findLengthRatio } from "./scorer.js";
import { makeSliders } from "./sliders.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {import("./session.js").RunSession} RunSession
 * @typedef {import("./model_scores.js").Weights} Weights
 */

const MOST_LISTED = 30;

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
  const changed = element("div", { class: "changed" });
  const isWarning = held.classList.contains("warning");
  replaceChildren(node, summary, isWarning && held, points, element("div", { class: "tools" }, base.node, copies),
    sliders.node, changed, !isWarning && held);

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
