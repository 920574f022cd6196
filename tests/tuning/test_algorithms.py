"""Every registered optimizer in the loop: normalized, sparse weights by name, resumable."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.references import read_references
from formats.weights.files import read_dense, read_sparse, read_weights_txt
from mosesplug.errors import UsageError
from mosesplug.events import CommandStarted, DecodingProgress, Event
from mosesplug.optimizers import Optimizer, Problem, Solution, algorithm, algorithms, no_progress
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import Configuration, tune
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import read_result, read_start

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any

LEARNING_SPARSE = ["kbmira", "pro", "pro+mert"]


def configured(toy: Toy, name: str, work: str = "work", **more: Any) -> Configuration:
    made = {"algorithm": name, "options": {}, **more.pop("optimization", {})}
    found: Configuration = toy.configuration(work, optimization=made, **more)
    return found


def few_epochs(name: str) -> dict[str, int]:
    """Epochs of a learner; ``mira``, whose steps are small, keeps its own number."""
    is_learner = algorithms()[name].learner is not None
    return {"epochs": 8} if is_learner and name != "mira" else {}


def test_penalties_measure_distances_from_the_first_weights_of_a_run(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each decoding starts from other weights, and a continued run has the same first ones."""
    optimize, centers, starts = Optimizer.optimize, [], []

    def note(self: Optimizer, problem: Problem, initial: Any, *rest: Any) -> Solution:
        centers.append(problem.center)
        starts.append(initial)
        return optimize(self, problem, initial, *rest)

    monkeypatch.setattr(Optimizer, "optimize", note)
    more: Any = {"minimum_change": 0.0, "optimization": {"options": {"rounds": 1}}}
    tune(configured(toy, "rampion", maximum_iterations=2, **more))
    tune(configured(toy, "rampion", maximum_iterations=3, existing="continue", **more))
    assert len(centers) == 3
    for center in centers:
        np.testing.assert_array_equal(center, starts[0])
    for start in starts[1:]:
        assert not np.allclose(start, starts[0], atol=1e-3)


@pytest.mark.parametrize("name", sorted(algorithms()))
def test_raises_the_score(toy: Toy, name: str) -> None:
    result = tune(configured(toy, name, optimization={"options": few_epochs(name)}))
    first, *_, last = result.iterations
    assert last.first_best_score > first.first_best_score
    assert sum(map(abs, result.weights.dense)) == pytest.approx(1.0)
    work = toy.directory / "work"
    # Three, or fewer where the run converged.
    for iteration in range(1, len(result.iterations)):
        norm = np.abs(read_weights_txt(work / f"run{iteration}.weights.txt")).sum()
        assert norm == pytest.approx(1.0)


@pytest.mark.parametrize("name", LEARNING_SPARSE)
def test_sparse_weights_reach_the_decoder_by_name(toy: Toy, log: Log, name: str) -> None:
    result = tune(configured(toy, name, flags="-sparse"), log)
    work = toy.directory / "work"
    assert not (work / "run1.sparse-weights").exists()
    commands = [e.command for e in log.of(CommandStarted) if "-n-best-list" in e.command]
    assert "-weight-file" not in commands[0]
    for number, command in enumerate(commands[1:], start=2):
        assert command[command.index("-weight-file") + 1] == f"run{number}.sparse-weights"
        before = result.iterations[number - 1].weights.sparse
        assert read_sparse(work / f"run{number}.sparse-weights") == before
        assert len(before) > 5
        assert all(weight_name.startswith("wt_") for weight_name in before)
    assert read_sparse(work / "run4.sparse-weights") == result.weights.sparse


@pytest.mark.parametrize("name", LEARNING_SPARSE)
def test_an_iteration_is_the_optimizer_on_the_store(toy: Toy, name: str) -> None:
    run = configured(toy, name, flags="-sparse", maximum_iterations=2)
    result = tune(run)
    metric = run.metric
    references = metric.prepare(read_references(run.references))
    work = toy.directory / "work"
    with NBestStore.open(work / "nbests.lmdb") as store:
        lists = store.tuning_set(range(1, 3), metric=metric, references=references)
    values = [v for _, values in read_dense(work / "run2.dense") for v in values]
    start = Weights(tuple(values), read_sparse(work / "run2.sparse-weights"))
    tuner = algorithm(name)
    rng = np.random.default_rng([5, 2])
    solution = tuner.optimize(
        Problem(lists, metric),
        start.vector(lists.space),
        rng,
        tuner.options(),
        no_progress,
    )
    assert result.weights.vector(lists.space) == pytest.approx(solution.weights, abs=1e-15)


