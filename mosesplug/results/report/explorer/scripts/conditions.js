// Conditions on the numbers of a table, as a reader writes them: `score<0.2 length>30`.

const OPERATORS = {
  "<": (/** @type {number} */ a, /** @type {number} */ b) => a < b,
  "≤": (/** @type {number} */ a, /** @type {number} */ b) => a <= b,
  ">": (/** @type {number} */ a, /** @type {number} */ b) => a > b,
  "≥": (/** @type {number} */ a, /** @type {number} */ b) => a >= b,
  "=": (/** @type {number} */ a, /** @type {number} */ b) => a === b,
};
const CONDITION = /\s*([a-z]+)\s*([<>]=?|[=≤≥])\s*([+-]?(?:\d+\.?\d*|\.\d+))(?=[\s,]|$)[\s,]*/iy;

/**
 * Read conditions that all must hold; spaces or commas separate them.
 * @template {string} K
 * @param {string} text
 * @param {K[]} keys the numbers of a row that conditions can name
 * @returns {{test: (row: Record<K, number>) => boolean, error: string | null}} `test` accepts all
 *   rows if the text is not valid
 */
export function parseConditions(text, keys) {
  /** @type {((row: Record<K, number>) => boolean)[]} */
  const conditions = [];
  CONDITION.lastIndex = 0;
  let read = 0;
  while (text.slice(read).trim() !== "") {
    const [, name, sign, number] = CONDITION.exec(text) ?? [];
    const key = keys.find((own) => own === name?.toLowerCase());
    if (key === undefined) {
      const error = `Not a condition: ${text.slice(read).trim()}. Write a name (${keys.join(", ")}), <, <=, >, >= or =, and a number, such as length>30.`;
      return { test: () => true, error };
    }
    const compare = OPERATORS[/** @type {"<"} */ (sign.replace("<=", "≤").replace(">=", "≥"))];
    conditions.push((row) => compare(row[key], Number(number)));
    read = CONDITION.lastIndex;
  }
  return { test: (row) => conditions.every((condition) => condition(row)), error: null };
}
