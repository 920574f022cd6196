"""Align the words of a hypothesis and a reference one to one, as METEOR does.

The alignment is that of METEOR 1.3 and later (Denkowski & Lavie 2011): the one that covers most
words; of these that with the fewest chunks; of these that with the least sum of distances between
the positions of matched words. The search keeps 40 partial alignments, as METEOR's.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Ints32
from mosesplug.kernels import kernel

BEAM = 40
"""Partial alignments that the search keeps."""

_MIX = np.uint64(0xBF58476D1CE4E5B9)
_STEP = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(31)

_NONE = -2
"""The reference position after an unmatched word; no position follows it."""


@kernel
def _code(position: int) -> np.uint64:
    """Return a random-looking number for a reference position."""
    code = (np.uint64(position) + np.uint64(1)) * _STEP
    code = (code ^ (code >> _HALF)) * _MIX
    return np.uint64(code ^ (code >> _HALF))


@kernel
def align_words(hypothesis: Ints32, reference: Ints32, links: Ints32) -> int:
    """Align words of the same class, and return the number of chunks.

    Args:
        hypothesis: class of each word, below 0 for words that match nothing.
        reference: the same, from 0 on.
        links: output, the reference position of each word of the hypothesis, or -1.
    """
    n, m = len(hypothesis), len(reference)
    n_classes = 1
    for j in range(m):
        n_classes = max(n_classes, reference[j] + 1)
    first, following = np.full(n_classes, -1, np.int32), np.full(m, -1, np.int32)
    # More words of a class here than in the reference: that many of them have no match.
    unmatched, seen = np.zeros(n_classes, np.int32), np.zeros(n_classes, np.int32)
    for j in range(m - 1, -1, -1):
        following[j] = first[reference[j]]
        first[reference[j]] = j
        unmatched[reference[j]] -= 1
    for i in range(n):
        if 0 <= hypothesis[i] < n_classes:
            unmatched[hypothesis[i]] += 1

    used, used_next = np.zeros((BEAM, m), np.bool_), np.zeros((BEAM, m), np.bool_)
    # Columns of a partial alignment: chunks, distance, last position.
    states, states_next = np.zeros((BEAM, 3), np.int64), np.zeros((BEAM, 3), np.int64)
    codes, codes_next = np.zeros(BEAM, np.uint64), np.zeros(BEAM, np.uint64)
    parents, choices = np.zeros((n, BEAM), np.int32), np.full((n, BEAM), -1, np.int32)
    states[0, 2] = _NONE
    size = 1
    for i in range(n):
        word = hypothesis[i]
        if word < 0 or word >= n_classes or first[word] < 0:
            for state in range(size):
                parents[i, state] = state
                states[state, 2] = _NONE
            continue
        kept = 0
        for state in range(size):
            matched = 0
            position = first[word]
            while position >= 0:
                matched += used[state, position]
                position = following[position]
            position = first[word]
            may_skip = seen[word] - matched < unmatched[word]
            while position >= 0 or may_skip:
                chunks, distance, last = states[state]
                place, code = -1, codes[state]
                if position >= 0:
                    place = position
                    position = following[position]
                    if used[state, place]:
                        continue
                    chunks += place != last + 1 or last < 0
                    distance += abs(i - place)
                    code ^= _code(place)
                    last = place
                else:
                    may_skip = False
                    last = _NONE
                kept = _keep(
                    states_next, codes_next, parents[i], choices[i], kept,
                    chunks, distance, last, code, state, place,
                )  # fmt: skip
        seen[word] += 1
        for state in range(kept):
            used_next[state] = used[parents[i, state]]
            if choices[i, state] >= 0:
                used_next[state, choices[i, state]] = True
        used, used_next = used_next, used
        states, states_next = states_next, states
        codes, codes_next = codes_next, codes
        size = kept
    best = 0
    for state in range(1, size):
        if states[state, 0] < states[best, 0] or (
            states[state, 0] == states[best, 0] and states[state, 1] < states[best, 1]
        ):
            best = state
    chunks = states[best, 0]
    for i in range(n - 1, -1, -1):
        links[i] = choices[i, best]
        best = parents[i, best]
    return int(chunks)


@kernel
def _keep(
    states: NDArray[np.int64],
    codes: NDArray[np.uint64],
    parents: Ints32,
    choices: Ints32,
    kept: int,
    chunks: int,
    distance: int,
    last: int,
    code: np.uint64,
    parent: int,
    choice: int,
) -> int:
    """Insert a partial alignment into the sorted best ones; return their number.

    Of those that use the same words and end alike, only the best is kept: what follows is the same.
    """
    gap, grown = kept, kept + 1
    for place in range(kept):
        if codes[place] == code and states[place, 2] == last:
            if (states[place, 0], states[place, 1]) <= (chunks, distance):
                return kept
            gap, grown = place, kept
            break
    if gap == BEAM:
        gap, grown = BEAM - 1, BEAM
        if (states[gap, 0], states[gap, 1]) <= (chunks, distance):
            return kept
    # In a tie, earlier ones stay before.
    while gap > 0 and (states[gap - 1, 0], states[gap - 1, 1]) > (chunks, distance):
        states[gap], codes[gap] = states[gap - 1], codes[gap - 1]
        parents[gap], choices[gap] = parents[gap - 1], choices[gap - 1]
        gap -= 1
    states[gap, 0], states[gap, 1], states[gap, 2] = chunks, distance, last
    codes[gap], parents[gap], choices[gap] = code, parent, choice
    return grown
