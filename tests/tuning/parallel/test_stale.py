"""Test stale changes that one writer applies."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers import Optimizer, Problem, algorithm, algorithms, corpus_score
from mosesplug.optimizers.online.epochs import (
    BatchProgress,
    EpochReport,
    Plan,
    StoredSource,
    is_usable,
    make_step,
    run_epoch,
    split_into_batches,
)
from mosesplug.optimizers.online.learner import Change, Learner, LearnerState, Step
from mosesplug.optimizers.online.starting import copy_state
from mosesplug.optimizers.problem import no_progress
from mosesplug.settings.sharding import AsyncOrder, Sharding
from mosesplug.tuning.parallel.executors import StopSignal
from mosesplug.tuning.parallel.optimize import optimize_sharded
from mosesplug.tuning.parallel.shards import ShardSource
from mosesplug.tuning.parallel.stale import StoredBatches, run_stale_epoch
from mosesplug.tuning_set import Batch
from tests.optimizers.problems import planted
from tests.waiting import LIMIT

ONLINE = [each for each in algorithms().values() if each.learner is not None]
SCALE = 0.2


@dataclass(frozen=True)
class SlowShard:
    """Lists that take a while, each batch as long as its last sentence says."""

    source: StoredSource
    delay: Callable[[int], float] = lambda sentence: 0.0

    @property
    def sentences(self) -> NDArray[np.int64]:
        return self.source.sentences

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        time.sleep(self.delay(int(sentences[-1])))
        return self.source.batch(sentences, weights)

    def restrict(self, learner: Learner) -> Learner:
        return learner

    def finish(self, report: EpochReport, learner: Learner) -> EpochReport:
        return report

    def open(self, stop: StopSignal | None = None) -> AbstractContextManager[ShardSource]:
        return nullcontext(self)


def epoch(
    problem: Problem,
    optimizer: Any,
    workers: int,
    order: AsyncOrder,
    *,
    delay: Callable[[int], float] = lambda sentence: 0.0,
    threads: int | None = None,
    on_batch: Callable[[BatchProgress], None] = lambda done: None,
) -> EpochReport:
    shard = SlowShard(StoredSource(problem.tuning_set), delay)
    learner = optimizer.learner()
    with ThreadPoolExecutor(threads or workers) as executor:
        return run_stale_epoch(
            learner,
            learner.init(SCALE * np.ones(5)),
            StoredBatches(executor, optimizer, shard),
            plan(problem),
            1,
            workers=workers,
            order=order,
            on_batch=on_batch,
        )


def plan(problem: Problem) -> Plan:
    return Plan(3, 4, problem.metric, problem.active_mask)


def optimizer_of(name: str) -> Optimizer:
    return algorithm(name).bind(algorithm(name).options())


def same(one: EpochReport, two: EpochReport) -> bool:
    vectors = all(
        vector.tobytes() == two.state.vectors[name].tobytes()
        for name, vector in one.state.vectors.items()
    )
    memory = all(
        array.tobytes() == two.state.memory[name].tobytes()
        for name, array in one.state.memory.items()
    )
    return vectors and memory and one.tally.means == two.tally.means


@pytest.mark.parametrize("tuner", ONLINE, ids=lambda each: each.name)
def test_one_worker_in_order_is_ordinary_learning(tuner: Any) -> None:
    problem, _ = planted(21, n_sentences=30, noise=1.0)
    optimizer = optimizer_of(tuner.name)
    learner = optimizer.learner()
    source = StoredSource(problem.tuning_set)
    serial = run_epoch(learner, learner.init(SCALE * np.ones(5)), source, plan(problem), 1)
    assert same(epoch(problem, optimizer, 1, "fixed"), serial)
    assert same(epoch(problem, optimizer, 1, "arrival"), serial)


def test_in_fixed_order_staleness_is_the_number_of_workers() -> None:
    problem, _ = planted(22, n_sentences=30, noise=1.0)
    workers, optimizer = 3, optimizer_of("adagrad")
    learner, source = optimizer.learner(), StoredSource(problem.tuning_set)
    batches = split_into_batches(source.sentences, plan(problem), 1)
    past = [learner.init(SCALE * np.ones(5))]
    for place, sentences in enumerate(batches):
        step = make_step(plan(problem), 1, place, len(batches), 5)
        seen = past[max(0, place + 1 - workers)]
        batch = source.batch(sentences, lambda: np.zeros(0))
        past.append(learner.apply(copy_state(past[-1]), learner.change(seen, batch, step), step))
    found = epoch(problem, optimizer, workers, "fixed")
    for name, vector in past[-1].vectors.items():
        assert vector.tobytes() == found.state.vectors[name].tobytes()


@pytest.mark.parametrize("name", ["adagrad", "o-oro"])
def test_in_order_the_timing_changes_nothing(name: str) -> None:
    problem, _ = planted(23, n_sentences=30, noise=1.0)
    optimizer = optimizer_of(name)
    quick = epoch(problem, optimizer, 3, "fixed")
    uneven = epoch(problem, optimizer, 3, "fixed", delay=lambda sentence: 0.004 * (sentence % 3))
    assert same(quick, uneven)
    assert same(quick, epoch(problem, optimizer, 3, "fixed", threads=1))


def test_changes_are_applied_as_they_arrive() -> None:
    problem, _ = planted(24, n_sentences=32)
    batches = split_into_batches(StoredSource(problem.tuning_set).sentences, plan(problem), 1)
    first = int(batches[0][-1])
    order: list[int] = []
    numbers = {int(sentences[-1]): place for place, sentences in enumerate(batches)}
    others_applied = threading.Event()

    def delay(sentence: int) -> float:
        if sentence == first:
            others_applied.wait(LIMIT)
        return 0.0

    def on_batch(done: BatchProgress) -> None:
        order.append(numbers[int(done.sentences[-1])])
        if len(order) == 7:
            others_applied.set()

    found = epoch(problem, optimizer_of("sgd"), 2, "arrival", delay=delay, on_batch=on_batch)
    assert order[0] == 1  # the first batch takes long; the others do not wait for it
    assert order[-1] == 0
    assert sorted(order) == list(range(8))
    assert found.state.updates == 8
    assert np.isfinite(found.state.vectors["weights"]).all()


@pytest.mark.parametrize("tuner", ONLINE, ids=lambda each: each.name)
def test_every_learner_bears_stale_changes(tuner: Any) -> None:
    problem, _ = planted(29, n_sentences=40, noise=1.0)
    options = replace(tuner.options(), epochs=3, batch=2)
    sharding = Sharding(5, asynchronous=True, async_order="fixed")
    start, rng = SCALE * np.ones(5), np.random.default_rng(5)
    found = optimize_sharded(problem, tuner.bind(options), sharding, start, rng, no_progress)
    assert is_usable(found.weights)
    assert found.history[-1]["updates"] == 60


@pytest.mark.parametrize("tuner", ONLINE, ids=lambda each: each.name)
def test_states_and_changes_can_travel(tuner: Any) -> None:
    problem, _ = planted(30, n_sentences=8, noise=1.0)
    optimizer = pickle.loads(pickle.dumps(optimizer_of(tuner.name)))
    learner = optimizer.learner()
    step = make_step(plan(problem), 1, 0, 1, 5)
    state = learner.init(SCALE * np.ones(5))
    for _ in range(2):
        change = learner.change(pickle.loads(pickle.dumps(state)), problem.tuning_set, step)
        state = learner.apply(state, pickle.loads(pickle.dumps(change)), step)
    again = pickle.loads(pickle.dumps(state))
    assert learner.weights(again).tobytes() == learner.weights(state).tobytes()


@dataclass(frozen=True)
class Counting:
    """A optimizer whose memory adds up sentences, and whose workers look whether states move."""

    learned: tuple[str, ...] = ()

    def learner(self) -> Learner:
        def change(state: LearnerState, batch: Batch, step: Step) -> Change:
            before = state.vectors["weights"].copy()
            time.sleep(0.002)
            if state.vectors["weights"].tobytes() != before.tobytes():
                raise AssertionError("the state of a worker was written")
            memory = {"sentences": state.memory["sentences"] + batch.n_sentences}
            rows = np.zeros((int(batch.sentence_ids.max()) + 1, 1))
            old = state.memory["table"]
            table = np.zeros((max(len(rows), len(old)), 1))
            table[: len(old)] = old
            table[batch.sentence_ids] = 1.0
            return Change(
                np.arange(5), np.ones(5), memory={**memory, "table": table}, report={"loss": 1.0}
            )

        def apply(state: LearnerState, change: Change, step: Step) -> LearnerState:
            state.vectors["weights"][change.columns] += change.values
            return LearnerState(state.vectors, change.memory, state.updates + 1)

        def init(weights: NDArray[np.float64]) -> LearnerState:
            memory = {"sentences": np.zeros(()), "table": np.zeros((0, 1))}
            return LearnerState({"weights": weights.copy()}, memory)

        return Learner({"weights": 0.0}, init, change, apply, lambda s: s.vectors["weights"].copy())


@pytest.mark.parametrize("order", ["arrival", "fixed"])
def test_no_change_is_lost_and_no_state_is_written_under_a_worker(order: AsyncOrder) -> None:
    problem, _ = planted(25, n_sentences=41)
    found = epoch(problem, Counting(), 4, order)
    assert found.state.vectors["weights"] == pytest.approx(SCALE + 11 * np.ones(5))
    assert found.state.memory["sentences"] == 41
    assert found.state.memory["table"].ravel().tolist() == [1.0] * 41
    assert found.tally.means == {"loss": 1.0}


@pytest.mark.parametrize("name", ["mira", "arow", "rm-pa", "perceptron", "sgd", "oro"])
def test_the_first_background_counts_once(name: str) -> None:
    problem, _ = planted(26, n_sentences=41)
    entry = algorithm(name)
    chosen = entry.options(cost="background", background_decay=1.0)
    found = epoch(problem, entry.bind(chosen), 4, "fixed")
    assert found.state.memory["background"][-1] == 1 + 41


@dataclass(frozen=True)
class Broken(Counting):
    """Changes that are no numbers."""

    def learner(self) -> Learner:
        whole = super().learner()

        def change(state: LearnerState, batch: Batch, step: Step) -> Change:
            return replace(whole.change(state, batch, step), values=np.full(5, np.nan))

        return replace(whole, change=change)


def test_a_change_that_is_not_finite_is_an_error() -> None:
    problem, _ = planted(26, n_sentences=8)
    with pytest.raises(OptimizerError, match="not a finite number"):
        epoch(problem, Broken(), 2, "arrival")


@pytest.mark.parametrize("averaging", ["last", "all", "best"])
def test_learns_over_epochs(averaging: str) -> None:
    problem, _ = planted(27, n_sentences=80)
    problem = replace(problem, threads=2)
    tuner = algorithm("adagrad")
    options = replace(tuner.options(), epochs=10, batch=8, averaging=averaging)

    def solve(order: AsyncOrder) -> tuple[bytes, float]:
        sharding = Sharding(3, asynchronous=True, async_order=order)
        start, rng = SCALE * np.ones(5), np.random.default_rng(5)
        found = optimize_sharded(problem, tuner.bind(options), sharding, start, rng, no_progress)
        assert found.score == corpus_score(problem, found.weights)
        assert [each["updates"] for each in found.history] == list(range(10, 101, 10))
        return found.weights.tobytes(), found.score

    assert solve("fixed") == solve("fixed")
    assert solve("arrival")[1] > 0.8 > corpus_score(problem, SCALE * np.ones(5))


def test_one_worker_equals_no_sharding() -> None:
    problem, _ = planted(28, n_sentences=30, noise=1.0)
    tuner = algorithm("oro")
    options = replace(tuner.options(), epochs=3, batch=4, averaging="all", line_search=False)
    start = SCALE * np.ones(5)
    alone = tuner.optimize(problem, start, np.random.default_rng(5), options, no_progress)
    sharding = Sharding(1, asynchronous=True, async_order="fixed")
    rng = np.random.default_rng(5)
    one = optimize_sharded(problem, tuner.bind(options), sharding, start, rng, no_progress)
    assert one.weights.tobytes() == alone.weights.tobytes()
