"""The output of ``kbmira --verbose`` and ``--streaming-out``, as Moses' program prints it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, NamedTuple, Protocol, TextIO, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.mira.graphs import SearchVisits
from mosesplug.optimizers.batch.mira.kbmira import ListMiraLearner
from mosesplug.optimizers.batch.mira.search import SearchHypothesis
from mosesplug.optimizers.batch.mira.step import MiraDecisions, MiraState
from mosesplug.tuning_set import TuningSet

__all__ = ["Display", "Vector", "vectors_found", "vectors_in_lists"]

SMALLEST = 1e-8
"""Weights that are no larger are not shown."""

NEGLIGIBLE = 1e-6
"""Differences of sparse features that are no larger are not shown."""

Vector = list[tuple[int, np.float32]]
"""Columns with their values, ascending."""


Pair = tuple[Vector, Vector]
"""Features of hope and fear: all dense ones, and the sparse ones that they have."""


class Visit(Protocol):
    """The report of learning from one sentence."""

    @property
    def hope_worth(self) -> NDArray[np.float32]: ...

    @property
    def fear_worth(self) -> NDArray[np.float32]: ...

    @property
    def loss(self) -> NDArray[np.float32]: ...

    @property
    def occasion(self) -> NDArray[np.bool_]: ...


Kind = TypeVar("Kind", bound=Visit)


class _Losses(NamedTuple):
    """The order of visits that learning needs."""

    loss: NDArray[np.float32]


class Display(Generic[Kind]):
    """Visits sentences one at a time, and shows what happens."""

    def __init__(
        self,
        state: MiraState,
        visit: Callable[[NDArray[np.int64]], Kind],
        vectors: Callable[[Kind], Pair],
        n_dense: int,
        *,
        named: bool,
        updates: TextIO | None,
        weights: TextIO | None,
    ) -> None:
        """Show what a learner does.

        Args:
            state: the learner's.
            visit: its visit to the given sentences.
            vectors: the features of hope and fear of a visit to one sentence.
            n_dense: number of dense features.
            named: dense weights were given by name: Moses then counts the sparse features behind
                as many numbers again.
            updates: where each update is shown, if anywhere.
            weights: where the weights are shown after each sentence, if anywhere.
        """
        self._state = state
        self._visit = visit
        self._vectors = vectors
        self._n_dense = n_dense
        self._shift = n_dense if named else 0
        self._updates = updates
        self._weights = weights

    def visit(self, order: NDArray[np.int64]) -> _Losses:
        """As the learner's ``visit``."""
        losses = np.zeros(len(order), dtype=np.float32)
        for number in range(len(order)):
            before = self._state.weights.copy()
            visit = self._visit(order[number : number + 1])
            losses[number] = visit.loss[0]
            if self._updates is not None and visit.occasion[0]:
                print(self._update(number, before, visit), file=self._updates)
            if self._weights is not None:
                print(self._shown_weights(self._state.weights), file=self._weights)
        return _Losses(losses)

    def _update(self, number: int, weights: NDArray[np.float32], visit: Kind) -> str:
        """Return the lines about one update, an empty one behind them."""
        hope, fear = self._vectors(visit)
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
        """Return one vector with its worth and model score."""
        score = np.float32(0.0)
        for column, value in vector:
            score += weights[column] * value
        return f"{what}: {' '.join(self._pairs(vector))} BLEU:{worth:g} Score:{score:g}"

    def _difference(self, hope: Vector, fear: Vector) -> Vector:
        """Return features of hope less those of fear."""
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
        # Moses puts the blank in front of all but the first of the weights, shown or not.
        return text if columns[:1] in ([], [0]) else f" {text}"

    def _pairs(self, vector: Iterable[tuple[int, np.float32]]) -> Iterable[str]:
        for column, value in vector:
            yield f"{column if column < self._n_dense else column + self._shift}:{value:g}"


def vectors_in_lists(
    learner: ListMiraLearner, tuning_set: TuningSet
) -> Callable[[MiraDecisions], Pair]:
    """Takes the features of hope and fear from the lists that ``learner`` learns from."""

    def features(hypothesis: int) -> Vector:
        row = int(learner.rows[hypothesis])
        vector: Vector = list(enumerate(tuning_set.dense[row]))
        sparse = tuning_set.sparse
        if sparse is None:
            return vector
        entries = slice(int(sparse.indptr[row]), int(sparse.indptr[row + 1]))
        columns = (sparse.indices[entries] + tuning_set.space.n_dense).tolist()
        return vector + sorted(zip(columns, sparse.data[entries], strict=True))

    def vectors(visit: MiraDecisions) -> Pair:
        return features(int(visit.hope[0])), features(int(visit.fear[0]))

    return vectors


def vectors_found(n_dense: int) -> Callable[[SearchVisits], Pair]:
    """Takes the features of hope and fear from what the search found."""

    def features(found: SearchHypothesis) -> Vector:
        values = dict.fromkeys(range(n_dense), np.float32(0.0))
        values.update(zip(found.columns.tolist(), found.values, strict=True))
        return list(values.items())

    def vectors(visit: SearchVisits) -> Pair:
        return features(visit.found[0].hope), features(visit.found[0].fear)

    return vectors
