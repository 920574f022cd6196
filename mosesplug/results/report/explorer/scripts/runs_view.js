// Several runs: side by side, their significance, and the sentences in which they differ.

import { describeMissingLists } from "./data.js";
import { button, choice, element, markWords, replaceChildren, table } from "./elements.js";
import { formatCount, formatDifference, formatFixed, formatScore } from "./format.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {import("./session.js").RunSession} RunSession
 */

const MOST = 50;

/**
 * Return the view of several runs.
 * @param {Session} session
 * @param {(run: number, sentence: number) => void} openSentence
 * @returns {{node: HTMLElement, update: () => void}}
 */
export function makeRunsView(session, openSentence) {
  const node = element("section", { class: "runs" });
  const differences = element("div", {});
  const { node: against, select } = choice("Compare the first run with", session.page.runs.slice(1).map((run) => run.name), (place) => {
    session.other = place + 1;
    session.notify();
  });
  replaceChildren(node, listRuns(session), listWeights(session), element("h3", {}, "Sentences that differ"),
    element("div", { class: "tools" }, against), differences);
  function update() {
    const other = session.other;
    select.selectedIndex = other - 1;
    const [first, second] = [session.runs[0], session.runs[other]];
    replaceChildren(differences, first === null || second === null
      ? element("p", { class: "note" }, describeMissingLists(session.page.runs[first === null ? 0 : other]))
      : listDifferences(first, second, other, openSentence));
  }
  return { node, update };
}

/** @param {Session} session */
function listRuns(session) {
  const { runs, comparisons } = session.page;
  const columns = runs.map((run, k) => {
    const scores = run.iterations.map((iteration) => iteration.score);
    const best = run.isRate ? Math.min(...scores) : Math.max(...scores);
    const result = run.points?.[run.points.length - 1].score;
    const tested = k ? comparisons[k - 1] : undefined;
    const isTested = tested !== undefined && tested.reason === undefined;
    return [
      `${run.metric}${run.isRate ? " (less is better)" : ""}`,
      String(run.iterations.length),
      formatScore(scores[0]),
      formatScore(scores[scores.length - 1]),
      formatScore(best),
      result === undefined ? "" : formatScore(result),
      isTested ? formatDifference(tested.difference ?? 0) : "",
      isTested ? `${formatDifference(tested.low ?? 0)} to ${formatDifference(tested.high ?? 0)}` : "",
      isTested ? formatFixed(tested.pBootstrap ?? 0, 4) : "",
      isTested ? formatFixed(tested.pRandomization ?? 0, 4) : "",
    ];
  });
  const names = ["metric", "iterations", "decoded, first iteration", "decoded, last iteration", "decoded, best iteration",
    "result, merged lists", `difference from ${runs[0].name}`, "interval of difference", "p(boot)", "p(AR)"];
  const rows = names.map((name, place) => [name, ...columns.map((column) => column[place])]);
  const reasons = comparisons.flatMap((tested, k) =>
    tested.reason === undefined ? [] : [element("p", { class: "note" }, `${runs[k + 1].name} is not compared: ${tested.reason}.`)]);
  return [
    table([["run", ...runs.map((run) => run.name)], ...rows]),
    ...reasons,
    element("p", { class: "note" },
      "“decoded” scores the decoder's translations of an iteration; “result, merged lists” scores the hypotheses that the weights of the result choose in the run's merged lists. The tests compare these hypotheses as mosesplug compare does: the 95 % interval and p(boot) are from the paired bootstrap (1,000 samples), p(AR) is from approximate randomization (10,000 trials); the seed is 1."),
  ];
}

/** @param {Session} session */
function listWeights(session) {
  const { runs } = session.page;
  const names = [...new Set(runs.flatMap((run) => run.features))];
  const results = runs.map((run) => {
    const point = run.points?.[run.points.length - 1];
    return new Map(run.features.map((name, k) => [name, point?.weights[k]]));
  });
  const rows = names.map((name) => [name, ...results.map((weights) => {
    const weight = weights.get(name);
    return weight === undefined ? "" : formatFixed(weight, 4);
  })]);
  return [element("h3", {}, "Weights of the results"), table([["feature", ...runs.map((run) => run.name)], ...rows])];
}

/**
 * @param {RunSession} first
 * @param {RunSession} second
 * @param {number} place
 * @param {(run: number, sentence: number) => void} openSentence
 */
function listDifferences(first, second, place, openSentence) {
  if (first.lists.nSentences !== second.lists.nSentences) {
    return [element("p", { class: "note" }, "Their tuning sets differ in the number of sentences.")];
  }
  const { sentences } = first.lists;
  const comparable = first.run.signature === second.run.signature;
  const rows = [];
  for (const sentence of sentences) {
    const chosen = [first, second].map((run) => {
      const row = run.present.choice[sentence];
      return {
        text: row < 0 ? "" : run.lists.text(sentence, row),
        score: run.sentenceScores === null || row < 0 ? NaN : run.sentenceScores[row],
      };
    });
    if (chosen[0].text !== chosen[1].text) {
      rows.push({ sentence, chosen, difference: comparable ? chosen[1].score - chosen[0].score : NaN });
    }
  }
  rows.sort((a, b) => Math.abs(b.difference) - Math.abs(a.difference) || a.sentence - b.sentence);
  const hasScores = rows.some((row) => !Number.isNaN(row.difference));
  const header = ["sentence", first.run.name, second.run.name,
    ...(hasScores ? [`${first.run.sentenceMetric} difference`] : [])];
  const body = rows.slice(0, MOST).map(({ sentence, chosen, difference }) => [
    button(first.lists.name(sentence), () => openSentence(place, sentence), { "aria-label": `Open sentence ${first.lists.name(sentence)}` }),
    element("bdi", {}, chosen[0].text),
    element("bdi", {}, markWords(chosen[1].text, chosen[0].text)),
    ...(hasScores ? [Number.isNaN(difference) ? "" : formatDifference(difference)] : []),
  ]);
  const shown = rows.length > MOST ? ` The ${MOST} with the largest differences are listed.` : "";
  return [
    element("p", { class: "note" },
      `${formatCount(rows.length)} of ${formatCount(sentences.length)} sentences differ at the present weights of both runs.${shown} ` +
      `Words that only ${second.run.name} has are underlined, those that only ${first.run.name} has are struck out.`),
    table([header, ...body], { left: 3, sentences: [1, 2] }),
  ];
}
