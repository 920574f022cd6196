"""Score an n-best list: ``python score_like_comet.py LIST REFERENCE... > scores``.

This stands in for a learned metric such as COMET, which needs a large model: a number between 0 and
1 for each hypothesis, in the order of the list, from the trigrams of characters that it shares with
the closest reference. Words that differ in an ending count almost as equal.
"""

from __future__ import annotations

import gzip
import math
import sys
from collections import Counter
from pathlib import Path


def read_lines(path: str) -> list[str]:
    """Return the lines of a file, plain or compressed."""
    data = Path(path).read_bytes()
    return (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode().splitlines()


def count_trigrams(text: str) -> Counter[str]:
    """Return the trigrams of the characters, with blanks around the text."""
    padded = f" {text.strip()} "
    return Counter(padded[i : i + 3] for i in range(len(padded) - 2))


def score(hypothesis: str, references: list[str]) -> float:
    """Return the score of a hypothesis."""
    found = count_trigrams(hypothesis)
    shares = []
    for reference in references:
        wanted = count_trigrams(reference)
        shares.append(2 * (found & wanted).total() / max(1, found.total() + wanted.total()))
    return 1 / (1 + math.exp(3 - 6 * max(shares)))


if __name__ == "__main__":
    nbest, *names = sys.argv[1:]
    references = list(zip(*map(read_lines, names), strict=True))
    for line in read_lines(nbest):
        sentence, text = line.split(" ||| ")[:2]
        print(f"{score(text, list(references[int(sentence)])):.4f}")
