// Differences between two texts, word by word.

/** @typedef {{kind: "same" | "added" | "missing", word: string}} WordChange */

const MOST_CELLS = 1_000_000;

/**
 * Return the words of a text with those of another that it lacks: a longest common subsequence.
 * @param {string} text
 * @param {string} other
 * @returns {WordChange[]}
 */
export function compareWords(text, other) {
  const own = splitWords(text);
  const theirs = splitWords(other);
  let first = 0;
  while (first < own.length && own[first] === theirs[first]) first++;
  let last = 0;
  const shorter = Math.min(own.length, theirs.length) - first;
  while (last < shorter && own[own.length - 1 - last] === theirs[theirs.length - 1 - last]) last++;
  /** @param {string[]} words @returns {WordChange[]} */
  const same = (words) => words.map((word) => ({ kind: "same", word }));
  return [
    ...same(own.slice(0, first)),
    ...compareMiddles(own.slice(first, own.length - last), theirs.slice(first, theirs.length - last)),
    ...same(own.slice(own.length - last)),
  ];
}

/** @param {string[]} own @param {string[]} theirs @returns {WordChange[]} */
function compareMiddles(own, theirs) {
  const width = theirs.length + 1;
  // Texts of thousands of words would take more memory than a phone has: they differ as a whole.
  const isLong = own.length * width > MOST_CELLS;
  const common = new Uint32Array(isLong ? 0 : (own.length + 1) * width);
  for (let i = isLong ? -1 : own.length - 1; i >= 0; i--) {
    for (let k = theirs.length - 1; k >= 0; k--) {
      common[i * width + k] =
        own[i] === theirs[k]
          ? common[(i + 1) * width + k + 1] + 1
          : Math.max(common[(i + 1) * width + k], common[i * width + k + 1]);
    }
  }
  /** @type {WordChange[]} */
  const changes = [];
  let i = 0;
  let k = 0;
  while (i < own.length || k < theirs.length) {
    if (!isLong && i < own.length && k < theirs.length && own[i] === theirs[k]) {
      changes.push({ kind: "same", word: own[i] });
      i++;
      k++;
    } else if (
      k === theirs.length ||
      (i < own.length && (isLong || common[(i + 1) * width + k] >= common[i * width + k + 1]))
    ) {
      changes.push({ kind: "added", word: own[i++] });
    } else {
      changes.push({ kind: "missing", word: theirs[k++] });
    }
  }
  return changes;
}

/** @param {string} text @returns {string[]} */
export function splitWords(text) {
  return text.split(/\s+/).filter((word) => word !== "");
}
