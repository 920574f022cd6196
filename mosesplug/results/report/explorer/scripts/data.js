// The data of the page: arrays are deflated, with bytes of the same significance together.

import { escapeControls } from "./format.js";

/**
 * @typedef {{type: string, length: number, data: string}} Packed
 * @typedef {Uint8Array | Uint16Array | Uint32Array | Int32Array | Float32Array | Float64Array} Typed
 * @typedef {{label: string, weights: number[], sparse: number[],
 *   score: number}} Point
 * @typedef {{number: number, score: number, optimum: number | null, oracle: number | null,
 *   heldOut: number | null, monitors: [string, number][],
 *   watched: [string, string, number | null][], hypotheses: number, new: number,
 *   decoding: number, optimizing: number, weights: number[],
 *   gain: [number, number, number] | null}} Iteration
 * @typedef {{name: string, metric: string, signature: string, sentenceMetric: string,
 *   isRate: boolean, formula: import("./metrics.js").Formula | null, nSentences: number,
 *   ids: string[], features: string[], spreads: number[], groups: [string, number][], iterations: Iteration[],
 *   whereListsAre: string,
 *   all?: number, held?: number, sentences?: number[] | null, points?: Point[], sparseNames?: string[],
 *   arrays?: Record<string, Packed>, texts?: Record<string, Packed>}} RunDocument
 * @typedef {{reason?: string, difference?: number, low?: number, high?: number,
 *   pBootstrap?: number, pRandomization?: number}} Comparison
 * @typedef {{runs: RunDocument[], comparisons: Comparison[]}} PageDocument
 */

/** @type {Record<string, any>} */
const TYPES = {
  Uint8: Uint8Array,
  Uint16: Uint16Array,
  Uint32: Uint32Array,
  Int32: Int32Array,
  Float32: Float32Array,
  Float64: Float64Array,
};

const LINE_END = 10;
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

/**
 * Return the array that a text holds.
 * @param {Packed} packed
 * @returns {Promise<any>} a typed array
 */
export async function unpack(packed) {
  const binary = atob(packed.data);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const planes = new Uint8Array(await new Response(stream).arrayBuffer());
  const Type = TYPES[packed.type];
  const size = Type.BYTES_PER_ELEMENT;
  if (size === 1) return planes;
  const n = packed.length;
  const whole = new Uint8Array(n * size);
  for (let plane = 0; plane < size; plane++) {
    for (let i = 0, from = plane * n, to = plane; i < n; i++, from++, to += size) {
      whole[to] = planes[from];
    }
  }
  return new Type(whole.buffer);
}

/** The hypotheses of a run that the page holds. */
export class RunLists {
  /** @param {RunDocument} run @param {Record<string, any>} arrays @param {Record<string, any>} texts */
  constructor(run, arrays, texts) {
    this.run = run;
    /** @type {Uint32Array} */
    this.offsets = arrays.offsets;
    this.n = this.offsets[this.offsets.length - 1];
    this.nSentences = this.offsets.length - 1;
    /** The sentences whose lists the page holds. */
    this.sentences = run.sentences ?? Array.from({ length: this.nSentences }, (_, k) => k);
    const n = this.n;
    /** @type {Float32Array[]} */
    this.features = run.features.map((_, k) => arrays.features.subarray(k * n, (k + 1) * n));
    const nStats = n ? arrays.stats.length / n : 0;
    /** @type {(Int32Array | Float64Array)[]} */
    this.stats = Array.from({ length: nStats }, (_, k) => arrays.stats.subarray(k * n, (k + 1) * n));
    /** @type {Float64Array | null} how often each sentence counts; null: once */
    this.sentenceWeights = arrays.sentenceWeights ?? null;
    /** @type {Int32Array} */
    this.lengths = arrays.lengths;
    /** @type {Uint16Array[]} */
    this.ranks = run.iterations.map((_, k) => arrays.ranks.subarray(k * n, (k + 1) * n));
    /** @type {{offsets: Uint32Array, columns: Uint32Array, values: Float32Array} | null} */
    this.sparse = arrays.sparseOffsets
      ? {
          offsets: arrays.sparseOffsets,
          columns: arrays.sparseColumns,
          values: arrays.sparseValues,
        }
      : null;
    /** @type {Uint8Array} */
    this._texts = arrays.texts;
    /** @type {Uint32Array} */
    this._textOffsets = arrays.textOffsets;
    this.sources = "source" in texts ? splitLines(texts.source) : null;
    /** @type {string[][]} */
    this.references = Object.keys(texts)
      .filter((key) => key.startsWith("reference"))
      .map((key) => splitLines(texts[key]));
  }

  /**
   * Read the lists of a run; null if the page does not have them.
   * @param {RunDocument} run
   * @returns {Promise<RunLists | null>}
   */
  static async read(run) {
    if (run.arrays === undefined) return null;
    const [arrays, texts] = await Promise.all([unpackAll(run.arrays), unpackAll(run.texts ?? {})]);
    return new RunLists(run, arrays, texts);
  }

  /** @param {number} sentence @returns {string[]} the texts of its hypotheses, by row */
  texts(sentence) {
    if (this.offsets[sentence] === this.offsets[sentence + 1]) return [];
    const bytes = this._texts.subarray(this._textOffsets[sentence], this._textOffsets[sentence + 1]);
    return decoder.decode(bytes).split("\n").map(escapeControls);
  }

  /** @param {number} sentence @param {number} row one of its hypotheses @returns {string} its text */
  text(sentence, row) {
    let start = this._textOffsets[sentence];
    for (let k = this.offsets[sentence]; k < row; k++) start = this._texts.indexOf(LINE_END, start) + 1;
    const next = this._texts.indexOf(LINE_END, start);
    const end = row + 1 < this.offsets[sentence + 1] ? next : this._textOffsets[sentence + 1];
    return escapeControls(decoder.decode(this._texts.subarray(start, end)));
  }

  /** @param {number} sentence @returns {string} its id, as the lists have it */
  name(sentence) {
    return this.run.ids[sentence] ?? String(sentence);
  }
}

/** @param {RunDocument} run without lists @returns {string} why it has none */
export function describeMissingLists(run) {
  return `The lists of ${run.name} are ${run.whereListsAre}: this page does not have them.`;
}

/** @param {Record<string, Packed>} packed */
async function unpackAll(packed) {
  const entries = Object.entries(packed).map(async ([key, array]) => [key, await unpack(array)]);
  return Object.fromEntries(await Promise.all(entries));
}

/** @param {Uint8Array} bytes @returns {string[]} */
function splitLines(bytes) {
  return decoder.decode(bytes).split("\n").map(escapeControls);
}
