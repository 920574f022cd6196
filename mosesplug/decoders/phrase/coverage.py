"""Which source words are translated: coverage, where it may grow, and what is still to pay.

A coverage is a pair: the first word not yet translated (the gap), and a bit for each word after
it. The distortion limit keeps those bits few, however long the sentence is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.decoders.phrase.model import Model
from mosesplug.errors import DataError

__all__ = ["Coverages", "Options", "applicable"]

LONGEST_SENTENCE = 500
"""Estimates are kept for every span: time and memory grow with the square of this and worse."""
LONGEST_WINDOW = 48
"""Bits of coverage after the first gap; with the first gap they make one 63-bit key."""


@dataclass(frozen=True)
class Options:
    """The phrase pairs that apply to a sentence, by span.

    Attributes:
        start, end, width: int64 ``[n_spans]``; source words ``start .. end``.
        first: int64 ``[n_spans + 1]``; a span's pairs are ``pairs[first[i]:first[i + 1]]``.
        counts: int64 ``[n_spans]``; how many.
        pairs: int64; rows of the model.
    """

    start: NDArray[np.int64]
    end: NDArray[np.int64]
    first: NDArray[np.int64]
    pairs: NDArray[np.int64]
    width: NDArray[np.int64]
    counts: NDArray[np.int64]


def applicable(model: Model, words: Sequence[bytes]) -> Options:
    """Return all phrase pairs for all spans of the sentence."""
    spans, pairs, first = [], [], [0]
    for start in range(len(words)):
        for end in range(start, min(start + model.longest, len(words))):
            found = model.options.get(b" ".join(words[start : end + 1]))
            if found is not None:
                spans.append((start, end))
                pairs.append(found)
                first.append(first[-1] + len(found))
    bounds = np.array(spans, dtype=np.int64).reshape(-1, 2)
    return Options(
        start=bounds[:, 0],
        end=bounds[:, 1],
        first=np.array(first, dtype=np.int64),
        pairs=np.concatenate(pairs) if pairs else np.zeros(0, dtype=np.int64),
        width=bounds[:, 1] - bounds[:, 0] + 1,
        counts=np.diff(first),
    )


def _future_costs(model: Model, options: Options, length: int) -> list[list[float]]:
    """Best estimate of each span ``[start][end + 1]``: of one phrase or of two parts."""
    future = np.full((length + 1, length + 1), -math.inf)
    np.fill_diagonal(future, 0.0)
    if len(options.pairs):
        best = np.maximum.reduceat(model.estimate[options.pairs], options.first[:-1])
        future[options.start, options.end + 1] = best
    for width in range(2, length + 1):
        for start in range(length - width + 1):
            end = start + width
            split = (future[start, start + 1 : end] + future[start + 1 : end, end]).max()
            future[start, end] = max(future[start, end], split)
    rows: list[list[float]] = future.tolist()
    return rows


class Coverages:
    """The distinct coverages of a sentence, numbered as they are met.

    Attributes:
        gap: the first word not translated, of each coverage.
        bits: bit ``k`` says whether word ``gap + k`` is translated.
        rest: the best estimate for all words that are not.
        reach: the longest jump.

    Args:
        distortion_limit: -1 for none.

    Raises:
        DataError: more than 500 words; more than 48 and no distortion limit, or one beyond 48.
    """

    def __init__(self, model: Model, options: Options, length: int, distortion_limit: int) -> None:
        self.options = options
        self.length = length
        self.reach = length if distortion_limit < 0 else distortion_limit
        if length > LONGEST_SENTENCE:
            raise DataError(
                f"a sentence of {length} words: {LONGEST_SENTENCE} is all the bundled decoder takes"
            )
        if min(length, self.reach) > LONGEST_WINDOW:
            raise DataError(
                f"a sentence of {length} words with distortion limit {distortion_limit}: the "
                f"bundled decoder needs a limit of {LONGEST_WINDOW} or less for sentences longer "
                f"than {LONGEST_WINDOW} words"
            )
        self.future = _future_costs(model, options, length)
        self.numbers: dict[int, int] = {}
        self.gap: list[int] = []
        self.bits: list[int] = []
        self.rest: list[float] = []

    def number(self, gap: int, bits: int) -> int:
        """Return the number of a coverage, a new one if need be."""
        key = bits * (self.length + 1) + gap
        number = self.numbers.setdefault(key, len(self.gap))
        if number == len(self.gap):
            self.gap.append(gap)
            self.bits.append(bits)
            self.rest.append(self._rest(gap, bits))
        return number

    def _rest(self, gap: int, bits: int) -> float:
        total = 0.0
        start = gap
        while bits:
            run = (bits & -bits).bit_length() - 1
            total += self.future[start][start + run]
            bits >>= run
            run_covered = (~bits & (bits + 1)).bit_length() - 1
            bits >>= run_covered
            start += run + run_covered
        return total + self.future[start][self.length]

    def after(self, coverages: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Return the coverage that each span would lead to, and the estimate of what it leaves.

        Returns int64 and float64 ``[len(coverages), n_spans]``; -1 where the span overlaps what is
        covered, or leads so far from the first gap that no jump could come back.
        """
        options = self.options
        gap = np.array([self.gap[number] for number in coverages])[:, None]
        bits = np.array([self.bits[number] for number in coverages])[:, None]
        width = options.width
        ones = (np.int64(1) << np.minimum(width, LONGEST_WINDOW)) - 1
        shift = options.start - gap
        free = (shift >= 0) & (((bits >> np.clip(shift, 0, LONGEST_WINDOW)) & ones) == 0)
        free &= (shift == 0) | (options.end + 1 - gap <= self.reach)
        row, span = np.nonzero(free)
        shift, at_gap = shift[row, span], shift[row, span] == 0
        gap, bits, width, ones = gap[row, 0], bits[row, 0], width[span], ones[span]
        gap = gap + np.where(at_gap, width, 0)
        bits = np.where(at_gap, bits >> np.minimum(width, LONGEST_WINDOW), bits | (ones << shift))
        # The words covered right after the gap that was closed: the run of lowest one bits.
        lowest_zero = ~bits & (bits + 1)
        run = np.frexp(lowest_zero.astype(np.float64))[1] - 1
        gap, bits = gap + run, bits >> run
        keys, inverse = np.unique(bits * (self.length + 1) + gap, return_inverse=True)
        known = [
            self.number(int(key % (self.length + 1)), int(key // (self.length + 1))) for key in keys
        ]
        estimates = np.array([self.rest[number] for number in known])
        numbers = np.full(free.shape, -1, dtype=np.int64)
        rest = np.zeros(free.shape)
        numbers[row, span] = np.array(known, dtype=np.int64)[inverse]
        rest[row, span] = estimates[inverse]
        return numbers, rest
