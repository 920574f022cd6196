"""Print ``kbmira --verbose`` and ``--streaming-out`` output as Moses does."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TextIO

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.mira.kbmira import MiraLearner, VisitFigures
from mosesplug.optimizers.batch.mira.state import MiraDecisions

SMALLEST = 1e-8
"""Weights up to this absolute value are not shown."""

NEGLIGIBLE = 1e-6
"""Differences of sparse features up to this absolute value are not shown."""

Vector = list[tuple[int, np.float32]]
"""Columns with their values, by ascending column."""


class Display:
    """Visits sentences one at a time and prints each update."""

    def __init__(
        self,
        learner: MiraLearner,
        n_dense: int,
        *,
        named: bool,
        updates: TextIO | None,
        weights: TextIO | None,
    ) -> None:
        """Store the learner and the output streams.

        Args:
            named: whether dense weights were given by name. Moses then adds ``n_dense`` once more
                to the numbers of sparse features.
            updates: stream for the updates, or None.
            weights: stream for the weights after each sentence, or None.
        """
        self._learner = learner
        self._n_dense = n_dense
        self._shift = n_dense if named else 0
        self._updates = updates
        self._weights = weights

    def visit(self, order: NDArray[np.int64]) -> VisitFigures:
        """Visit the sentences in this order, like the learner's ``visit``."""
        losses, spreads = np.zeros((2, len(order)), dtype=np.float32)
        for number in range(len(order)):
            before = self._learner.state.weights.copy()
            visit = self._learner.visit(order[number : number + 1])
            losses[number], spreads[number] = visit.loss[0], visit.spread[0]
            if self._updates is not None and visit.occasion[0]:
                print(self._update(number, before, visit), file=self._updates, flush=True)
            if self._weights is not None:
                print(
                    self._shown_weights(self._learner.state.weights), file=self._weights, flush=True
                )
        return VisitFigures(losses, spreads)

    def _update(self, number: int, weights: NDArray[np.float32], visit: MiraDecisions) -> str:
        """Return the lines about one update, followed by an empty line."""
        hope, fear = self._vector(visit.hope[0]), self._vector(visit.fear[0])
        difference = self._difference(hope, fear)
        gains = visit.hope_gain[0], visit.fear_gain[0]
        lines = [
            f"Updating sent {number}",
            f"Wght: {self._shown_weights(weights)}",
            self._line("Hope", hope, gains[0], weights),
            self._line("Fear", fear, gains[1], weights),
            self._line("Diff", difference, gains[0] - gains[1], weights),
            f"Loss: {visit.loss[0]:g} Scale: 1",
        ]
        return "\n".join(lines) + "\n"

    def _vector(self, hypothesis: Any) -> Vector:
        columns, values = self._learner.hypotheses.features(hypothesis)
        return list(zip(columns.tolist(), values, strict=True))

    def _line(
        self, what: str, vector: Vector, gain: np.float32, weights: NDArray[np.float32]
    ) -> str:
        """Return the line of one hypothesis: features, metric score and model score."""
        score = np.float32(0.0)
        for column, value in vector:
            score += weights[column] * value
        return f"{what}: {' '.join(self._pairs(vector))} BLEU:{gain:g} Score:{score:g}"

    def _difference(self, hope: Vector, fear: Vector) -> Vector:
        """Return the features of the hope minus those of the fear."""
        plus, minus = dict(hope), dict(fear)
        zero = np.float32(0.0)
        return [
            (column, value)
            for column in sorted(plus | minus)
            if abs(value := plus.get(column, zero) - minus.get(column, zero)) > NEGLIGIBLE
            or column < self._n_dense
        ]

    def _shown_weights(self, weights: NDArray[np.float32]) -> str:
        """Return the weights that are not 0, as ``column:value``."""
        columns = np.flatnonzero(np.abs(weights) > SMALLEST).tolist()
        text = " ".join(self._pairs((column, weights[column]) for column in columns))
        # Moses prints a blank before every weight except weight 0, even if weight 0 is not shown.
        return text if columns[:1] in ([], [0]) else f" {text}"

    def _pairs(self, vector: Iterable[tuple[int, np.float32]]) -> Iterable[str]:
        for column, value in vector:
            yield f"{column if column < self._n_dense else column + self._shift}:{value:g}"
