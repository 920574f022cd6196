// Differences between two texts, word by word.

/** @typedef {{kind: "same" | "added" | "missing", word: string}} WordChange */

/**
 * Return the words of a text with those of another that it lacks: a longest common subsequence.
 * @param {string} text
 * @param {string} other
 * @returns {WordChange[]}
 */
export function compareWords(text, other) {
  const own = splitWords(text);
  const theirs = splitWords(other);
  const width = theirs.length + 1;
  const common = new Uint32Array((own.length + 1) * width);
  for (let i = own.length - 1; i >= 0; i--) {
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
    if (i < own.length && k < theirs.length && own[i] === theirs[k]) {
      changes.push({ kind: "same", word: own[i] });
      i++;
      k++;
    } else if (
      k === theirs.length ||
      (i < own.length && common[(i + 1) * width + k] >= common[i * width + k + 1])
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
