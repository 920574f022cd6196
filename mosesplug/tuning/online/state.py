"""A learner between two epochs: its state and its features' names, to store and to restore."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.epochs import AVERAGE, averaged
from mosesplug.optimizers.online.learner import Learner, State, grown
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.online.numbering import Numbering
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import IterationResult, result_of

__all__ = [
    "Beginning",
    "beginning",
    "decode_state",
    "encode_state",
    "forget_earlier_states",
    "keeps_mean",
    "online_start",
    "same_start",
    "selection",
]


@dataclass(frozen=True)
class Beginning:
    """Where an epoch begins.

    Attributes:
        learner: changes active weights only, and keeps a mean if one is wanted.
        state: of the learner; an epoch spends it.
        numbering: of the features; an epoch makes it grow.
    """

    learner: Learner
    state: State
    numbering: Numbering


def selection(configuration: Configuration, optimizer: Optimizer) -> str:
    """Which weights an online run ends with: ``last``, ``average`` or ``best-heldout``.

    Args:
        configuration: says it, or leaves it to the learner.
        optimizer: of the run. Its ``averaging`` ``best`` needs a held-out set; without one, the
            average is taken.
    """
    if configuration.select is not None:
        return configuration.select
    if configuration.held_out is not None:
        return "best-heldout"
    is_averaged = optimizer.is_online and optimizer.online.averaging != "last"
    return "average" if is_averaged else "last"


def keeps_mean(configuration: Configuration, optimizer: Optimizer) -> bool:
    """Whether an online run has use for the mean of its weights.

    Args:
        configuration: says which weights are wanted.
        optimizer: of the run.
    """
    return selection(configuration, optimizer) == "average" or (
        optimizer.online.averaging == "all" and configuration.select != "last"
    )


def same_start(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether two beginnings of an epoch, as records, lead to the same lists."""
    return all(one.get(name) == other.get(name) for name in _DECIDING)


_DECIDING = ("dense", "sparse", "seed", "settings", "epoch")
"""Of an epoch's start, what its lists depend on."""


def online_start(context: Context) -> Weights:
    """The weights of the first batch: normalised, as those of the first decoding otherwise are."""
    if context.data.configuration.decoding.config_weights_first:
        return context.data.start
    return context.data.start.normalised()


def beginning(context: Context, weights: Weights, last: IterationResult | None) -> Beginning:
    """Where the next epoch begins: where the last one ended, or at given weights.

    Args:
        context: of the run.
        weights: to begin with where there is no state to go on with.
        last: the result of the iteration before, if there is one.
    """
    learner = context.optimizer.learner()
    if keeps_mean(context.data.configuration, context.optimizer):
        learner = averaged(learner)
    stored = None if last is None else last.learner
    if stored is not None and not _serves(learner, stored.get("vectors", ())):
        stored = None  # another learner's, or of shards: only weights can be gone on with
    names = sorted(weights.sparse) if stored is None else stored["sparse"]
    active = context.data.configuration.optimising.active
    numbering = Numbering(context.data.space, names, active)
    learner = numbering.restricted(learner)
    if stored is not None:
        # What is no longer wanted, as a mean of the weights, is left behind.
        vectors = {name: stored["vectors"][name] for name in learner.fills}
        state = decode_state({**stored, "vectors": vectors})
    else:
        state = learner.init(weights.vector(numbering.space))
    return Beginning(learner, state, numbering)


def _serves(learner: Learner, vectors: Iterable[str]) -> bool:
    """Whether a stored state has the learner's vectors: all of them, and no more but for a mean.

    A mean that is wanted from now on, and was not before, cannot be that of all updates.
    """
    have, want = set(vectors), set(learner.fills)
    return want <= have and have - want <= {AVERAGE}


def encode_state(state: State, space: FeatureSpace, learner: Learner) -> dict[str, Any]:
    """Plain data and arrays for the store; features that came last get their columns."""
    state = grown(state, len(space), learner.fills)
    return {
        "vectors": dict(state.vectors),
        "memory": dict(state.memory),
        "updates": state.updates,
        "sparse": list(space.sparse),
    }


def forget_earlier_states(store: NBestStore) -> None:
    """Leave what a learner remembers with the newest result only.

    One state is enough to go on with, and one may take much room. A kill may come between a result
    and this, so a run begins with it, too.
    """
    done = [record for record in store.iterations() if record.result is not None]
    for record in done[:-1]:
        result = result_of(record)
        if result.learner is not None:
            store.record_result(record.iteration, replace(result, learner=None).as_record())


def decode_state(record: Mapping[str, Any]) -> State:
    """The inverse of ``encode_state``, with arrays of its own."""
    return State(
        {name: np.array(vector) for name, vector in record["vectors"].items()},
        {name: np.array(array) for name, array in record["memory"].items()},
        record["updates"],
    )
