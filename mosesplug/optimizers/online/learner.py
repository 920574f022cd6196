"""The online learner: a state, and its update by a mini-batch of hypotheses.

A learner has two halves. ``change`` looks at a batch and says what should become of the weights;
``apply`` does it. An ordinary update is one after the other. Where weights are stale (Green et al.
2013, Algorithm 2), many ``change`` run at once, each on weights of some time ago, and one writer
applies what they found in the order in which it comes. So one learner serves the stored, the
online, the sharded and the asynchronous regime.

Nothing here has a random generator of its own or keeps a secret: what a learner remembers is in
its ``LearnerState``, which is made of plain arrays, can be stored, sent, mixed and gone on with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.protocol import Metric
from mosesplug.tuning_set import Batch

__all__ = ["BatchSource", "Change", "Learner", "LearnerState", "Step", "grow_state"]


@dataclass(frozen=True)
class LearnerState:
    """All that a learner remembers.

    Attributes:
        vectors: float64 ``[n_features]`` each, by name. ``weights`` is always there, though it may
            lack regularisation that is still due: ``Learner.weights`` gives them in full.
        memory: float64 arrays of any shape that do not belong to features, such as the decayed
            statistics of earlier output.
        updates: batches that were applied.
    """

    vectors: Mapping[str, NDArray[np.float64]]
    memory: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    updates: int = 0


@dataclass(frozen=True)
class Step:
    """The position of one update in a run.

    Attributes:
        number: ``k`` of the papers: batches of all epochs up to this one, from 1.
        epoch: from 1.
        per_epoch: ``K`` of the papers: batches of an epoch.
        metric: turns summed statistics into a score; larger is better.
        active: bool ``[n_features]``; weights that may change.
        rng: of this step alone; it depends on the seed, the epoch and the place of the batch in
            it, and on nothing that happened before.
    """

    number: int
    epoch: int
    per_epoch: int
    metric: Metric
    active: NDArray[np.bool_]
    rng: np.random.Generator


@dataclass(frozen=True)
class Change:
    """The change of the weights by a batch, on the features that it touches.

    Attributes:
        columns: int64 ``[n]``, ascending, each once: the features.
        values: float64 ``[n]``; a step to add, or a gradient to descend, as the learner has it.
        more: float64 ``[n]`` by name: further values of those features, such as what AROW's
            variances lose.
        memory: what ``LearnerState.memory`` becomes, where the learner has one.
        report: numbers for people by name; ``loss`` (of the batch, before the update) and
            ``violations`` (constraints or pairs that asked for an update) are always there.
    """

    columns: NDArray[np.int64]
    values: NDArray[np.float64]
    more: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    memory: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    report: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Learner:
    """An online learner with its options bound: four functions.

    Attributes:
        fills: each of the state's vectors by name, with its value at a feature that was not seen.
        init: ``(weights float64 [n_features]) -> LearnerState``.
        change: ``(state, batch, step) -> Change``; reads the state and the batch, writes neither.
        apply: ``(state, change, step) -> LearnerState``. The state given is spent: its arrays may be
            those of the state returned, written in place, so that an update costs what the batch
            touches, whatever the number of features.
        weights: ``(state) -> float64 [n_features]``: the weights to decode with, a new array, with
            all regularisation that is due; the state is only read.
    """

    fills: Mapping[str, float]
    init: Callable[[NDArray[np.float64]], LearnerState]
    change: Callable[[LearnerState, Batch, Step], Change]
    apply: Callable[[LearnerState, Change, Step], LearnerState]
    weights: Callable[[LearnerState], NDArray[np.float64]]

    def update(self, state: LearnerState, batch: Batch, step: Step) -> LearnerState:
        """``apply`` after ``change``: the state is spent."""
        return self.apply(state, self.change(state, batch, step), step)


class BatchSource(Protocol):
    """The source of mini-batches: stored lists, or a decoder."""

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64: the sentences that it has, each once."""

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        """Return the lists of some of its sentences, in that order.

        Args:
            sentences: int64, among ``sentences``.
            weights: gives the present weights; called only where lists are made with them.

        The feature space of later batches may have a longer sparse tail than that of earlier ones.
        """


def grow_state(state: LearnerState, n_features: int, fills: Mapping[str, float]) -> LearnerState:
    """The state over a feature space whose sparse tail became longer; itself if it did not."""
    have = len(state.vectors["weights"])
    if have == n_features:
        return state
    vectors = {
        name: np.concatenate([vector, np.full(n_features - have, fills[name])])
        for name, vector in state.vectors.items()
    }
    return replace(state, vectors=vectors)