class Stop(Exception):
    """Somebody stops the run."""


@pytest.mark.parametrize("name", [*LEARNING_SPARSE, "adagrad", "perceptron"])
def test_resuming_gives_the_same_result(
    toy: Toy, name: str, left_by_run: Callable[[Path], dict[str, bytes]]
) -> None:
    more = {"flags": "-sparse", "optimization": {"options": few_epochs(name)}}
    tune(configured(toy, name, "whole", **more))

    def stop(event: Event) -> None:
        if isinstance(event, DecodingProgress) and event.iteration == 3:
            raise Stop

    with pytest.raises(Stop):
        tune(configured(toy, name, "parts", **more), stop)
    tune(configured(toy, name, "parts", **more, existing="continue"))
    whole, parts = (left_by_run(toy.directory / which) for which in ("whole", "parts"))
    assert parts.keys() == whole.keys()
    for file in whole:
        if not file.endswith((".mdb", ".out.gz")):
            assert parts[file] == whole[file], file


def test_learners_go_on_where_they_ended(toy: Toy) -> None:
    """Each iteration is the learner on the merged lists, with its state after the last one."""
    run = configured(toy, "adagrad", flags="-sparse", optimization={"options": {"epochs": 2}})
    tune(run)
    metric, tuner = run.metric, algorithm("adagrad")
    references = metric.prepare(read_references(run.references))
    before: Solution | None = None
    work = toy.directory / "work"
    with NBestStore.open(work / "nbests.lmdb") as store:
        records = store.iterations()
        assert len(records) > 1
        for number, record in enumerate(records, start=1):
            lists = store.tuning_set(range(1, number + 1), metric=metric, references=references)
            states = ()
            if before is not None:
                fresh = len(lists.space) - len(before.weights)
                (state,) = before.states
                vectors = {name: np.pad(v, (0, fresh)) for name, v in state.vectors.items()}
                states = (replace(state, vectors=vectors),)
            before = tuner.optimize(
                Problem(lists, metric, states=states),
                read_start(record).weights.vector(lists.space),
                np.random.default_rng([5, number]),
                tuner.options(epochs=2),
                no_progress,
            )
            assert record.result is not None
            result = read_result(record)
            np.testing.assert_array_equal(result.weights.vector(lists.space), before.weights)
            # Only the newest state is needed.
            assert (result.learner is None) == (number < len(records))
        assert result.learner is not None
        (state,) = before.states
        assert result.learner["updates"] == state.updates
        for name, vector in state.vectors.items():
            np.testing.assert_array_equal(result.learner["vectors"][name], vector)


def test_interpolated_sparse_weights(toy: Toy) -> None:
    run = configured(
        toy,
        "kbmira",
        flags="-sparse",
        maximum_iterations=5,
        optimization={"interpolation": 0.25, "options": {"epochs": 3}},
    )
    result = tune(run)
    work = toy.directory / "work"
    three, four = (result.iterations[n].weights for n in (3, 4))
    # A quarter of what was found in iteration 4; the rest is what it was decoded with.
    metric = run.metric
    references = metric.prepare(read_references(run.references))
    with NBestStore.open(work / "nbests.lmdb") as store:
        lists = store.tuning_set(range(1, 5), metric=metric, references=references)
    tuner = algorithm("kbmira")
    found = tuner.optimize(
        Problem(lists, metric),
        three.vector(lists.space),
        np.random.default_rng([5, 4]),
        tuner.options(epochs=3),
        no_progress,
    ).weights
    expected = 0.25 * found + 0.75 * three.vector(lists.space)
    assert four.vector(lists.space) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize(
    ("optimization", "why"),
    [
        ({"sharding": Sharding(shards=1000)}, "Lower --shards"),
        ({"options": {"background_decay": 2.0}}, "from 0 to 1"),
    ],
)
def test_a_rejected_run_leaves_the_earlier_one_alone(
    toy: Toy, left_by_run: Any, optimization: dict[str, Any], why: str
) -> None:
    tune(configured(toy, "mira", maximum_iterations=1))
    before = left_by_run(toy.directory / "work")
    with pytest.raises(UsageError, match=why):
        tune(configured(toy, "mira", optimization=optimization, existing="overwrite"))
    assert left_by_run(toy.directory / "work") == before
