// What the reader looks at: a run, its present weights, and the weights to compare with.

import { Chooser, computeModelScores } from "./model_scores.js";
import { findFirstBest, scoreCorpus, scoreHypotheses, sumStatistics } from "./scorer.js";

/**
 * @typedef {import("./data.js").RunDocument} RunDocument
 * @typedef {import("./data.js").RunLists} Lists
 * @typedef {import("./model_scores.js").Weights} Weights
 */

/** What weights choose, and its corpus score as people read it. */
export class Decision {
  /** @param {Lists} lists @param {Weights} weights @param {Int32Array} choice */
  constructor(lists, weights, choice) {
    this._lists = lists;
    this.weights = weights;
    this.choice = choice;
    this.totals = sumStatistics(lists, choice);
    this.score = scoreCorpus(lists.run, this.totals);
    /** @type {Float64Array | null} */
    this._scores = null;
  }

  /** @returns {Float64Array} the model scores of all hypotheses, computed when they are first read */
  get scores() {
    if (this._scores === null) {
      this._scores = new Float64Array(this._lists.n);
      computeModelScores(this._lists, this.weights, this._scores);
    }
    return this._scores;
  }
}

/** A run with its lists and the present weights. */
export class RunSession {
  /** @param {RunDocument} run @param {Lists} lists */
  constructor(run, lists) {
    this.run = run;
    this.lists = lists;
    this.points = run.points ?? [];
    this._chooser = new Chooser(lists);
    this.sentenceScores = scoreHypotheses(lists);
    /** @type {Int32Array | null} */
    this.oracles = this.sentenceScores && findFirstBest(lists, this.sentenceScores);
    /** @type {Weights[]} */
    this.history = [];
    /** @type {Decision} */
    this.base = this.decide(this.pointWeights(0));
    this.basePoint = 0;
    /** @type {Decision} */
    this.present = this.decide(this.pointWeights(this.points.length - 1));
  }

  /** @param {number} place @returns {Weights} those of a point of the run */
  pointWeights(place) {
    const point = this.points[place];
    return {
      dense: Float64Array.from(point.weights),
      sparse: Float64Array.from(point.sparse),
      factor: 1,
    };
  }

  /** @param {Weights} weights @returns {Decision} */
  decide(weights) {
    return new Decision(this.lists, weights, this._chooser.choose(weights));
  }

  /** @param {Weights} weights @param {boolean} [remember] whether undo returns to the present ones */
  move(weights, remember = true) {
    if (remember) this.remember();
    this.present = this.decide(weights);
  }

  /** Keep the present weights for undo. */
  remember() {
    if (this.history.at(-1) !== this.present.weights) this.history.push(this.present.weights);
    if (this.history.length > 200) this.history.shift();
  }

  /** Return to the weights before the last move. */
  undo() {
    const weights = this.history.pop();
    if (weights !== undefined) this.present = this.decide(weights);
  }

  /** @param {number} place the point of the run to compare with */
  compareWith(place) {
    this.basePoint = place;
    this.base = this.decide(this.pointWeights(place));
  }

  /** @returns {number} the point whose weights are the present ones, -1 if none is */
  findPoint() {
    const { dense, sparse, factor } = this.present.weights;
    return this.points.findLastIndex(
      (point) =>
        (factor === 1 || sparse.length === 0) &&
        point.weights.every((weight, k) => weight === dense[k]) &&
        point.sparse.every((weight, k) => weight === sparse[k]),
    );
  }

  /** @returns {number} the first point with the present sparse weights; 0 without sparse features */
  findSparsePoint() {
    const { sparse } = this.present.weights;
    const same = (/** @type {{sparse: number[]}} */ point) =>
      point.sparse.every((weight, k) => weight === sparse[k]);
    return Math.max(0, this.points.findIndex(same));
  }

  /** @returns {import("./state.js").RunState} */
  get state() {
    const { dense, sparse, factor } = this.present.weights;
    const point = this.findPoint();
    const base = this.basePoint;
    if (point >= 0) return { point, base };
    const weights = [...dense];
    return sparse.length ? { point: this.findSparsePoint(), weights, factor, base } : { weights, base };
  }

