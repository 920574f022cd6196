"""Print ``kbmira --verbose`` and ``--streaming-out`` output as Moses does."""

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

__all__ = ["Display", "Vector", "read_vectors_from_lists", "read_vectors_from_visits"]

SMALLEST = 1e-8
"""Weights up to this absolute value are not shown."""

NEGLIGIBLE = 1e-6
"""Differences of sparse features up to this absolute value are not shown."""

Vector = list[tuple[int, np.float32]]
"""Columns with their values, by ascending column."""


Pair = tuple[Vector, Vector]
"""Features of hope and fear: all dense ones, and their own sparse ones."""


class Visit(Protocol):
    """The report of a learner about one sentence."""

    @property
    def hope_gain(self) -> NDArray[np.float32]: ...

    @property
    def fear_gain(self) -> NDArray[np.float32]: ...

    @property
    def loss(self) -> NDArray[np.float32]: ...

    @property
    def occasion(self) -> NDArray[np.bool_]: ...


Kind = TypeVar("Kind", bound=Visit)


class _Losses(NamedTuple):
    """The losses of one epoch, in the order of the visits."""

    loss: NDArray[np.float32]


class Display(Generic[Kind]):
    """Visits sentences one at a time and prints each update."""

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
        """Store the learner and the output streams.

        Args:
            state: the learner's state.
            visit: learns from the given sentences.
            vectors: returns the features of hope and fear of one visited sentence.
            n_dense: number of dense features.
            named: whether dense weights were given by name. Moses then adds ``n_dense`` once more
                to the numbers of sparse features.
            updates: stream for the updates, or None.
            weights: stream for the weights after each sentence, or None.
        """
        self._state = state
        self._visit = visit
        self._vectors = vectors
        self._n_dense = n_dense
        self._shift = n_dense if named else 0
        self._updates = updates
        self._weights = weights

    def visit(self, order: NDArray[np.int64]) -> _Losses:
        """Visit the sentences in this order, like the learner's ``visit``."""
        losses = np.zeros(len(order), dtype=np.float32)
        for number in range(len(order)):
            before = self._state.weights.copy()
            visit = self._visit(order[number : number + 1])
            losses[number] = visit.loss[0]
            if self._updates is not None and visit.occasion[0]:
                print(self._update(number, before, visit), file=self._updates, flush=True)
            if self._weights is not None:
                print(self._shown_weights(self._state.weights), file=self._weights, flush=True)
        return _Losses(losses)

    def _update(self, number: int, weights: NDArray[np.float32], visit: Kind) -> str:
        """Return the lines about one update, followed by an empty line."""
        hope, fear = self._vectors(visit)
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


def read_vectors_from_lists(
    learner: ListMiraLearner, tuning_set: TuningSet
) -> Callable[[MiraDecisions], Pair]:
    """Return a function that reads the features of hope and fear from n-best lists."""

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


def read_vectors_from_visits(n_dense: int) -> Callable[[SearchVisits], Pair]:
    """Return a function that reads the features of hope and fear that were found."""

    def features(found: SearchHypothesis) -> Vector:
        values = dict.fromkeys(range(n_dense), np.float32(0.0))
        values.update(zip(found.columns.tolist(), found.values, strict=True))
        return list(values.items())

    def vectors(visit: SearchVisits) -> Pair:
        return features(visit.hopes_and_fears[0].hope), features(visit.hopes_and_fears[0].fear)

    return vectors
