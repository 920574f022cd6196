"""Feature columns of an online run, in order of appearance, and their counts.

The store numbers features as they come, too, but over all lists that it ever held. A resumed run
reads stored lists again. With columns that follow from the batches alone, it adds up the same
numbers in the same order and ends with the same bytes.

If features are chosen by the number of sentences that have them, sentences are counted as batches
come. An epoch has each sentence once, so every epoch counts from 0, and the largest count of a
feature decides: its weight can change as soon as enough sentences of one epoch have had it. The
most frequent features are known after the first epoch, which therefore learns all. At its end, the
others return to their weights before it, and later epochs learn the chosen features only.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.learner import AVERAGE, Learner, LearnerState
from mosesplug.optimizers.selection import FeatureSelection, count_sentences
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import Batch, SparseRows

SentenceCounts = NDArray[np.int64]
"""Sentences that have each sparse feature, ``[n_sparse]``."""


class FeatureNumbering:
    """Names and columns of the features seen so far; the sparse tail grows.

    Attributes:
        selection: which weights may change, by names and counts.
        counts_before: int64 ``[n_sparse before the epoch]``, the number of sentences that had each
            sparse feature in the earlier epoch in which most had it; 0 for a feature that was not
            among the most frequent ones; None in the first epoch, and if nothing is counted.
        counts: int64 ``[space.n_sparse]``, the number of sentences of this epoch that have had each
            sparse feature until now; None if nothing is counted.
    """

    def __init__(
        self,
        dense: FeatureSpace,
        sparse: Sequence[str],
        selection: FeatureSelection,
        counts_before: SentenceCounts | None = None,
    ) -> None:
        """Number the features known at the start."""
        self.space = FeatureSpace(dense.groups, tuple(sparse))
        self._columns = {name: column for column, name in enumerate(sparse)}
        self.selection, self.counts_before = selection, counts_before
        self.counts = np.zeros(len(sparse), dtype=np.int64) if selection.counts else None
        self._named = selection.select_names(self.space)

    @property
    def active(self) -> NDArray[np.bool_]:
        """Weights that may change, bool ``[len(space)]``."""
        if self.counts is None:
            return self._named
        n_dense, counts = self.space.n_dense, self._find_largest(self.counts)
        enough = counts >= max(1, self.selection.least_sentences)
        return np.append(self._named[:n_dense], self._named[n_dense:] & enough)

    def count(self, batch: Batch) -> None:
        """Count the sentences of the batch to learn from next, which has these columns."""
        if self.counts is not None:
            self.counts += count_sentences(batch)

    def reset_infrequent(
        self, learner: Learner, states: Sequence[LearnerState], start: Weights
    ) -> SentenceCounts | None:
        """Reset all but the most frequent features at the end of an epoch.

        Args:
            learner: the learner of the states.
            states: states over the features of the space; changed in place.
            start: the weights before the epoch, to which the reset features return.

        Returns:
            The ``counts_before`` of the next epoch.
        """
        if self.counts is None:
            return None
        counts = self._find_largest(self.counts)
        if not self.selection.most_frequent:
            return counts
        n_dense = self.space.n_dense
        named = self._named[n_dense:]
        kept = self.selection.select_by_count(named, counts)
        columns = n_dense + np.flatnonzero(named & ~kept)
        fresh = learner.init(start.vector(self.space)).vectors
        for state in states:
            for name, vector in state.vectors.items():
                vector[columns] = fresh[name][columns]
            if AVERAGE in state.vectors:
                state.vectors[AVERAGE][columns] = state.updates * fresh["weights"][columns]
        return np.where(kept, counts, 0)

    def renumber(self, batch: Batch) -> Batch:
        """Return the batch over these columns; features that are new get the next columns."""
        n_hyps, rows = batch.n_hyps, batch.sparse
        if rows is None or not len(rows.indices):
            rows = SparseRows.empty(n_hyps) if self.space.n_sparse else None
        else:
            used, places = np.unique(rows.indices, return_inverse=True)
            columns = self._columns_of([batch.space.sparse[index] for index in used.tolist()])
            rows = replace(rows, indices=columns[places])
        dense = batch.dense if n_hyps else np.zeros((0, self.space.n_dense), dtype=np.float32)
        return replace(batch, space=self.space, dense=dense, sparse=rows)

    def restrict(self, learner: Learner) -> Learner:
        """Return the learner that changes active weights only, whichever features appear."""
        return replace(
            learner,
            change=lambda state, batch, step: learner.change(
                state, batch, replace(step, active=self.active)
            ),
            apply=lambda state, change, step: learner.apply(
                state, change, replace(step, active=self.active)
            ),
        )

    def _find_largest(self, counts: SentenceCounts) -> SentenceCounts:
        """Return the largest count of each feature in any epoch, given those of this one.

        If only the most frequent features are learned, the counts of the first epoch stay.
        """
        before = np.zeros(len(counts), dtype=np.int64)
        if self.counts_before is None:
            return counts
        before[: len(self.counts_before)] = self.counts_before
        return before if self.selection.most_frequent else np.maximum(before, counts)

    def _columns_of(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return columns within the sparse tail; unknown names get new ones."""
        new = [name for name in names if name not in self._columns]
        if new:
            for name in new:
                self._columns[name] = len(self._columns)
            self.space = FeatureSpace(self.space.groups, tuple(self._columns))
            own = FeatureSpace((), tuple(new))
            self._named = np.append(self._named, self.selection.select_names(own))
            if self.counts is not None:
                self.counts = np.append(self.counts, np.zeros(len(new), dtype=np.int64))
        return np.array([self._columns[name] for name in names], dtype=np.int32)


def name_weights(space: FeatureSpace, vector: NDArray[np.float64], start: Weights) -> Weights:
    """Return weights by name, from float64 ``[n]``, ``n <= len(space)``.

    A starting weight that became 0 is listed, or the decoder would take it from its configuration.
    If all weights are 0, which ranks nothing, the starting weights are returned.
    """
    if not vector.any():
        return start
    padded = np.append(vector, np.zeros(len(space) - len(vector)))
    weights = Weights.of_vector(space, padded)
    return Weights(weights.dense, {**dict.fromkeys(start.sparse, 0.0), **weights.sparse})
