// Curves over the iterations of all runs of the page.

import { makeChart } from "./chart.js";
import { element, replaceChildren } from "./elements.js";

/**
 * @typedef {import("./session.js").Session} Session
 * @typedef {import("./chart.js").Series} Series
 * @typedef {import("./data.js").RunDocument} RunDocument
 * @typedef {import("./data.js").Iteration} Iteration
 */

const MOST_SHOWN = 8;

/**
 * Return the view of the curves.
 * @param {Session} session
 * @returns {{node: HTMLElement, update: () => void}}
 */
export function makeCurvesView(session) {
  const node = element("section", { class: "curves" });
  let isDrawn = false;
  return {
    node,
    update: () => {
      if (isDrawn) return;
      isDrawn = true;
      const { runs } = session.page;
      replaceChildren(
        node,
        element("p", { class: "note" },
          "Point at a chart, or use the left and right arrow keys, to see values. Drag, or press + and −, to zoom. Gains are those of the decoder's translations over the first iteration, with 95 % intervals (paired bootstrap)."),
        element("div", { class: "charts" },
          makeChart({ title: `Scores: ${metrics(runs)}`, xLabel: "iteration", digits: 4, series: listScores(runs) }),
          ...listWatched(runs),
          runs.some((run) => run.iterations.some((one) => one.gain !== null)) &&
            makeChart({ title: `Gains: ${metrics(runs)}`, xLabel: "iteration", digits: 4, series: collect(runs, "gain", gainOf) }),
          makeChart({ title: "Weights over their L1 norm", xLabel: "iteration", digits: 4, series: listWeights(runs) }),
          makeChart({ title: "Hypotheses", xLabel: "iteration", digits: 0, fromZero: true,
            series: [...collect(runs, "in the lists", (i) => i.hypotheses), ...collect(runs, "new", (i) => i.new)] }),
          // Imported lists have no times.
          runs.some((run) => run.iterations.some((one) => one.decoding + one.optimizing > 0)) &&
            makeChart({ title: "Seconds", xLabel: "iteration", digits: 1, fromZero: true,
              series: [...collect(runs, "decoding", (i) => i.decoding), ...collect(runs, "optimizing", (i) => i.optimizing)] })),
      );
    },
  };
}

/** @param {RunDocument[]} runs */
function metrics(runs) {
  const names = [...new Set(runs.map((run) => run.metric + (run.isRate ? " (less is better)" : "")))];
  return names.join(", ");
}

/** @param {RunDocument[]} runs @returns {Series[]} */
function listScores(runs) {
  const monitors = new Set(runs.flatMap((run) =>
    run.iterations.flatMap((one) => one.monitors.map(([name]) => name))));
  return [
    ...collect(runs, "decoded", (one) => one.score),
    ...collect(runs, "in the lists", (one) => one.optimum),
    ...collect(runs, "oracle", (one) => one.oracle),
    ...collect(runs, "held out", (one) => one.heldOut),
    ...[...monitors].flatMap((name) => collect(runs, name,
      (one) => one.monitors.find(([own]) => own === name)?.[1] ?? null)),
  ];
}

/**
 * Return a chart of each metric that was not optimized.
 * @param {RunDocument[]} runs
 */
function listWatched(runs) {
  const all = runs.flatMap((run) => run.iterations.flatMap((one) => one.watched));
  return [...new Set(all.map(([metric]) => metric))].map((metric) => {
    const texts = new Set(all.filter(([own]) => own === metric).map(([, text]) => text));
    const series = [...texts].flatMap((text) => collect(runs, text, (one) =>
      one.watched.find((own) => own[0] === metric && own[1] === text)?.[2] ?? null));
    return makeChart({ title: `Not optimized: ${metric}`, xLabel: "iteration", digits: 4, series });
  });
}

/** @param {Iteration} iteration */
function gainOf(iteration) {
  const gain = iteration.gain;
  return gain === null ? null : { y: gain[0], low: gain[1], high: gain[2] };
}

/** @param {RunDocument[]} runs @returns {Series[]} */
function listWeights(runs) {
  /** @type {Map<string, number>} the largest absolute weight of each feature, in any run */
  const sizes = new Map();
  const series = runs.flatMap((run) => run.features.map((feature, k) => {
    const points = run.iterations.filter((one) => k < one.weights.length)
      .map((one) => ({ x: one.number, y: one.weights[k] }));
    sizes.set(feature, Math.max(sizes.get(feature) ?? 0, ...points.map(({ y }) => Math.abs(y))));
    return { feature, name: runs.length > 1 ? `${run.name}: ${feature}` : feature, points };
  }));
  // The largest come first: those that are shown have colors of their own.
  return series.sort((a, b) => (sizes.get(b.feature) ?? 0) - (sizes.get(a.feature) ?? 0))
    .map(({ name, points }, k) => ({ name, points, shown: k < MOST_SHOWN }));
}

/**
 * @param {RunDocument[]} runs
 * @param {string} name
 * @param {(iteration: Iteration) => number | null | {y: number, low: number, high: number}} value
 * @returns {Series[]}
 */
function collect(runs, name, value) {
  return runs.map((run) => ({
    name: runs.length > 1 ? `${run.name}: ${name}` : name,
    points: run.iterations.flatMap((iteration) => {
      const own = value(iteration);
      if (own === null) return [];
      return [{ x: iteration.number, ...(typeof own === "number" ? { y: own } : own) }];
    }),
  }));
}
