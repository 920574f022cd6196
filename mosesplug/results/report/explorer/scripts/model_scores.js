// Model scores, and the 1-bests of weights.

/**
 * @typedef {import("./data.js").RunLists} Lists
 * @typedef {{dense: Float64Array, sparse: Float64Array, factor: number}} Weights
 *   `sparse` are the weights of the sparse features, which `factor` multiplies
 */

/**
 * Write `w . h` of every hypothesis.
 * @param {Lists} lists
 * @param {Weights} weights
 * @param {Float64Array} scores output
 */
export function computeModelScores(lists, weights, scores) {
  for (let row = 0; row < scores.length; row++) scores[row] = computeModelScore(lists, weights, row);
}

/**
 * Return `w . h` of a hypothesis; sums run in feature order, so that ties are those of Python.
 * @param {Lists} lists
 * @param {Weights} weights
 * @param {number} row
 * @returns {number}
 */
function computeModelScore({ features, sparse }, weights, row) {
  const { dense } = weights;
  let sum = 0;
  for (let k = 0; k < dense.length; k++) if (dense[k] !== 0) sum += dense[k] * features[k][row];
  return sparse === null ? sum : sum + computeSparseShare(sparse, weights, row);
}

/**
 * Return what the sparse features add to the model score of a hypothesis.
 * @param {NonNullable<Lists["sparse"]>} sparse
 * @param {Weights} weights
 * @param {number} row
 * @returns {number}
 */
export function computeSparseShare({ offsets, columns, values }, { sparse, factor }, row) {
  let sum = 0;
  for (let i = offsets[row]; i < offsets[row + 1]; i++) sum += values[i] * (factor * sparse[columns[i]]);
  return sum;
}

/**
 * Return what each hypothesis adds to its model score per unit of the sparse factor.
 * @param {Lists} lists
 * @param {Weights} weights
 * @returns {Float64Array}
 */
export function computeSparseShares({ n, sparse }, weights) {
  const unit = { ...weights, factor: 1 };
  return Float64Array.from({ length: n }, (_, row) => sparse === null ? 0 : computeSparseShare(sparse, unit, row));
}

/**
 * Return weighted sums of the values of consecutive features.
 * @param {Lists} lists
 * @param {number} first
 * @param {Float64Array} weights
 * @returns {Float64Array}
 */
export function sumColumns(lists, first, weights) {
  const sums = new Float64Array(lists.n);
  weights.forEach((weight, k) => addScaled(weight, lists.features[first + k], sums));
  return sums;
}

/**
 * The 1-bests of weights that move: a moved weight costs the values of its feature only.
 *
 * Scores that are updated have rounding errors. The model scores of hypotheses that tie within a
 * bound on these errors are computed anew, so that the choices are those of `computeModelScores`.
 */
export class Chooser {
  /** @param {Lists} lists */
  constructor(lists) {
    const { n, features, sparse } = lists;
    this._lists = lists;
    this._scores = new Float64Array(n);
    /** @type {Weights} those of the scores */
    this._weights = { dense: new Float64Array(features.length), sparse: new Float64Array(0), factor: 1 };
    /** Bound on the error of each score. */
    this._error = Infinity;
    this._sizes = features.map(findLargest);
    /** The largest number of sparse features of a hypothesis, and their largest value. */
    this._width = 0;
    for (let row = 0; sparse !== null && row < n; row++) {
      this._width = Math.max(this._width, sparse.offsets[row + 1] - sparse.offsets[row]);
    }
    this._sparseSize = sparse === null ? 0 : findLargest(sparse.values);
    /** @type {Float64Array | null} what a sparse factor of 1 adds to each score */
    this._shares = null;
  }

  /**
   * Return the row of each sentence's 1-best, -1 for an empty list; ties go to the first.
   * @param {Weights} weights
   * @returns {Int32Array}
   */
  choose(weights) {
    const { nSentences, offsets } = this._lists;
    this._follow(weights);
    const margin = 2 * (this._error + this._boundError(weights));
    const scores = this._scores;
    const best = new Int32Array(nSentences).fill(-1);
    for (let sentence = 0; sentence < nSentences; sentence++) {
      let highest = -Infinity;
      let second = -Infinity;
      for (let row = offsets[sentence]; row < offsets[sentence + 1]; row++) {
        const score = scores[row];
        if (score > highest) {
          second = highest;
          highest = score;
          best[sentence] = row;
        } else if (score > second) second = score;
      }
      // Without a number, as after an overflow, all are computed anew.
      if (!(second < highest - margin)) best[sentence] = this._settle(weights, sentence, highest - margin);
    }
    return best;
  }

  /**
   * @param {Weights} weights
   * @param {number} sentence
   * @param {number} least of the scores that can be highest
   */
  _settle(weights, sentence, least) {
    const { offsets } = this._lists;
    let best = -1;
    let highest = -Infinity;
    for (let row = offsets[sentence]; row < offsets[sentence + 1]; row++) {
      if (this._scores[row] < least) continue;
      const score = computeModelScore(this._lists, weights, row);
      if (score > highest) {
        highest = score;
        best = row;
      }
    }
    return best;
  }

  /** @param {Weights} weights that the scores become those of */
  _follow(weights) {
    const { features, sparse } = this._lists;
    const old = this._weights;
    this._weights = weights;
    const moved = [...features.keys()].filter((k) => weights.dense[k] !== old.dense[k]);
    const isSameSparse = sparse === null || weights.sparse === old.sparse;
    if (!isSameSparse) this._shares = null;
    const error = this._boundError(weights);
    if (isSameSparse && 2 * moved.length < features.length + 2 && this._error < 1e4 * error) {
      for (const k of moved) addScaled(weights.dense[k] - old.dense[k], features[k], this._scores);
      if (sparse !== null && weights.factor !== old.factor) {
        this._shares ??= computeSparseShares(this._lists, weights);
        addScaled(weights.factor - old.factor, this._shares, this._scores);
      }
      this._error += error + this._boundError(old);
    } else {
      computeModelScores(this._lists, weights, this._scores);
      this._error = error;
    }
  }

  /** @param {Weights} weights @returns {number} a bound on the rounding error of their scores */
  _boundError({ dense, sparse, factor }) {
    let size = Math.abs(factor) * findLargest(sparse) * this._sparseSize * this._width;
    for (let k = 0; k < dense.length; k++) size += Math.abs(dense[k]) * this._sizes[k];
    return size * (dense.length + this._width + 4) * Number.EPSILON;
  }
}

/** @param {Float32Array | Float64Array} values @returns {number} the largest absolute value */
function findLargest(values) {
  let largest = 0;
  for (let k = 0; k < values.length; k++) largest = Math.max(largest, Math.abs(values[k]));
  return largest;
}

/** @param {number} weight @param {Float32Array | Float64Array} column @param {Float64Array} sums in and output */
function addScaled(weight, column, sums) {
  for (let row = 0; row < sums.length; row++) sums[row] += weight * column[row];
}
