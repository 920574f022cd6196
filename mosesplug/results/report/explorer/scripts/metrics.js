// Scores of summed statistics: the formulas of mosesplug.metrics, in the same order of operations.

/**
 * @typedef {{beta: number, smooth: number}} ChrfSettings
 * @typedef {{alpha: number, beta: number, gamma: number, exact: number, stem: number}} MeteorSettings
 * @typedef {{kind: string, width: number, parts?: {share: number, formula: Formula}[]}
 *   & Partial<ChrfSettings & MeteorSettings>} Formula
 * @typedef {ArrayLike<number>} Numbers
 */

const ORDER = 4;

/**
 * Return the score of summed statistics; larger is better.
 * @param {Formula} formula
 * @param {Numbers} totals
 * @param {number} [at] where the metric's statistics begin
 * @returns {number}
 */
export function scoreTotals(formula, totals, at = 0) {
  switch (formula.kind) {
    case "bleu":
      return scoreBleu(totals, at);
    case "chrf":
      return scoreChrf(totals, at, formula.width, /** @type {ChrfSettings} */ (formula));
    case "errors":
      return 1 - divide(totals[at], totals[at + 1], totals[at]);
    case "mer": {
      const pairs = totals[at] + totals[at + 1] + totals[at + 2] + totals[at + 3];
      return 1 - divide(pairs - totals[at], pairs, 0);
    }
    case "meteor":
      return scoreMeteor(totals, at, /** @type {MeteorSettings} */ (formula));
    case "per": {
      const right = totals[at] - Math.max(0, totals[at + 1] - totals[at + 2]);
      return divide(right, totals[at + 2], 1 + right);
    }
    case "quotient":
      return divide(totals[at], totals[at + 1], 0);
    case "sum": {
      let sum = 0;
      for (const part of formula.parts ?? []) {
        sum += part.share * scoreTotals(part.formula, totals, at);
        at += part.formula.width;
      }
      return sum;
    }
    case "ter":
      return 1 - divide(totals[at], totals[at + 1], totals[at] > 0 ? 1 : 0);
    default:
      throw new Error(`unknown formula ${formula.kind}`);
  }
}

/**
 * Return the score of one sentence: BLEU+1 (Lin & Och 2004) for BLEU, else the metric.
 * @param {Formula} formula
 * @param {Numbers} statistics
 * @returns {number}
 */
export function scoreSentence(formula, statistics) {
  return formula.kind === "bleu" ? scoreBleuPlusOne(statistics) : scoreTotals(formula, statistics);
}

/**
 * Return output and reference length, if statistics have both.
 * @param {Formula} formula
 * @param {Numbers} totals
 * @param {number} [at]
 * @returns {[number, number] | null}
 */
export function findLengths(formula, totals, at = 0) {
  switch (formula.kind) {
    case "bleu":
      return [totals[at + 1], totals[at + 8]];
    case "chrf":
      return [totals[at + formula.width - 2], totals[at + formula.width - 1]];
    case "mer": {
      const common = totals[at] + totals[at + 1];
      return [common + totals[at + 3], common + totals[at + 2]];
    }
    case "meteor":
      return [totals[at + 3], totals[at + 4]];
    case "per":
      return [totals[at + 1], totals[at + 2]];
    case "sum":
      for (const part of formula.parts ?? []) {
        const lengths = findLengths(part.formula, totals, at);
        if (lengths !== null) return lengths;
        at += part.formula.width;
      }
      return null;
    default:
      return null;
  }
}

/** @param {number} numerator @param {number} denominator @param {number} otherwise */
function divide(numerator, denominator, otherwise) {
  return denominator > 0 ? numerator / denominator : otherwise;
}

/** @param {Numbers} totals @param {number} at */
function scoreBleu(totals, at) {
  const matches = totals[at] * totals[at + 2] * totals[at + 4] * totals[at + 6];
  const ngrams = totals[at + 1] * totals[at + 3] * totals[at + 5] * totals[at + 7];
  if (!(matches > 0 && ngrams > 0)) return 0;
  let score = Math.sqrt(Math.sqrt(matches / ngrams));
  const length = totals[at + 1];
  const reference = totals[at + 8];
  if (reference > length) score *= Math.exp(1 - reference / length);
  return score;
}

/** @param {Numbers} row */
function scoreBleuPlusOne(row) {
  let product = 1;
  for (let order = 0; order < ORDER; order++) {
    const added = order === 0 ? 0 : 1;
    const match = row[2 * order] + added;
    if (!(match > 0)) return 0;
    product *= match / (row[2 * order + 1] + added);
  }
  const score = Math.sqrt(Math.sqrt(product));
  const length = row[1];
  const reference = row[2 * ORDER];
  if (reference <= length) return score;
  return length === 0 ? 0 : score * Math.exp(1 - reference / length);
}

/** @param {Numbers} totals @param {number} at @param {MeteorSettings} settings */
function scoreMeteor(totals, at, { alpha, beta, gamma, exact, stem }) {
  const weighted = exact * totals[at] + stem * totals[at + 1];
  const precision = divide(weighted, totals[at + 3], 0);
  const recall = divide(weighted, totals[at + 4], 0);
  const mean = divide(precision * recall, alpha * precision + (1 - alpha) * recall, 0);
  const fragmentation = divide(totals[at + 2], totals[at] + totals[at + 1], 0);
  return mean * (1 - gamma * fragmentation ** beta);
}

/** @param {Numbers} totals @param {number} at @param {number} width @param {ChrfSettings} settings */
function scoreChrf(totals, at, width, { beta, smooth }) {
  const weight = beta * beta;
  let precision = 0;
  let recall = 0;
  let orders = 0;
  // Orders of characters, then of words; both lengths come last.
  for (let k = at; k < at + width - 2; k += 3) {
    const [match, ours, theirs] = [totals[k], totals[k + 1], totals[k + 2]];
    if (ours > 0 && theirs > 0) {
      precision += (match + smooth) / (ours + smooth);
      recall += (match + smooth) / (theirs + smooth);
      orders += 1;
    }
  }
  if (!(precision > 0 && recall > 0)) return 0;
  precision /= orders;
  recall /= orders;
  return ((1 + weight) * precision * recall) / (weight * precision + recall);
}
