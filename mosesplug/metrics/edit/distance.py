"""Levenshtein's distance, 64 characters at a time (Myers 1999, Hyyro 2003).

A column of the table of distances is kept as the signs of its differences, which are two bits for
each character of the reference. One word of the hypothesis updates a whole column by a dozen
operations on 64 bits.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.metrics.words import EncodedHypotheses, ReferenceWords

BITS = 64
ZERO = np.uint64(0)
ONE = np.uint64(1)
ALL = np.uint64(0xFFFFFFFFFFFFFFFF)


@kernel
def _mark_places(reference: NDArray[np.int32], masks: NDArray[np.uint64]) -> None:
    """Set the bit of every place of each word: ``masks[word, place // 64]``, else 0."""
    masks[:, :] = ZERO
    for place in range(len(reference)):
        bit = ONE << np.uint64(place % BITS)
        masks[reference[place], place // BITS] |= bit


@kernel
def _distance(
    hypothesis: NDArray[np.int32],
    length: int,
    masks: NDArray[np.uint64],
    rises: NDArray[np.uint64],
    falls: NDArray[np.uint64],
) -> int:
    """Return the distance to a reference of ``length`` words with these ``masks``.

    ``rises`` and ``falls`` are memory for one value for each 64 words of the reference.
    """
    if length == 0:
        return len(hypothesis)
    last = (length - 1) // BITS
    for block in range(last + 1):
        rises[block] = ALL
        falls[block] = ZERO
    errors = length
    for word in hypothesis:
        # The first row of the table grows by one with each word.
        carry = 1
        for block in range(last + 1):
            rise, fall = rises[block], falls[block]
            same = masks[word, block] if 0 <= word < len(masks) else ZERO
            vertical = same | fall
            if carry < 0:
                same |= ONE
            diagonal = (((same & rise) + rise) ^ rise) | same
            up = fall | ~(diagonal | rise)
            down = rise & diagonal
            top = ONE << np.uint64((length - 1) % BITS if block == last else BITS - 1)
            out = int((up & top) != ZERO) - int((down & top) != ZERO)
            up <<= ONE
            down <<= ONE
            if carry > 0:
                up |= ONE
            elif carry < 0:
                down |= ONE
            rises[block] = down | ~(vertical | up)
            falls[block] = up & vertical
            carry = out
        errors += carry
    return errors


@kernel
def is_closer(errors: int, length: int, best_errors: int, best_length: int) -> bool:
    """Return whether the first error rate is lower; a reference may be empty."""
    if length == 0 or best_length == 0:
        return (errors == 0 and best_errors > 0) or (best_length == 0 and best_errors > 0 < length)
    return errors * best_length < best_errors * length


@kernel
def count_errors(
    words: ReferenceWords,
    n_references: int,
    hypotheses: EncodedHypotheses,
    counts: NDArray[np.int32],
) -> None:
    """Write errors and reference length to ``counts``, int32 ``[n, 2]``.

    With several references, those of the lowest error rate count; the first of several equal ones.
    """
    rows = len(hypotheses.sentence_ids)
    first = 0
    while first < rows:
        # References are prepared once for hypotheses of the same sentence in sequence.
        sentence = hypotheses.sentence_ids[first]
        end = first + 1
        while end < rows and hypotheses.sentence_ids[end] == sentence:
            end += 1
        for line in range(sentence * n_references, (sentence + 1) * n_references):
            reference = words.ids[words.token_offsets[line] : words.token_offsets[line + 1]]
            length = len(reference)
            blocks = (length + BITS - 1) // BITS
            n_words = 0
            for word in reference:
                n_words = max(n_words, word + 1)
            masks = np.empty((n_words, blocks), dtype=np.uint64)
            _mark_places(reference, masks)
            rises, falls = np.empty(blocks, dtype=np.uint64), np.empty(blocks, dtype=np.uint64)
            for index in range(first, end):
                hypothesis = hypotheses.ids[
                    hypotheses.offsets[index] : hypotheses.offsets[index + 1]
                ]
                errors = _distance(hypothesis, length, masks, rises, falls)
                if line == sentence * n_references or is_closer(
                    errors, length, counts[index, 0], counts[index, 1]
                ):
                    counts[index, 0] = errors
                    counts[index, 1] = length
        first = end
