// The present weights as text: a section of moses.ini, JSON, or words NAME=W.

import { button, element } from "./elements.js";

/** @typedef {import("./session.js").RunSession} RunSession */

/** @param {RunSession} run @returns {HTMLElement} buttons that copy the present weights, in formats of the command line */
export function makeCopies(run) {
  const area = /** @type {HTMLTextAreaElement} */ (
    element("textarea", { readonly: true, rows: 6, hidden: true, "aria-label": "Present weights" })
  );
  /** @param {string} text */
  const show = async (text) => {
    area.value = text;
    area.hidden = false;
    area.select();
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      document.execCommand("copy");
    }
  };
  return element("div", { class: "copy", role: "group", "aria-label": "Copy the present weights" },
    "Copy as ",
    button("moses.ini", () => show(formatIni(run))),
    button("JSON", () => show(formatJson(run))),
    button("NAME=W", () => show(formatPairs(run))),
    area);
}

/** @param {RunSession} run @returns {[string, number[]][]} the weights of each group */
function groupWeights(run) {
  let at = 0;
  return run.run.groups.map(([name, width]) =>
    [name, [...run.present.weights.dense.slice(at, (at += width))]]);
}

/** @param {RunSession} run @returns {[string, number][]} sparse weights that are not 0 */
function sparseWeights(run) {
  const { sparse, factor } = run.present.weights;
  /** @type {[string, number][]} */
  const pairs = (run.run.sparseNames ?? []).map((name, k) => [name, factor * sparse[k]]);
  return pairs.filter(([, weight]) => weight !== 0);
}

/** @param {RunSession} run */
function formatIni(run) {
  const lines = groupWeights(run).map(([name, values]) => `${name}= ${values.join(" ")}`);
  const sparse = sparseWeights(run);
  const note = sparse.length
    ? `# ${sparse.length} sparse weights belong into a file of [weight-file]: copy them as JSON\n` : "";
  return `[weight]\n${lines.join("\n")}\n${note}`;
}

/** @param {RunSession} run */
function formatJson(run) {
  const dense = groupWeights(run).map(([name, values]) => [name, values.length === 1 ? values[0] : values]);
  const sparse = sparseWeights(run);
  const parts = { dense: Object.fromEntries(dense), ...(sparse.length ? { sparse: Object.fromEntries(sparse) } : {}) };
  return `${JSON.stringify(parts, null, 1)}\n`;
}

/** @param {RunSession} run @returns {string} the format `equals`, whose numbers start at 1 */
function formatPairs(run) {
  const dense = groupWeights(run).flatMap(([name, values]) =>
    values.map((value, k) => `${values.length === 1 ? name : `${name}_${k + 1}`}=${value}`));
  return `${[...dense, ...sparseWeights(run).map(([name, value]) => `${name}=${value}`)].join(" ")}\n`;
}
