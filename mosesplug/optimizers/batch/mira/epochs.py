"""Epochs of batch MIRA, for a learner of lists, of shards or of a search."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.mira.step import MiraSettings

__all__ = ["BatchMiraLearner", "MiraEpoch", "Ordering", "VisitLosses", "run_epochs"]

Ordering = Callable[[], NDArray[np.int64]]
"""Returns the order of the sentences in the next epoch, int64 ``[n_sentences]``."""


@dataclass(frozen=True)
class MiraEpoch:
    """Summary of one epoch.

    Attributes:
        updates: sentences with a margin that was too small.
        sentences: sentences visited.
        loss: sum of the missed margins divided by the number of sentences.
        score: the metric of the 1-best hypotheses at ``weights``.
        weights: float32 ``[n_features]``, averaged over all updates so far, in Moses' scale (see
            ``ListMiraLearner.average``).
        total_updates: updates since the start.
        n_shards: number of shards, each of which started from the initial weights.
    """

    updates: int
    sentences: int
    loss: float
    score: float
    weights: NDArray[np.float32]
    total_updates: int
    n_shards: int = 1

    @property
    def average(self) -> NDArray[np.float64]:
        """The average of the initial weights and those after each update so far."""
        n = self.total_updates
        return np.asarray(self.weights.astype(np.float64) * (n / (n + self.n_shards) if n else 1.0))


class VisitLosses(Protocol):
    """The losses of visited sentences."""

    @property
    def loss(self) -> NDArray[np.float32]:
        """Float32 ``[n]``, of each sentence; above 0 where the margin was too small."""


class BatchMiraLearner(Protocol):
    """Learns from sentences, in lists or in a search."""

    @property
    def settings(self) -> MiraSettings:
        """Settings of the algorithm."""

    @property
    def updates(self) -> int:
        """Number of updates since the start."""

    @property
    def n_shards(self) -> int:
        """Number of shards that learn at once."""

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have a hypothesis."""

    def visit(self, order: NDArray[np.int64]) -> VisitLosses:
        """Learn from the given sentences, int64 ``[n]``, one after the other."""

    def average(self) -> NDArray[np.float32]:
        """Return the averaged weights, float32 ``[n_features]``."""

    def score(self, weights: NDArray[np.float32]) -> float:
        """Return the metric of the 1-best at ``weights``, float32 ``[n_features]``."""


def run_epochs(
    learner: BatchMiraLearner,
    ordering: Ordering,
    epochs: int,
    visit: Callable[[NDArray[np.int64]], VisitLosses] | None = None,
) -> Iterator[MiraEpoch]:
    """Visit the sentences ``epochs`` times.

    Args:
        learner: learns.
        ordering: called before each epoch.
        epochs: number of epochs.
        visit: ``learner.visit``, or a function that calls it.

    Raises:
        OptimizerError: the weights overflow.
    """
    for _ in range(epochs):
        decisions = (visit or learner.visit)(ordering())
        weights = learner.average()
        if not np.isfinite(weights).all():
            raise OptimizerError(
                "the weights overflow; use a smaller step_cap (-C of the program kbmira), or start"
                " from smaller weights"
            )
        missed = np.maximum(decisions.loss, 0.0)
        yield MiraEpoch(
            updates=int(np.count_nonzero(missed)),
            sentences=len(missed),
            # A running sum in single precision, as in Moses.
            loss=float(np.cumsum(missed, dtype=np.float32)[-1]) / len(missed),
            score=learner.score(weights),
            weights=weights,
            total_updates=learner.updates,
            n_shards=learner.n_shards,
        )
