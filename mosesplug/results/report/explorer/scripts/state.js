// The state of the page in the fragment of its address, so that a link leads to it.

/**
 * @typedef {{point?: number, weights?: number[], factor?: number, base?: number}} RunState
 * @typedef {{tab?: string, run?: number, other?: number, sentence?: number,
 *   hypothesis?: number, against?: number, search?: string, field?: string, filter?: string, sort?: string,
 *   page?: number, changed?: boolean, runs: RunState[]}} State `runs` are those of the page
 */

/** @param {State} state @returns {string} a fragment without `#` */
export function encodeState(state) {
  const parameters = new URLSearchParams();
  /** @param {string} key @param {any} value */
  const add = (key, value) => {
    if (value === undefined || value === "" || value === false) return;
    parameters.set(key, Array.isArray(value) ? value.join(",") : value === true ? "1" : `${value}`);
  };
  const { runs, ...page } = state;
  for (const [key, value] of Object.entries(page)) add(key, value);
  // The first run's keys have no number.
  runs.forEach((run, k) =>
    Object.entries(run).forEach(([key, value]) => add(k ? `${key}.${k}` : key, value)));
  return parameters.toString();
}

/**
 * Read a fragment; what is not valid is left out.
 * @param {string} fragment
 * @param {number} nRuns of the page
 * @returns {State}
 */
export function decodeState(fragment, nRuns) {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  /** @param {string} key */
  const readPlace = (key) => {
    const text = parameters.get(key) ?? "";
    return /^\d{1,9}$/.test(text) ? Number(text) : null;
  };
  /** @type {State} */
  const state = { runs: [] };
  for (const key of /** @type {const} */ (["tab", "search", "field", "filter", "sort"])) {
    const text = parameters.get(key);
    if (text !== null) state[key] = text;
  }
  for (const key of /** @type {const} */ (["run", "other", "page", "sentence", "hypothesis", "against"])) {
    const place = readPlace(key);
    if (place !== null) state[key] = place;
  }
  if (parameters.get("changed") === "1") state.changed = true;
  for (let k = 0; k < nRuns; k++) {
    const end = k ? `.${k}` : "";
    /** @type {RunState} */
    const run = {};
    for (const key of /** @type {const} */ (["point", "base"])) {
      const place = readPlace(key + end);
      if (place !== null) run[key] = place;
    }
    const factor = parseNumber(parameters.get(`factor${end}`));
    if (factor !== null) run.factor = factor;
    const weights = (parameters.get(`weights${end}`) ?? "").split(",").map(parseNumber);
    if (weights.every((weight) => weight !== null)) run.weights = /** @type {number[]} */ (weights);
    state.runs.push(run);
  }
  return state;
}

/** @param {string | null} text @returns {number | null} a finite number */
export function parseNumber(text) {
  if (text === null || text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}
