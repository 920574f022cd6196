"""Test starting weights at a given spread, and states that learners keep between decodings."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Problem, Solution, algorithm, algorithms
from mosesplug.optimizers.online.descent import AdagradOptions, adagrad_learner
from mosesplug.optimizers.online.epochs import (
    StoredSource,
    run_epoch,
)
from mosesplug.optimizers.online.learner import AVERAGE, LearnerState, add_averaging, mean_weights
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.online.starting import find_scale, start_states
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.online.state import decode_states, encode_states
from mosesplug.tuning.parallel.optimize import optimize_sharded
from mosesplug.tuning_set import TuningSet
from tests.optimizers.online.test_epochs import plan_of
from tests.optimizers.problems import planted

PROBLEM, _ = planted(5, n_sentences=20, noise=1.0)
START = np.array([0.5, -0.1, 0.1, 0.2, 0.1])
ONLINE = [each.name for each in algorithms().values() if each.learner is not None]


def spread_of(lists: TuningSet, weights: NDArray[np.float64]) -> float:
    """The root of the mean variance within lists, list by list."""
    scores = lists.model_scores(weights)
    pairs = zip(lists.offsets[:-1].tolist(), lists.offsets[1:].tolist(), strict=True)
    return float(np.sqrt(np.mean([scores[start:end].var() for start, end in pairs])))


def solve(
    problem: Problem, initial: NDArray[np.float64], name: str = "mira", **options: Any
) -> Solution:
    tuner = algorithm(name)
    made = tuner.options(batch=4, **options)
    return tuner.optimize(problem, initial, np.random.default_rng(8), made, no_progress)


def bytes_of(state: LearnerState) -> dict[str, bytes]:
    everything = {**state.vectors, **{f"memory {name}": a for name, a in state.memory.items()}}
    return {name: np.asarray(array).tobytes() for name, array in everything.items()}


# The rates of sgd depend on the number of epochs.
@pytest.mark.parametrize("name", [name for name in ONLINE if name != "sgd"])
def test_two_decodings_of_the_same_lists_are_epochs_of_one(name: str) -> None:
    keeping = {"keep_state": True, "averaging": "last"}
    first = solve(PROBLEM, START, name, epochs=2, **keeping)
    second = solve(replace(PROBLEM, states=first.states), first.weights, name, epochs=1, **keeping)
    whole = solve(PROBLEM, START, name, epochs=3, **keeping)
    np.testing.assert_array_equal(second.weights, whole.weights)
    assert bytes_of(second.states[0]) == bytes_of(whole.states[0])
    assert second.states[0].updates == whole.states[0].updates == 15
    anew = replace(PROBLEM, states=first.states)
    forgotten = solve(anew, START, name, epochs=2, keep_state=False, averaging="last")
    np.testing.assert_array_equal(forgotten.weights, first.weights)


def test_the_state_is_that_of_the_weights() -> None:
    """The best of several epochs is not the last one here."""
    found = solve(PROBLEM, START, "perceptron", epochs=6, averaging="best", rate=1.0)
    scores = [step["score"] for step in found.history]
    assert max(scores) > scores[-1]
    weights = found.states[0].vectors["weights"]
    np.testing.assert_allclose(weights / np.abs(weights).sum(), found.weights, rtol=1e-12)
    assert found.states[0].updates == 5 * (1 + scores.index(max(scores)))


def test_changed_weights_replace_those_of_the_state_at_its_scale() -> None:
    learner = adagrad_learner(AdagradOptions())
    state = learner.init(10.0 * START)
    state.vectors["squares"][:], state.vectors["since"][:] = 3.0, 5.0
    state = replace(state, updates=5)
    problem = replace(PROBLEM, states=(state,))
    (same,) = start_states(problem, START, learner, OnlineOptions())
    assert bytes_of(same) == bytes_of(state)
    assert not np.shares_memory(same.vectors["weights"], state.vectors["weights"])
    other = START[::-1].copy()
    (changed,) = start_states(problem, other, learner, OnlineOptions())
    np.testing.assert_allclose(changed.vectors["weights"], 10.0 * other)
    np.testing.assert_array_equal(changed.vectors["squares"], 3.0)


def test_means_start_again_with_each_decoding() -> None:
    learner = add_averaging(adagrad_learner(AdagradOptions()))
    plan, source = plan_of(5, 4), StoredSource(PROBLEM.tuning_set)
    state = run_epoch(learner, learner.init(START.copy()), source, plan, 1).state
    mean = mean_weights(learner, state)
    problem = replace(PROBLEM, states=(state,))
    (again,) = start_states(problem, mean, learner, OnlineOptions())
    # The mean is what the run decoded with; learning goes on from the last weights.
    np.testing.assert_array_equal(learner.weights(again), learner.weights(state))
    after: list[NDArray[np.float64]] = []
    again = run_epoch(
        learner,
        again,
        source,
        plan,
        2,
        on_batch=lambda done: after.append(learner.weights(done.state)),
    ).state
    np.testing.assert_allclose(mean_weights(learner, again), np.mean(after, axis=0), rtol=1e-13)


@pytest.mark.parametrize("factor", [1e-150, 1.0, 1e90])
def test_scale_of_the_start(factor: float) -> None:
    lists = PROBLEM.tuning_set
    learner = adagrad_learner(AdagradOptions())
    options = OnlineOptions(start_spread=3.0)
    (state,) = start_states(PROBLEM, factor * START, learner, options)
    weights = learner.weights(state)
    assert spread_of(lists, weights) == pytest.approx(3.0)
    np.testing.assert_allclose(weights / weights[0], START / START[0], rtol=1e-9)


@pytest.mark.parametrize(
    "problem",
    [
        replace(PROBLEM, active=np.array([True, True, True, True, False])),
        replace(PROBLEM, keeps_scale=True),
        replace(PROBLEM, tuning_set=PROBLEM.tuning_set.take_sentences(np.zeros(0, np.int64))),
    ],
    ids=["inactive weights", "fixed scale", "no lists"],
)
def test_scale_is_kept_where_it_must_be(problem: Problem) -> None:
    learner = adagrad_learner(AdagradOptions())
    (state,) = start_states(problem, START, learner, OnlineOptions(start_spread=3.0))
    np.testing.assert_array_equal(learner.weights(state), START)


def test_equal_scores_have_no_scale() -> None:
    constant = replace(PROBLEM.tuning_set, dense=np.ones_like(PROBLEM.tuning_set.dense))
    assert find_scale(constant, START, 1.0) == 1.0
    assert find_scale(PROBLEM.tuning_set, np.zeros(5), 1.0) == 1.0


def test_shards_keep_their_states() -> None:
    optimizer = algorithm("adagrad").bind(AdagradOptions(epochs=2, batch=4, averaging="last"))
    sharding, rng = Sharding(2), np.random.default_rng

    first = optimize_sharded(PROBLEM, optimizer, sharding, START, rng(3))
    assert len(first.states) == 2
    known = replace(PROBLEM, states=first.states)
    second = optimize_sharded(known, optimizer, sharding, first.weights, rng(3))
    longer = algorithm("adagrad").bind(AdagradOptions(epochs=4, batch=4, averaging="last"))
    whole = optimize_sharded(PROBLEM, longer, sharding, START, rng(3))
    np.testing.assert_array_equal(second.weights, whole.weights)
    # Without shards, or with others, their states are of no use.
    (alone,) = start_states(known, START, optimizer.learner(), optimizer.online)
    assert alone.updates == 0


def test_stored_states_follow_the_names_of_features() -> None:
    learner = add_averaging(adagrad_learner(AdagradOptions()))
    before = FeatureSpace((("LM", 1),), ("a", "b", "gone"))
    vectors = {name: np.arange(4.0) + 10.0 * k for k, name in enumerate(sorted(learner.fills))}
    states = [LearnerState(vectors, {"background": np.ones((2, 3))}, 7)] * 2
    after = FeatureSpace((("LM", 1),), ("new", "b", "a"))
    for kept in (states[:1], states):
        record = encode_states(kept, before)
        found = decode_states(record, after, learner)
        assert len(found) == len(kept)
        for state in found:
            assert state.updates == 7
            np.testing.assert_array_equal(state.memory["background"], np.ones((2, 3)))
            for name, vector in state.vectors.items():
                fill = {**learner.fills, AVERAGE: 0.0}[name]
                np.testing.assert_array_equal(vector, vectors[name][[0, 0, 2, 1]] * [1, 0, 1, 1])
                assert fill == 0.0
    assert decode_states(None, after, learner) == ()
    assert decode_states(record, FeatureSpace((("LM", 2),)), learner) == ()
    other = algorithm("arow").bind(algorithm("arow").options()).learner()
    assert decode_states(record, after, other) == ()
    assert encode_states((), after) is None
