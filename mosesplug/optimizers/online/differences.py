"""Differences of the features of two hypotheses of one sentence, which margins are about.

They stand over the features of a batch. What hypotheses share, and weights that must not change,
are not in them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.online.rows import Rows

__all__ = ["Difference", "difference", "of_sentence", "spans"]


@dataclass(frozen=True)
class Difference:
    """A sparse vector.

    Attributes:
        places: int64 ``[n]``, ascending, positions in the columns of a ``Rows``.
        values: float64 ``[n]``, not 0.
    """

    places: NDArray[np.int64]
    values: NDArray[np.float64]

    @property
    def square(self) -> float:
        """The squared norm."""
        return float(self.values @ self.values)

    def dot(self, other: Difference) -> float:
        """The product with another difference over the same columns."""
        _, mine, theirs = np.intersect1d(
            self.places, other.places, assume_unique=True, return_indices=True
        )
        return float(self.values[mine] @ other.values[theirs])


def difference(rows: Rows, one: int, other: int, active: NDArray[np.bool_]) -> Difference:
    """Row ``one`` less row ``other``.

    Args:
        rows: has both.
        one: a row.
        other: a row.
        active: bool ``[n_columns]``; other columns are left out.
    """
    first = slice(int(rows.indptr[one]), int(rows.indptr[one + 1]))
    second = slice(int(rows.indptr[other]), int(rows.indptr[other + 1]))
    both = np.concatenate([rows.indices[first], rows.indices[second]])
    places, inverse = np.unique(both, return_inverse=True)
    signed = np.concatenate([rows.data[first], -rows.data[second]])
    values = np.bincount(inverse, signed, len(places))
    kept = (values != 0.0) & active[places]
    return Difference(places[kept].astype(np.int64), values[kept])


def of_sentence(rows: Rows, start: int, end: int) -> Rows:
    """Rows ``start`` to ``end - 1``; nothing is copied."""
    return replace(rows, indptr=rows.indptr[start : end + 1])


def spans(offsets: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
    """First and last row, plus 1, of each sentence that has hypotheses."""
    bounds = offsets.tolist()
    for start, end in itertools.pairwise(bounds):
        if end > start:
            yield start, end