  /** @param {import("./state.js").RunState} state what does not fit the run is ignored */
  restore({ point = -1, weights, factor = 1, base = 0 }) {
    this.compareWith(base < this.points.length ? base : 0);
    const start = this.pointWeights(point in this.points ? point : this.points.length - 1);
    const isWhole = weights?.length === this.run.features.length;
    this.move(isWhole ? { ...start, dense: Float64Array.from(weights), factor } : start, false);
  }

  /** @returns {number[]} the sentences whose choice differs from that of the base weights */
  listChanged() {
    const changed = [];
    for (const sentence of this.lists.sentences) {
      if (this.present.choice[sentence] !== this.base.choice[sentence]) changed.push(sentence);
    }
    return changed;
  }
}

/** The page: its runs, and what else its address says. */
export class Session {
  /**
   * @param {import("./data.js").PageDocument} page
   * @param {(RunSession | null)[]} runs null: without lists
   */
  constructor(page, runs) {
    this.page = page;
    this.runs = runs;
    this.place = Math.max(0, runs.findIndex((run) => run !== null));
    this.tab = "weights";
    /** The run that the first one is compared with. */
    this.other = 1;
    this.sentence = -1;
    /** The place in its list of the hypothesis that is compared with the 1-best; -1: the oracle. */
    this.hypothesis = -1;
    /** The text that differences are marked against: 0 is the 1-best, then come the references. */
    this.against = 0;
    this.search = "";
    this.field = "1-best";
    /** Conditions on score, change, loss and length. */
    this.filter = "";
    /** What the sentences are sorted by; with `-`, the largest first. */
    this.sort = "sentence";
    this.onlyChanged = false;
    /** Page of the table of sentences, from 0. */
    this.tablePage = 0;
    /** @type {(() => void)[]} */
    this.listeners = [];
  }

  /** @returns {RunDocument} */
  get document() {
    return this.page.runs[this.place];
  }

  /** @returns {RunSession | null} */
  get run() {
    return this.runs[this.place];
  }

  /** @param {number} sentence the one whose hypotheses are shown; -1: none */
  open(sentence) {
    this.sentence = sentence;
    this.hypothesis = -1;
  }

  /** Show what has changed. */
  notify() {
    for (const listener of this.listeners) listener();
  }

  /** @returns {import("./state.js").State} */
  get state() {
    const { tab, search, filter } = this;
    const runs = this.runs.map((run) => run?.state ?? {});
    const sort = this.sort === "sentence" ? "" : this.sort;
    const page = this.tablePage || undefined;
    const state = { tab, search, field: search && this.field, filter, sort, page, changed: this.onlyChanged, runs };
    return {
      ...state,
      ...(runs.length > 1 && { run: this.place, other: this.other }),
      ...(this.sentence >= 0 && { sentence: this.sentence }),
      ...(this.sentence >= 0 && this.hypothesis >= 0 && { hypothesis: this.hypothesis }),
      ...(this.sentence >= 0 && this.against > 0 && { against: this.against }),
    };
  }

  /** @param {import("./state.js").State} state what does not fit the page is ignored */
  restore(state) {
    if (state.run !== undefined && state.run < this.runs.length) this.place = state.run;
    if (state.other && state.other < this.runs.length) this.other = state.other;
    if (state.tab !== undefined) this.tab = state.tab;
    this.runs.forEach((run, k) => run?.restore(state.runs[k]));
    this.open(this.run?.lists.sentences.find((sentence) => sentence === state.sentence) ?? -1);
    if (state.hypothesis !== undefined && this.sentence >= 0) {
      const offsets = this.run?.lists.offsets ?? [];
      const size = offsets[this.sentence + 1] - offsets[this.sentence];
      if (state.hypothesis < size) this.hypothesis = state.hypothesis;
    }
    this.against = state.against ?? 0;
    this.search = state.search ?? "";
    this.field = state.field ?? this.field;
    this.filter = state.filter ?? "";
    this.sort = state.sort ?? "sentence";
    this.tablePage = state.page ?? 0;
    this.onlyChanged = state.changed ?? false;
  }
}
