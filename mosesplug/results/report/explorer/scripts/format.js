// Numbers as people read them, equal to what Python prints.

/**
 * Return a number with fixed decimals, as Python's format does: a tie goes to the even digit.
 * @param {number} value
 * @param {number} digits at most 8
 * @returns {string}
 */
export function formatFixed(value, digits) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  // Only such numbers lie exactly between two decimals; toFixed rounds them up.
  const doubled = size * 2 ** (digits + 1);
  let text = size.toFixed(digits);
  if (Number.isInteger(doubled) && doubled % 2 === 1) {
    const last = Number(text[text.length - 1]);
    if (last % 2 === 1) text = (Number(text) - 10 ** -digits).toFixed(digits);
  }
  const isNegative = value < 0 || Object.is(value, -0);
  return isNegative ? `-${text}` : text;
}

/** @param {number} value @returns {string} a score with 4 decimals */
export function formatScore(value) {
  return formatFixed(value, 4);
}

/** @param {number} value @returns {string} a difference with its sign and 4 decimals */
export function formatDifference(value) {
  const text = formatFixed(value === 0 ? 0 : value, 4);
  return text.startsWith("-") ? text : `+${text}`;
}

/** @param {number} value @returns {string} a weight with up to 5 significant digits */
export function formatWeight(value) {
  return String(Number(value.toPrecision(5)));
}

/**
 * Return a number with fixed decimals; without decimals, with commas between thousands.
 * @param {number} value
 * @param {number} digits
 * @returns {string}
 */
export function formatTick(value, digits) {
  return digits === 0 ? formatCount(Math.round(value)) : formatFixed(value, digits);
}

/** @param {number} value @returns {string} an integer with commas between thousands */
export function formatCount(value) {
  return String(value).replace(/\B(?=(\d{3})+$)/g, ",");
}

/**
 * Return text without characters that control a display, each as its code.
 * @param {string} text
 * @returns {string}
 */
export function escapeControls(text) {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029\u202a-\u202e\u2066-\u2069]/g, (c) => {
    const code = c.charCodeAt(0);
    return code < 256
      ? `\\x${code.toString(16).padStart(2, "0")}`
      : `\\u${code.toString(16).padStart(4, "0")}`;
  });
}
