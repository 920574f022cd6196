"""Test what shards learn together, wherever they are."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import CancelledError, Executor, ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.optimizers import Problem, Solution, algorithm, algorithms, corpus_score
from mosesplug.optimizers.online.epochs import Plan, StoredSource, run_epoch, split_into_batches
from mosesplug.optimizers.online.mixing import average
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.sharding import Mixing, Sharding
from mosesplug.tuning.parallel.executors import StopSignal
from mosesplug.tuning.parallel.list_files import read_lists, write_lists
from mosesplug.tuning.parallel.mixing import StoredCorpus, mix_weights
from mosesplug.tuning.parallel.optimize import (
    StoredShard,
    optimize_sharded,
)
from mosesplug.tuning.parallel.shards import (
    learn_in_shards,
    run_sharded_epoch,
    split_into_shards,
)
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import planted

ONLINE = [each for each in algorithms().values() if each.learner is not None]
SCALE = 0.2


def sparse_problem(seed: int) -> Problem:
    """A planted problem with three of its five features sparse, all of them to be tuned."""
    problem, _ = planted(seed, n_sentences=24, noise=1.0)
    made = problem.tuning_set
    values = made.dense[:, 2:]
    sparse = SparseRows(
        np.arange(0, values.size + 1, 3, dtype=np.int64),
        np.tile(np.arange(3, dtype=np.int32), len(values)),
        values.ravel().copy(),
    )
    space = type(made.space)(made.space.groups[:2], ("a_1", "b_é", "c_\udcff"))
    tuned = replace(made, space=space, dense=made.dense[:, :2].copy(), sparse=sparse)
    return replace(problem, tuning_set=tuned, active=np.ones(5, dtype=np.bool_))


def plan(problem: Problem, seed: int = 3, batch: int = 4) -> Plan:
    return Plan(seed, batch, problem.metric, problem.active_mask)


def solve(
    problem: Problem, name: str, sharding: Sharding, seed: int = 5, **options: Any
) -> Solution:
    tuner = algorithm(name)
    chosen = replace(tuner.options(), **{"epochs": 3, "batch": 4, **options})
    start, rng = SCALE * np.ones(5), np.random.default_rng(seed)
    return optimize_sharded(problem, tuner.bind(chosen), sharding, start, rng, no_progress)


@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 9))
def test_every_sentence_is_dealt_once(n_sentences: int, shards: int, seed: int) -> None:
    sentences = np.arange(100, 100 + n_sentences)
    if shards > n_sentences:
        with pytest.raises(UsageError, match="Lower --shards"):
            split_into_shards(sentences, shards, seed)
        return
    parts = split_into_shards(sentences, shards, seed)
    assert sorted(np.concatenate(parts).tolist()) == sentences.tolist()
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    again = split_into_shards(sentences, shards, seed)
    assert all((one == two).all() for one, two in zip(parts, again, strict=True))


def test_the_division_into_shards_differs_from_orders_of_epochs() -> None:
    sentences = np.arange(40)
    plan = Plan(7, 40, planted(1)[0].metric, np.ones(1, dtype=np.bool_))
    (order,) = split_into_batches(sentences, plan, 4)
    of_epoch = [sorted(part.tolist()) for part in np.array_split(order, 4)]
    assert [part.tolist() for part in split_into_shards(sentences, 4, 7)] != of_epoch


def test_lists_survive_a_round_trip_through_files(tmp_path: Path) -> None:
    made = sparse_problem(1).tuning_set
    write_lists(made, tmp_path)
    back = read_lists(tmp_path)
    assert back.space.groups == made.space.groups
    assert len(back.space) == len(made.space)
    for name in ("sentence_ids", "offsets", "dense", "stats", "lengths"):
        assert getattr(back, name).dtype == getattr(made, name).dtype
        assert getattr(back, name).tobytes() == getattr(made, name).tobytes()
    assert back.sparse is not None
    assert made.sparse is not None
    assert back.sparse.data.tobytes() == made.sparse.data.tobytes()
    assert not back.dense.flags.writeable


def test_a_directory_that_a_worker_does_not_see(tmp_path: Path) -> None:
    with (
        pytest.raises(DataError, match="--shard-directory"),
        StoredShard(str(tmp_path / "elsewhere"), np.arange(3)).open(),
    ):
        pass


@pytest.mark.parametrize("tuner", ONLINE, ids=lambda each: each.name)
def test_averaging_one_shard_equals_no_sharding(tuner: Any) -> None:
    problem = sparse_problem(2)
    chosen: dict[str, Any] = {"batch": 5, "averaging": "best"}
    if hasattr(tuner.options, "line_search"):  # rank learners search a line only without shards
        chosen["line_search"] = False
    options = replace(tuner.options(), epochs=3, **chosen)
    alone = tuner.optimize(
        problem, SCALE * np.ones(5), np.random.default_rng(5), options, no_progress
    )
    sharded = solve(problem, tuner.name, Sharding(1, "average"), **chosen)
    assert sharded.weights.tobytes() == alone.weights.tobytes()
    assert sharded.score == alone.score
    assert [each["loss"] for each in sharded.history] == [each["loss"] for each in alone.history]


def test_an_epoch_is_that_of_each_shard_and_spends_no_state() -> None:
    problem = sparse_problem(3)
    optimizer = algorithm("adagrad").bind(algorithm("adagrad").options())
    learner = optimizer.learner()
    source = StoredSource(problem.tuning_set)
    parts = split_into_shards(source.sentences, 3, 1)
    shards = [StoredShard(source, part) for part in parts]
    states = [learner.init(SCALE * np.ones(5)) for _ in shards]
    start = SCALE * np.ones(5)
    with ThreadPoolExecutor(3) as executor:
        results = learn_in_shards(executor, optimizer, states, shards, plan(problem), 1)
        again = learn_in_shards(executor, optimizer, states, shards, plan(problem), 1)
        onward, mix = run_sharded_epoch(
            executor,
            optimizer,
            states,
            shards,
            plan(problem),
            1,
            sharding=Sharding(3, "average"),
            corpus=StoredCorpus(problem),
            old=start,
        )
    assert all((state.vectors["weights"] == SCALE).all() for state in states)
    with shards[0].open() as first:
        own = run_epoch(learner, states[0], first, plan(problem), 1)
    assert own.state.vectors["weights"].tobytes() == results[0].state.vectors["weights"].tobytes()
    for one, two in zip(results, again, strict=True):
        assert one.state.vectors["weights"].tobytes() == two.state.vectors["weights"].tobytes()
    # Shards draw random numbers of their own, and go on with squares of their own.
    squares = {result.state.vectors["squares"].tobytes() for result in results}
    assert len(squares) == 3
    mean = average([result.state.vectors["weights"] for result in results])
    assert (mix.weights == mean).all()
    for mixed, result in zip(onward.states, results, strict=True):
        assert (mixed.vectors["weights"] == mean).all()
        assert (mixed.vectors["squares"] == result.state.vectors["squares"]).all()


def test_learners_stop_on_request() -> None:
    problem = sparse_problem(5)
    optimizer = algorithm("sgd").bind(algorithm("sgd").options())
    source = StoredSource(problem.tuning_set)
    shard, stop = StoredShard(source, source.sentences), StopSignal()
    stop.soon.set()
    state = optimizer.learner().init(np.ones(5))
    with ThreadPoolExecutor(1) as executor, pytest.raises(CancelledError):
        learn_in_shards(executor, optimizer, [state], [shard], plan(problem), 1, stop)


@pytest.fixture(scope="module")
def others() -> Iterator[Executor]:
    """A process for the tests of this file."""
    import multiprocessing

    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def test_processes_give_the_weights_of_threads(others: Executor, tmp_path: Path) -> None:
    problem = sparse_problem(4)
    write_lists(problem.tuning_set, tmp_path)
    optimizer = algorithm("adagrad").bind(algorithm("adagrad").options())
    source = StoredSource(problem.tuning_set)
    parts = split_into_shards(source.sentences, 3, 1)
    states = [optimizer.learner().init(SCALE * np.ones(5)) for _ in parts]
    inside = [StoredShard(source, part) for part in parts]
    outside = [StoredShard(str(tmp_path), part) for part in parts]
    with ThreadPoolExecutor(1) as executor:
        here = learn_in_shards(executor, optimizer, states, inside, plan(problem), 1)
    there = learn_in_shards(others, optimizer, states, outside, plan(problem), 1)
    for one, two in zip(here, there, strict=True):
        assert one.tally.totals.tobytes() == two.tally.totals.tobytes()
        for name, vector in one.state.vectors.items():
            assert vector.tobytes() == two.state.vectors[name].tobytes()


@pytest.mark.parametrize("mixing", ["average", "weighted", "line-search", "select"])
def test_the_number_of_workers_changes_nothing(mixing: Mixing) -> None:
    keep = 2 if mixing == "select" else 0
    problem = sparse_problem(6)
    results = [
        solve(replace(problem, threads=threads), "sgd", Sharding(4, mixing, keep))
        for threads in (1, 2, 4)
    ]
    assert len({result.weights.tobytes() for result in results}) == 1
    assert results[0].score == corpus_score(problem, results[0].weights)
    assert [each["epoch"] for each in results[0].history] == [1, 2, 3]
    assert {"score", "loss", "violations", "norm", "active", "updates", "rho"} <= set(
        results[0].history[0]
    )


def test_shards_learn() -> None:
    problem, _ = planted(7, n_sentences=80)
    start = corpus_score(problem, SCALE * np.ones(5))
    for mixing in ("average", "weighted", "line-search"):
        found = solve(problem, "adagrad", Sharding(4, mixing), epochs=10)
        assert found.score > 0.85 > start


def mix(
    problem: Problem, how: Sharding, old: NDArray[np.float64], *vectors: Any
) -> NDArray[np.float64]:
    counts = list(range(1, len(vectors) + 1))
    learned = [np.array(each) for each in vectors]
    space = problem.tuning_set.space
    return mix_weights(how, StoredCorpus(problem), space, old, learned, counts).weights


def test_mixing_by_hand() -> None:
    problem = sparse_problem(8)
    old = np.array([1.0, 1.0, 0.5, 0.5, 0.5])
    one, two = [1.0, 4.0, 3.0, 0.0, 0.2], [4.0, 1.0, 3.0, 0.6, 0.1]
    assert mix(problem, Sharding(2, "average"), old, one, two) == pytest.approx(
        [2.5, 2.5, 3.0, 0.3, 0.15]
    )
    assert mix(problem, Sharding(2, "weighted"), old, one, two) == pytest.approx(
        [3.0, 2.0, 3.0, 0.4, 0.4 / 3]
    )
    assert mix(problem, Sharding(2, "select", 1), old, one, two) == pytest.approx(
        [2.5, 2.5, 3.0, 0.0, 0.0]
    )


def test_selection_leaves_fixed_weights_alone() -> None:
    problem = sparse_problem(9)
    active = np.array([True, True, False, True, True])
    old = np.array([1.0, 1.0, 50.0, 0.5, 0.5])
    shard = [1.0, 1.0, 50.0, 0.1, 0.2]
    chosen = mix(replace(problem, active=active), Sharding(1, "select", 1), old, shard)
    assert chosen == pytest.approx([1.0, 1.0, 50.0, 0.0, 0.2])


def test_line_search_is_never_worse_than_before_or_the_mean() -> None:
    problem = sparse_problem(10)
    found = solve(problem, "sgd", Sharding(4, "line-search"), rate=5.0, epochs=6)
    scores = [each["score"] for each in found.history]
    assert scores == sorted(scores)
    assert scores[0] >= corpus_score(problem, SCALE * np.ones(5))


def test_averaging_over_epochs() -> None:
    problem = sparse_problem(11)
    solutions = [
        solve(problem, "adagrad", Sharding(2, "average"), epochs=epochs, averaging="last")
        for epochs in (1, 2, 3)
    ]
    # Results are normalized; the history has the norm from before.
    ends = [
        each.weights * each.history[-1]["norm"] / np.linalg.norm(each.weights) for each in solutions
    ]
    mean = solve(problem, "adagrad", Sharding(2, "average"), averaging="all")
    expected = np.mean(ends, axis=0)
    assert mean.weights == pytest.approx(expected / np.abs(expected[:2]).sum())
    assert mean.score == corpus_score(problem, mean.weights)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"shards": 0}, "at least 1"),
        ({"mixing": "vote"}, "--mixing must be one of average, .* not vote"),
        ({"workers": "elves"}, "threads, processes"),
        ({"async_order": "none"}, "arrival, fixed"),
        ({"mixing": "select"}, "requires --keep"),
        ({"keep": 3}, "no other mixing"),
    ],
)
def test_settings_that_do_not_go_together(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Sharding(**settings)


def test_other_batch_algorithms_have_no_shards() -> None:
    problem, _ = planted(12)
    tuner = algorithm("pro")
    with pytest.raises(UsageError, match="does not learn from mini-batches"):
        optimize_sharded(
            problem,
            tuner.bind(tuner.options()),
            Sharding(2),
            np.ones(5),
            np.random.default_rng(1),
            no_progress,
        )
