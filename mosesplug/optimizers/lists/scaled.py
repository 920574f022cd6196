"""Hypotheses with their active features, each divided by a unit of its own.

The scales of MT features differ by orders of magnitude, from a phrase penalty's 1 to a language
model's 100, and so do good weights. Regularizers and gradient steps work better on features of one
scale. So each feature is divided by its unit, and the fitted weights by theirs:

- a dense feature's unit is the root mean square distance from its mean in the sentence;
- a sparse feature's unit is the root mean square of its values where a hypothesis has it: a rare
  feature does not become as large as a frequent one, which would free it from the regularizer.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import ColumnValues, Floats, Offsets, Scores, SentenceValues, Weights
from mosesplug.optimizers.lists.rows import (
    FeatureRows,
    clear_canceled,
    compact_rows,
    drop_empty_sentences,
    filled_weights,
    row_scores,
)
from mosesplug.optimizers.problem import Problem
from mosesplug.tuning_set import TuningSet

Scaling = Literal["deviation", "none"]


@dataclass(frozen=True)
class ScaledLists:
    """The sentences that have hypotheses.

    Attributes:
        offsets: no sentence is empty.
        features: the active ones, in their units.
        columns: int64 ``[n_columns]``, the feature of each column, ascending.
        fixed_scores: score of the inactive weights, minus that of the
            sentence's first hypothesis.
        sentence_weights: weights of the sentences' losses; None: 1 each.
    """

    offsets: Offsets
    features: FeatureRows
    columns: NDArray[np.int64]
    units: ColumnValues
    fixed_scores: Scores
    sentence_weights: SentenceValues | None = None

    @property
    def weights_of_sentences(self) -> SentenceValues:
        """The weights of the sentences' losses, 1 without any."""
        if self.sentence_weights is None:
            return np.ones(self.n_sentences)
        return self.sentence_weights

    def mean(self, losses: SentenceValues) -> float:
        """Return the weighted mean of losses of sentences."""
        return float(np.average(losses, weights=self.sentence_weights))

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have hypotheses."""
        return len(self.offsets) - 1

    @property
    def owners(self) -> NDArray[np.int64]:
        """The sentence of each hypothesis, int64 ``[n_hyps]``."""
        return np.repeat(np.arange(self.n_sentences), np.diff(self.offsets))

    def scores(self, weights: Floats) -> Floats:
        """Return ``w . h`` with weights in their units plus fixed scores, ``[n_hyps]``."""
        scores = row_scores(self.features, weights, 0, len(self.features.dense))
        return np.asarray(scores + self.fixed_scores)

    def combine(self, coefficients: Floats) -> Floats:
        """Return the sum of all rows times their coefficients, float64 ``[n_columns]``.

        A sum that cancels out is exactly 0.
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
        return clear_canceled(sums, sizes)

    def with_fixed_column(self, column: Floats) -> ScaledLists:
        """Return lists with a last feature, float64 ``[n_hyps]``, and no fixed scores."""
        dense, indptr, indices, data = self.features
        n_hyps, width = len(dense), len(self.columns)
        unit = _deviation(self.offsets, column[:, None], self.sentence_weights)
        places = indptr[1:]
        return replace(
            self,
            features=FeatureRows(
                dense,
                indptr + np.arange(n_hyps + 1),
                np.insert(indices, places, width).astype(np.int32),
                np.insert(data, places, column / unit[0]),
            ),
            # Not a feature of the space: the caller removes the column again.
            columns=np.append(self.columns, np.iinfo(np.int64).max),
            units=np.append(self.units, unit),
            fixed_scores=np.zeros(n_hyps),
        )


def scale_lists(problem: Problem, initial: Weights, scaling: Scaling) -> ScaledLists:
    """Return the problem's hypotheses.

    Args:
        initial: weights of the inactive features.
        scaling: units as described in this module, or 1.
    """
    tuning_set, active = problem.tuning_set, problem.active_mask
    n_dense = tuning_set.space.n_dense
    offsets = drop_empty_sentences(tuning_set.offsets)
    sentence_weights, row_weights = tuning_set.sentence_weights, tuning_set.row_weights
    if sentence_weights is not None:
        sentence_weights = filled_weights(tuning_set)
    is_dense = active[:n_dense]
    dense = tuning_set.dense[:, is_dense].astype(np.float64, order="C")
    indptr, indices, data, sparse_columns = _sparse_part(tuning_set, active[n_dense:])
    n_active = dense.shape[1]
    units = np.ones(n_active + len(sparse_columns))
    if scaling == "deviation":
        units[:n_active] = _deviation(offsets, dense, sentence_weights)
        shares = np.ones(len(indices))
        if row_weights is not None:
            shares = np.repeat(row_weights, np.diff(indptr))
        counts = np.bincount(indices, shares, len(sparse_columns))
        squares = np.bincount(indices, shares * (data * data), len(sparse_columns))
        means = squares / np.where(counts > 0.0, counts, 1.0)
        units[n_active:] = np.where(squares > 0.0, np.sqrt(means), 1.0)
        dense /= units[:n_active]
        data = data / units[n_active:][indices]
    fixed = tuning_set.model_scores(np.where(active, 0.0, initial))
    fixed -= np.repeat(fixed[offsets[:-1]], np.diff(offsets))
    return ScaledLists(
        offsets,
        FeatureRows(dense, indptr, (indices + n_active).astype(np.int32), data),
        np.concatenate([np.flatnonzero(is_dense), n_dense + sparse_columns]).astype(np.int64),
        units,
        fixed,
        sentence_weights,
    )


def _deviation(
    offsets: NDArray[np.int64], dense: Floats, sentence_weights: SentenceValues | None
) -> Floats:
    """Return the root mean square distance from the sentence's mean; 1 if constant."""
    widths = np.diff(offsets)
    means = np.add.reduceat(dense, offsets[:-1], axis=0) / widths[:, None]
    squares = np.zeros(dense.shape[1])
    counts = np.ones(len(widths)) if sentence_weights is None else sentence_weights
    for start, end, mean, count in zip(
        offsets[:-1].tolist(), offsets[1:].tolist(), means, counts.tolist(), strict=True
    ):
        squares += count * ((dense[start:end] - mean) ** 2).sum(axis=0)
    deviation = np.sqrt(squares / (float(counts @ widths) or 1.0))
    # Ignore differences by rounding.
    constant = deviation <= 1e-9 * np.abs(dense).max(axis=0, initial=0.0)
    return np.where(constant, 1.0, deviation)


def _sparse_part(
    tuning_set: TuningSet, active: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64], Floats, NDArray[np.int64]]:
    """Return active sparse features: row ends, places in columns, values, columns."""
    if tuning_set.sparse is None:
        none = np.zeros(0, dtype=np.int64)
        return np.zeros(tuning_set.n_hyps + 1, dtype=np.int64), none, np.zeros(0), none
    compact = compact_rows(tuning_set)
    n_dense, rows = tuning_set.space.n_dense, compact.rows
    columns = compact.columns[n_dense:] - n_dense
    is_active = active[columns]
    kept = is_active[rows.indices - n_dense]
    indptr = np.concatenate([[0], np.cumsum(kept)])[rows.indptr].astype(np.int64)
    places = (np.cumsum(is_active) - 1)[rows.indices[kept] - n_dense]
    return indptr, places.astype(np.int64), rows.data[kept], columns[is_active]
