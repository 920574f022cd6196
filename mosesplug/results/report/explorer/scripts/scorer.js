// Statistics, scores, and error surfaces of chosen hypotheses.

import { findLengths, scoreSentence, scoreTotals } from "./metrics.js";

/**
 * @typedef {import("./data.js").RunLists} Lists
 * @typedef {{ends: Float64Array, scores: Float64Array}} Surface
 *   `ends` of the intervals with equal score, ascending, one more than `scores`
 */

/**
 * Return the row of each sentence's 1-best, -1 for an empty list; ties go to the first.
 * @param {Lists} lists
 * @param {Float64Array} scores
 * @returns {Int32Array}
 */
export function findFirstBest(lists, scores) {
  const best = new Int32Array(lists.nSentences).fill(-1);
  for (let sentence = 0; sentence < best.length; sentence++) {
    let highest = -Infinity;
    for (let row = lists.offsets[sentence]; row < lists.offsets[sentence + 1]; row++) {
      if (scores[row] > highest) {
        highest = scores[row];
        best[sentence] = row;
      }
    }
  }
  return best;
}

/**
 * Return the weighted sum of the statistics of chosen rows.
 * @param {Lists} lists
 * @param {Int32Array} choice of each sentence
 * @returns {Float64Array}
 */
export function sumStatistics(lists, choice) {
  return Float64Array.from(lists.stats, (column) => {
    let sum = 0;
    for (let sentence = 0; sentence < choice.length; sentence++) {
      const row = choice[sentence];
      if (row >= 0) sum += weigh(lists, sentence) * column[row];
    }
    return sum;
  });
}

/** @param {Lists} lists @param {number} sentence */
function weigh(lists, sentence) {
  return lists.sentenceWeights?.[sentence] ?? 1;
}

/**
 * Return a corpus score as people read it: of an error rate, the rate.
 * @param {import("./data.js").RunDocument} run
 * @param {Float64Array} totals
 * @returns {number | null} null if scripts cannot compute the metric
 */
export function scoreCorpus(run, totals) {
  if (run.formula === null) return null;
  const score = scoreTotals(run.formula, totals);
  return run.isRate ? 1 - score : score;
}

/**
 * Return output length over reference length; null if the statistics do not have both.
 * @param {import("./data.js").RunDocument} run
 * @param {Float64Array} totals
 * @returns {number | null}
 */
export function findLengthRatio(run, totals) {
  const lengths = run.formula === null ? null : findLengths(run.formula, totals);
  return lengths === null || lengths[1] === 0 ? null : lengths[0] / lengths[1];
}

/**
 * Return the sentence score of each hypothesis; larger is better. Null: not computable.
 * @param {Lists} lists
 * @returns {Float64Array | null}
 */
export function scoreHypotheses(lists) {
  const formula = lists.run.formula;
  if (formula === null) return null;
  const scores = new Float64Array(lists.n);
  const row = new Float64Array(lists.stats.length);
  for (let i = 0; i < lists.n; i++) {
    for (let k = 0; k < row.length; k++) row[k] = lists.stats[k][i];
    scores[i] = scoreSentence(formula, row);
  }
  return scores;
}

/**
 * Return the row of each sentence with the highest value, -1 for an empty list.
 * @param {Lists} lists
 * @param {number} sentence
 * @param {(row: number) => number} value
 * @param {Float64Array} model the higher model score wins ties, then the first row
 * @returns {number}
 */
export function findHighest(lists, sentence, value, model) {
  let best = -1;
  let highest = -Infinity;
  for (let row = lists.offsets[sentence]; row < lists.offsets[sentence + 1]; row++) {
    const own = value(row);
    if (own > highest || (own === highest && best >= 0 && model[row] > model[best])) {
      highest = own;
      best = row;
    }
  }
  return best;
}

/**
 * Return the corpus score along one direction, through the present weights (Och 2003).
 *
 * The envelope of each sentence is followed from its present 1-best to `low` and to `high`.
 * @param {Lists} lists
 * @param {{slopes: Float32Array | Float64Array, scores: Float64Array, choice: Int32Array,
 *   totals: Float64Array, at: number, low: number, high: number}} line `at` is the present value of
 *   the weight, `low` and `high` are the ends
 * @returns {Surface}
 */
export function computeSurface(lists, line) {
  const { slopes, scores, choice, totals, at, low, high } = line;
  /** @type {number[]} */
  const places = [];
  /** @type {number[]} */
  const from = [];
  /** @type {number[]} */
  const to = [];
  /** @type {number[]} */
  const sides = [];
  /** @type {number[]} */
  const counts = [];
  for (let sentence = 0; sentence < choice.length; sentence++) {
    if (choice[sentence] < 0) continue;
    const start = lists.offsets[sentence];
    const end = lists.offsets[sentence + 1];
    for (const side of [1, -1]) {
      const reach = side === 1 ? high - at : at - low;
      let row = choice[sentence];
      for (;;) {
        let nearest = Infinity;
        let next = -1;
        for (let other = start; other < end; other++) {
          const steeper = side * (slopes[other] - slopes[row]);
          if (steeper > 0) {
            const step = (scores[row] - scores[other]) / steeper;
            const isSteeper = next >= 0 && side * (slopes[other] - slopes[next]) > 0;
            if (step < nearest || (step === nearest && isSteeper)) {
              nearest = step;
              next = other;
            }
          }
        }
        if (next < 0 || nearest > reach) break;
        places.push(at + side * Math.max(nearest, 0));
        from.push(side === 1 ? row : next);
        to.push(side === 1 ? next : row);
        sides.push(side);
        counts.push(weigh(lists, sentence));
        row = next;
      }
    }
  }
  return scoreAlong(lists, { places, from, to, sides, counts, totals, low, high });
}

/**
 * @param {Lists} lists
 * @param {{places: number[], from: number[], to: number[], sides: number[],
 *   counts: number[], totals: Float64Array, low: number, high: number}} events rows that replace
 *   others, from left to right; `sides` of the present weight, `counts` of the sentences
 * @returns {Surface}
 */
function scoreAlong(lists, { places, from, to, sides, counts, totals, low, high }) {
  const order = Uint32Array.from(places.keys()).sort((a, b) => places[a] - places[b]);
  const sums = Float64Array.from(totals);
  /** @param {number} event @param {number} sign */
  const apply = (event, sign) => {
    for (let k = 0; k < sums.length; k++) {
      sums[k] += sign * counts[event] * (lists.stats[k][to[event]] - lists.stats[k][from[event]]);
    }
  };
  // Undo what happens left of the present weight, to begin at the left end.
  for (const event of order) if (sides[event] < 0) apply(event, -1);
  const ends = [low];
  const scores = [scoreCorpus(lists.run, sums) ?? NaN];
  for (const event of order) {
    apply(event, 1);
    const score = scoreCorpus(lists.run, sums) ?? NaN;
    if (places[event] <= ends[ends.length - 1]) {
      scores[scores.length - 1] = score;
    } else if (score !== scores[scores.length - 1]) {
      ends.push(places[event]);
      scores.push(score);
    }
  }
  ends.push(high);
  return { ends: Float64Array.from(ends), scores: Float64Array.from(scores) };
}
