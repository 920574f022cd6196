// The state of the page in the fragment of its address, so that a link leads to it.

/**
 * @typedef {{tab?: string, run?: number, point?: number, weights?: number[], factor?: number,
 *   base?: number, sentence?: number, search?: string, field?: string, changed?: boolean}} State
 */

/** @param {State} state @returns {string} a fragment without `#` */
export function encodeState(state) {
  const parameters = new URLSearchParams();
  for (const [key, value] of Object.entries(state)) {
    if (value === undefined || value === "" || value === false) continue;
    parameters.set(key, Array.isArray(value) ? value.join(",") : value === true ? "1" : `${value}`);
  }
  return parameters.toString();
}

/**
 * Read a fragment; what is not valid is left out.
 * @param {string} fragment
 * @returns {State}
 */
export function decodeState(fragment) {
  const parameters = new URLSearchParams(fragment.replace(/^#/, ""));
  /** @type {State} */
  const state = {};
  for (const key of /** @type {const} */ (["tab", "search", "field"])) {
    const text = parameters.get(key);
    if (text !== null) state[key] = text;
  }
  for (const key of /** @type {const} */ (["run", "point", "base", "sentence"])) {
    const text = parameters.get(key);
    if (text !== null && /^\d{1,9}$/.test(text)) state[key] = Number(text);
  }
  const factor = parseNumber(parameters.get("factor"));
  if (factor !== null) state.factor = factor;
  const weights = (parameters.get("weights") ?? "").split(",").map(parseNumber);
  if (weights.every((weight) => weight !== null)) {
    state.weights = /** @type {number[]} */ (weights);
  }
  if (parameters.get("changed") === "1") state.changed = true;
  return state;
}

/** @param {string | null} text @returns {number | null} a finite number */
export function parseNumber(text) {
  if (text === null || text.trim() === "") return null;
  const value = Number(text);
  return Number.isFinite(value) ? value : null;
}
