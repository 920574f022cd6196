"""The learner's state between epochs and decodings, and how it is stored."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Optimizer
from mosesplug.optimizers.online.learner import (
    AVERAGE,
    Learner,
    LearnerState,
    add_averaging,
    grow_state,
)
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.context import Context
from mosesplug.tuning.online.numbering import FeatureNumbering, SentenceCounts
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import IterationResult, read_result


def select_result(configuration: Configuration, optimizer: Optimizer) -> str:
    """Return which weights an online run selects.

    Args:
        optimizer: the optimizer of the run. Its ``averaging`` ``best`` needs a held-out set;
            without one, the average is used.

    Returns:
        ``last``, ``average`` or ``best-heldout``.
    """
    if configuration.select is not None:
        return configuration.select
    if configuration.held_out is not None:
        return "best-heldout"
    is_averaged = optimizer.is_online and optimizer.online.averaging != "last"
    return "average" if is_averaged else "last"


def averages_weights(configuration: Configuration, optimizer: Optimizer) -> bool:
    """Return whether an online run needs the mean of its weights."""
    return select_result(configuration, optimizer) == "average" or (
        optimizer.online.averaging == "all" and configuration.select != "last"
    )


def find_mean(result: IterationResult | None, optimizer: Optimizer) -> Weights | None:
    """Return the mean of an online run's weights, with the zeros that L1 made.

    Args:
        result: of the newest epoch; its own mean goes on with the next epoch, without these zeros.
    """
    if result is None or result.average is None or not optimizer.learner().makes_zeros:
        return None if result is None else result.average
    return result.average.keep_zeros(result.weights)


def find_start_weights(context: Context) -> Weights:
    """Return the weights of the first batch, normalized as in any first decoding."""
    if context.configuration.decoding.config_weights_first:
        return context.start
    return context.start.normalize()


def start_epoch(
    context: Context, weights: Weights, last: IterationResult | None, shards: int | None
) -> tuple[Learner, list[LearnerState], FeatureNumbering]:
    """Start the next epoch where the last one ended, or at given weights.

    Args:
        weights: to start with if there is no stored state of this learner and number of shards.
        last: the result of the previous iteration, if there is one.
        shards: the number of shards; None for one learner.

    Returns:
        The learner, which keeps a mean of the weights if one is wanted and there are no shards; its
        state, which the epoch overwrites, or one for each shard; and the features that are known.
    """
    learner = context.optimizer.learner()
    # With a line search, the mean is that of the weights after the epochs.
    configuration = context.configuration
    searches = learner.line_search and configuration.optimization.sharding is None
    if shards is None and not searches and averages_weights(configuration, context.optimizer):
        learner = add_averaging(learner)
    stored: Mapping[str, Any] = (last and last.learner) or {}
    records = [stored] if shards is None else list(stored.get("shards", ()))
    if len(records) != (shards or 1) or not all(
        _has_vectors(learner, record.get("vectors", ())) for record in records
    ):
        records = []  # of another learner, or other shards: only the weights can be used
    names = stored["sparse"] if records else sorted(weights.sparse)
    selection = context.configuration.optimization.selection
    counts = stored.get("counts") if records and selection.counts else None
    numbering = FeatureNumbering(context.space, names, selection, counts)
    if not records:
        vector = weights.vector(numbering.space)
        return learner, [learner.init(vector) for _ in range(shards or 1)], numbering
    # A mean of the weights that is no longer wanted is dropped.
    states = [
        _decode_state(
            {**record, "vectors": {name: record["vectors"][name] for name in learner.fills}}
        )
        for record in records
    ]
    return learner, states, numbering


def _has_vectors(learner: Learner, vectors: Iterable[str]) -> bool:
    """Return whether a stored state has the learner's vectors; it may have a mean.

    A mean that is wanted only now cannot be that of all updates.
    """
    have, want = set(vectors), set(learner.fills)
    return want <= have and have - want <= {AVERAGE}


def encode_counts(counts: SentenceCounts | None) -> dict[str, Any]:
    """Return what is stored beside the states; nothing if no sentences are counted."""
    return {} if counts is None else {"counts": counts}


def encode_state(
    state: LearnerState, space: FeatureSpace, fills: Mapping[str, float]
) -> dict[str, Any]:
    """Return plain data and arrays for the store, over all columns of ``space``."""
    state = grow_state(state, len(space), fills)
    return {
        "vectors": dict(state.vectors),
        "memory": dict(state.memory),
        "updates": state.updates,
        "sparse": list(space.sparse),
    }


def _decode_state(record: Mapping[str, Any]) -> LearnerState:
    """Return the state that ``encode_state`` encoded, with arrays of its own."""
    return LearnerState(
        {name: np.array(vector) for name, vector in record["vectors"].items()},
        {name: np.array(array) for name, array in record["memory"].items()},
        record["updates"],
    )


def encode_states(states: Sequence[LearnerState], space: FeatureSpace) -> dict[str, Any] | None:
    """Return plain data and arrays for the store; None if there are no states.

    Args:
        states: the states of a learner or of its shards after learning from stored lists, over
            ``space``.
    """
    if not states:
        return None
    records = [encode_state(state, space, {}) for state in states]
    return records[0] if len(records) == 1 else {"shards": records, "sparse": list(space.sparse)}


def decode_states(
    record: Mapping[str, Any] | None, space: FeatureSpace, learner: Learner
) -> tuple[LearnerState, ...]:
    """Return states that ``encode_states`` encoded, over other sparse features.

    Args:
        record: from the store, or None.
        space: the features of the states to return. What is known of others is dropped.
        learner: that of the states; none are returned if it has other vectors.
    """
    if record is None:
        return ()
    records = list(record.get("shards", (record,)))
    fills = {**learner.fills, AVERAGE: 0.0}
    if not all(_has_vectors(learner, record.get("vectors", ())) for record in records):
        return ()
    columns = {name: space.n_dense + place for place, name in enumerate(space.sparse)}
    places = [columns.get(name, -1) for name in record["sparse"]]
    to = np.array([*range(space.n_dense), *places], dtype=np.int64)
    states = []
    for state in map(_decode_state, records):
        if any(len(vector) != len(to) for vector in state.vectors.values()):
            return ()  # other dense features
        vectors = {}
        for name, vector in state.vectors.items():
            vectors[name] = np.full(len(space), fills[name])
            vectors[name][to[to >= 0]] = vector[to >= 0]
        states.append(replace(state, vectors=vectors))
    return tuple(states)


def forget_earlier_states(store: NBestStore) -> None:
    """Remove the learner's state from all results but the newest.

    One state is enough to resume, and one may be large. A kill may come between a result and this,
    so a run starts with it, too.
    """
    done = [record for record in store.iterations() if record.result is not None]
    for record in done[:-1]:
        result = read_result(record)
        if result.learner is not None:
            store.record_result(record.iteration, replace(result, learner=None).as_record())
