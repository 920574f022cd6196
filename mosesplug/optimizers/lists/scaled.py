"""Hypotheses as margins and regression see them: active features, each in a unit of its own.

Features of MT differ by orders of magnitude, from a phrase penalty's 1 to a language model's 100,
and so do good weights. A regulariser that counts all weights alike, and steps along one coordinate
or one gradient, do better where features are alike. So each feature is divided by its unit, and
the weights that are found by theirs:

- of a dense feature, how far its values are from their mean in the sentence, root mean square;
- of a sparse feature, the root mean square of its values where a hypothesis has it: a rare
  feature is not made as large as a frequent one, which would free it from the regulariser.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.lists.oracle_pairs import ActiveFeatures, row_scores
from mosesplug.optimizers.lists.rows import compact_rows, zero_cancelled
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning_set import TuningSet

__all__ = ["ScaledLists", "Scaling", "scaled_lists"]

Floats = NDArray[np.float64]
Scaling = Literal["deviation", "none"]


@dataclass(frozen=True)
class ScaledLists:
    """The sentences that have hypotheses.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``; no sentence is empty.
        features: in their units; no others than the active ones.
        columns: int64 ``[n_columns]``, the feature of each column, ascending.
        units: float64 ``[n_columns]``.
        fixed: float64 ``[n_hyps]``, the score of weights that are not active, less that of the
            sentence's first hypothesis.
    """

    offsets: NDArray[np.int64]
    features: ActiveFeatures
    columns: NDArray[np.int64]
    units: Floats
    fixed: Floats

    @property
    def n_sentences(self) -> int:
        """Sentences that have hypotheses."""
        return len(self.offsets) - 1

    @property
    def owners(self) -> NDArray[np.int64]:
        """The sentence of each hypothesis, int64 ``[n_hyps]``."""
        return np.repeat(np.arange(self.n_sentences), np.diff(self.offsets))

    def scores(self, weights: Floats) -> Floats:
        """``w . h`` with weights in their units, and the fixed scores: float64 ``[n_hyps]``."""
        return np.asarray(row_scores(self.features, weights) + self.fixed)

    def combined(self, coefficients: Floats) -> Floats:
        """The sum of all rows, each times its coefficient: float64 ``[n_columns]``.

        What cancels out is 0, and not what rounding leaves.
        """
        dense, indptr, indices, data = self.features
        rows = np.flatnonzero(coefficients)
        shares, some = coefficients[rows], dense[rows]
        size, n_dense = len(self.columns), dense.shape[1]
        sums, sizes = np.zeros(size), np.zeros(size)
        # Sums in a fixed order, which a matrix product does not promise.
        sums[:n_dense] = (some * shares[:, None]).sum(axis=0)
        sizes[:n_dense] = np.abs(some * shares[:, None]).sum(axis=0)
        if len(data):
            terms = np.repeat(coefficients, np.diff(indptr)) * data
            sums += np.bincount(indices, terms, size)
            sizes += np.bincount(indices, np.abs(terms), size)
        return zero_cancelled(sums, sizes)

    def with_fixed_column(self, column: Floats) -> ScaledLists:
        """The lists with one more feature, float64 ``[n_hyps]``, the last; nothing is fixed."""
        dense, indptr, indices, data = self.features
        n_hyps, width = len(dense), len(self.columns)
        unit = _deviation(self.offsets, column[:, None])
        places = indptr[1:]
        return replace(
            self,
            features=ActiveFeatures(
                dense,
                indptr + np.arange(n_hyps + 1),
                np.insert(indices, places, width).astype(np.int32),
                np.insert(data, places, column / unit[0]),
            ),
            # No feature of the space: whoever asks for the column takes it off again.
            columns=np.append(self.columns, np.iinfo(np.int64).max),
            units=np.append(self.units, unit),
            fixed=np.zeros(n_hyps),
        )


def scaled_lists(problem: Problem, initial: Floats, scaling: Scaling) -> ScaledLists:
    """The problem's hypotheses.

    Args:
        problem: with active features.
        initial: float64 ``[n_features]``; of inactive features, it is their weight.
        scaling: the units described by this module, or 1.
    """
    tuning_set, active = problem.tuning_set, problem.active_mask
    n_dense = tuning_set.space.n_dense
    widths = np.diff(tuning_set.offsets)
    offsets = np.append(tuning_set.offsets[:-1][widths > 0], tuning_set.offsets[-1])
    offsets = offsets.astype(np.int64)
    is_dense = active[:n_dense]
    dense = tuning_set.dense[:, is_dense].astype(np.float64, order="C")
    indptr, indices, data, sparse_columns = _sparse_part(tuning_set, active[n_dense:])
    n_active = dense.shape[1]
    units = np.ones(n_active + len(sparse_columns))
    if scaling == "deviation":
        units[:n_active] = _deviation(offsets, dense)
        counts = np.bincount(indices, minlength=len(sparse_columns))
        squares = np.bincount(indices, data * data, len(sparse_columns))
        units[n_active:] = np.where(squares > 0.0, np.sqrt(squares / np.maximum(counts, 1)), 1.0)
        dense /= units[:n_active]
        data = data / units[n_active:][indices]
    fixed = tuning_set.model_scores(np.where(active, 0.0, initial))
    fixed -= np.repeat(fixed[offsets[:-1]], np.diff(offsets))
    return ScaledLists(
        offsets,
        ActiveFeatures(dense, indptr, (indices + n_active).astype(np.int32), data),
        np.concatenate([np.flatnonzero(is_dense), n_dense + sparse_columns]).astype(np.int64),
        units,
        fixed,
    )


def _deviation(offsets: NDArray[np.int64], dense: Floats) -> Floats:
    """How far values are from their mean in the sentence, root mean square, 1 if nowhere."""
    widths = np.diff(offsets)
    means = np.add.reduceat(dense, offsets[:-1], axis=0) / widths[:, None]
    squares = np.zeros(dense.shape[1])
    for start, end, mean in zip(offsets[:-1].tolist(), offsets[1:].tolist(), means, strict=True):
        squares += ((dense[start:end] - mean) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / max(1, len(dense)))
    # What differs by rounding alone does not differ.
    constant = deviation <= 1e-9 * np.abs(dense).max(axis=0, initial=0.0)
    return np.where(constant, 1.0, deviation)


def _sparse_part(
    tuning_set: TuningSet, active: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Active sparse features: row ends, places in the columns, values, and these columns."""
    if tuning_set.sparse is None:
        none = np.zeros(0, dtype=np.int64)
        return np.zeros(tuning_set.n_hyps + 1, dtype=np.int64), none, np.zeros(0), none
    rows = compact_rows(tuning_set, np.arange(tuning_set.n_hyps))
    n_dense = tuning_set.space.n_dense
    kept = rows.indices >= n_dense
    columns = rows.columns[n_dense:] - n_dense
    is_active = active[columns]
    kept[kept] = is_active[rows.indices[kept] - n_dense]
    indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr].astype(np.int64)
    places = (np.cumsum(is_active) - 1)[rows.indices[kept] - n_dense]
    return indptr, places.astype(np.int64), rows.data[kept], columns[is_active]
