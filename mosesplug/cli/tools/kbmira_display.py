"""What ``kbmira --verbose`` and ``--streaming-out`` show, in the form of Moses' program."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TextIO

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.kbmira import Learner
from mosesplug.optimizers.batch.mira_step import Decisions
from mosesplug.tuning_set import TuningSet

__all__ = ["Display"]

SMALLEST = 1e-8
"""Weights that are no larger are not shown."""

NEGLIGIBLE = 1e-6
"""Differences of sparse features that are no larger are not shown."""

Vector = list[tuple[int, np.float32]]
"""Columns with their values, ascending."""


class Display:
    """Visits sentences one at a time, and shows what happens."""

    def __init__(
        self,
        learner: Learner,
        tuning_set: TuningSet,
        *,
        named: bool,
        updates: TextIO | None,
        weights: TextIO | None,
    ) -> None:
        """Show what ``learner`` does.

        Args:
            learner: learns.
            tuning_set: what it learns from.
            named: dense weights were given by name: Moses then counts the sparse features behind
                as many numbers again.
            updates: where each update is shown, if anywhere.
            weights: where the weights are shown after each sentence, if anywhere.
        """
        self._learner = learner
        self._tuning_set = tuning_set
        self._shift = tuning_set.space.n_dense if named else 0
        self._updates = updates
        self._weights = weights

    def visit(self, order: NDArray[np.int64]) -> Decisions:
        """As ``Learner.visit``."""
        visits: list[Decisions] = []
        for number in range(len(order)):
            before = self._learner.state.weights.copy()
            visits.append(self._learner.visit(order[number : number + 1]))
            if self._updates is not None and visits[-1].occasion[0]:
                print(self._update(number, before, visits[-1]), file=self._updates)
            if self._weights is not None:
                print(self._shown_weights(self._learner.state.weights), file=self._weights)
        return Decisions(*(np.concatenate(column) for column in zip(*visits, strict=True)))

    def _update(self, number: int, weights: NDArray[np.float32], visit: Decisions) -> str:
        """The lines about one update, an empty one behind them."""
        rows = self._learner.rows
        hope = self._features(int(rows[visit.hope[0]]))
        fear = self._features(int(rows[visit.fear[0]]))
        difference = self._difference(hope, fear)
        worths = visit.hope_worth[0], visit.fear_worth[0]
        lines = [
            f"Updating sent {number}",
            f"Wght: {self._shown_weights(weights)}",
            self._line("Hope", hope, worths[0], weights),
            self._line("Fear", fear, worths[1], weights),
            self._line("Diff", difference, worths[0] - worths[1], weights),
            f"Loss: {visit.loss[0]:g} Scale: 1",
        ]
        return "\n".join(lines) + "\n"

    def _line(
        self, what: str, vector: Vector, worth: np.float32, weights: NDArray[np.float32]
    ) -> str:
        """One vector with its worth and model score."""
        score = np.float32(0.0)
        for column, value in vector:
            score += weights[column] * value
        return f"{what}: {' '.join(self._pairs(vector))} BLEU:{worth:g} Score:{score:g}"

    def _features(self, row: int) -> Vector:
        """Features of a row of the tuning set: all dense ones, and the sparse ones it has."""
        vector: Vector = list(enumerate(self._tuning_set.dense[row]))
        sparse = self._tuning_set.sparse
        if sparse is None:
            return vector
        entries = slice(int(sparse.indptr[row]), int(sparse.indptr[row + 1]))
        columns = (sparse.indices[entries] + self._tuning_set.space.n_dense).tolist()
        return vector + sorted(zip(columns, sparse.data[entries], strict=True))

    def _difference(self, hope: Vector, fear: Vector) -> Vector:
        """Features of hope less those of fear."""
        plus, minus = dict(hope), dict(fear)
        n_dense = self._tuning_set.space.n_dense
        zero = np.float32(0.0)
        return [
            (column, value)
            for column in sorted(plus | minus)
            if abs(value := plus.get(column, zero) - minus.get(column, zero)) > NEGLIGIBLE
            or column < n_dense
        ]

    def _shown_weights(self, weights: NDArray[np.float32]) -> str:
        """The weights that are not 0, as ``column:value``."""
        columns = np.flatnonzero(np.abs(weights) > SMALLEST).tolist()
        text = " ".join(self._pairs((column, weights[column]) for column in columns))
        # Moses puts the blank in front of all but the first of the weights, shown or not.
        return text if columns[:1] in ([], [0]) else f" {text}"

    def _pairs(self, vector: Iterable[tuple[int, np.float32]]) -> Iterable[str]:
        n_dense = self._tuning_set.space.n_dense
        for column, value in vector:
            yield f"{column if column < n_dense else column + self._shift}:{value:g}"
