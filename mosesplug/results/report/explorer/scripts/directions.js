// What a slider moves: the weight of a feature, or the factor of several.

import { computeSparseShares, sumColumns } from "./model_scores.js";

/**
 * @typedef {import("./session.js").RunSession} RunSession
 * @typedef {import("./model_scores.js").Weights} Weights
 * @typedef {{name: string, title?: string, range: [number, number], get: (weights: Weights) => number,
 *   set: (weights: Weights, value: number) => Weights,
 *   slopes: () => Float32Array | Float64Array}} Direction
 *   `slopes` are what each hypothesis' model score gains per unit of the value
 */

/** @type {[number, number]} */
const FACTORS = [-1, 3];

/** @param {RunSession} run @param {number} place @returns {Direction} the weight of a feature */
export function followFeature(run, place) {
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
export function followSparse(run) {
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
export function followGroup(run, name, first, end) {
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
