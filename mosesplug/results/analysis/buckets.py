"""Buckets: ranges of a number by which words and sentences are grouped."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

_DECIMALS = 9
"""Values are rounded to this many decimals, so that 1 - 0.7 counts as 0.3."""

_MOST_RANGES = 10
_LEAST_RANGE = 1e-7
"""Scores that differ by less share one bound."""


@dataclass(frozen=True)
class Buckets:
    """Ranges of a number.

    Attributes:
        bounds: in ascending order; bucket ``i`` holds ``bounds[i - 1] <= value < bounds[i]``. The
            first and the last bucket are open.
        labels: a label for each bucket, one more than bounds.
    """

    bounds: tuple[float, ...]
    labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def assign(self, values: NDArray[np.generic]) -> NDArray[np.int64]:
        """Return the bucket of each value, int64 ``[n]``."""
        rounded = np.round(np.asarray(values, dtype=np.float64), _DECIMALS)
        return np.searchsorted(np.array(self.bounds), rounded, side="right").astype(np.int64)


def integer_buckets(bounds: Sequence[int], least: int | None = None) -> Buckets:
    """Return buckets of whole numbers.

    Args:
        bounds: in ascending order, at least one.
        least: the least value that occurs, for the label of the first bucket; None: there is none.
    """
    first = f"below {bounds[0]}" if least is None else _label_range(least, bounds[0])
    middle = (_label_range(low, high) for low, high in pairwise(bounds))
    return Buckets(tuple(bounds), (first, *middle, f"{bounds[-1]} or more"))


def _label_range(low: int, high: int) -> str:
    return str(low) if high - low == 1 else f"{low} to {high - 1}"


FREQUENCIES = integer_buckets((1, 2, 3, 4, 5, 10, 100, 1000), least=0)
"""Buckets of word frequencies; these and the next two have the bounds of compare-mt."""

LENGTHS = integer_buckets((10, 20, 30, 40, 50, 60), least=0)
"""Buckets of sentence lengths, in words."""

DIFFERENCES = integer_buckets((-20, -10, *range(-5, 7), 11, 21))
"""Buckets of length differences, in words."""


def score_buckets(scores: NDArray[np.float64], *, from_zero: bool = False) -> Buckets:
    """Return buckets of sentence scores.

    They are tenths if all scores are between 0 and 1, and ranges of a round width otherwise.

    Args:
        scores: float64 ``[n]``; all sentence scores, at least one.
        from_zero: use tenths also if scores are above 1, as those of error rates may be.
    """
    least, most = float(scores.min()), float(scores.max())
    if least >= 0.0 and (most <= 1.0 or from_zero):
        return _label_scores([place / 10 for place in range(1, 10)])
    # Single scores far from the others share the open ranges.
    low, high = np.percentile(scores, [1.0, 99.0]).tolist()
    if high - low < _LEAST_RANGE:
        return _label_scores([round(low, _DECIMALS)])
    width = _round_up((high - low) / _MOST_RANGES)
    places = range(math.floor(low / width) + 1, math.floor(high / width) + 1)
    return _label_scores([round(place * width, _DECIMALS) for place in places])


def _round_up(width: float) -> float:
    """Return the next larger number of 1, 2 or 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(width))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= width)


def _label_scores(bounds: Sequence[float]) -> Buckets:
    middle = (f"{low:.6g} to {high:.6g}" for low, high in pairwise(bounds))
    labels = (f"below {bounds[0]:.6g}", *middle, f"{bounds[-1]:.6g} or more")
    return Buckets(tuple(bounds), labels)
