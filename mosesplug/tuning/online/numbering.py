"""Feature columns of an online run, in the order in which batches show features.

The store numbers features as they come, too, but over all lists that it ever held. A resumed run
reads stored lists again. With columns that follow from the batches alone, it adds up the same
numbers in the same order and ends with the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.learner import Learner
from mosesplug.optimizers.selection import FeatureSelection
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import Batch, SparseRows


class FeatureNumbering:
    """Names and columns of the features seen so far; the sparse tail grows.

    Attributes:
        active: bool ``[len(space)]``: weights that may change.
        selection: which weights these are, by name.
    """

    def __init__(
        self, dense: FeatureSpace, sparse: Sequence[str], selection: FeatureSelection
    ) -> None:
        """Number the features known at the start.

        Args:
            selection: the weights that may change, by their names.
        """
        self.space = FeatureSpace(dense.groups, tuple(sparse))
        self._columns = {name: column for column, name in enumerate(sparse)}
        self.selection = selection
        self.active = selection.select_names(self.space)

    def renumber(self, batch: Batch) -> Batch:
        """Return the batch over these columns; features that are new get the next columns."""
        n_hyps, rows = batch.n_hyps, batch.sparse
        if rows is None or not len(rows.indices):
            if self.space.n_sparse:
                empty = np.zeros(0, dtype=np.int32)
                rows = SparseRows(
                    np.zeros(n_hyps + 1, dtype=np.int64), empty, empty.astype(np.float32)
                )
            else:
                rows = None
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

    def _columns_of(self, names: Sequence[str]) -> NDArray[np.int32]:
        """Return columns within the sparse tail; unknown names get new ones."""
        new = [name for name in names if name not in self._columns]
        if new:
            for name in new:
                self._columns[name] = len(self._columns)
            self.space = FeatureSpace(self.space.groups, tuple(self._columns))
            self.active = np.append(self.active, self._are_active(new))
        return np.array([self._columns[name] for name in names], dtype=np.int32)

    def _are_active(self, names: Sequence[str]) -> NDArray[np.bool_]:
        return self.selection.select_names(FeatureSpace((), tuple(names)))


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
