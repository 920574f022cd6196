"""Test batch optimizers on shards, in threads and processes."""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers import Problem, Solution, algorithm, algorithms
from mosesplug.optimizers.batch.mira.hypotheses import ListHypotheses
from mosesplug.optimizers.batch.mira.kbmira import list_learner
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.list_candidates import Sharded
from mosesplug.optimizers.lists.shards import BLOCKS, SMALLEST_BLOCK, ListShard, split_into_blocks
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel import executors
from mosesplug.tuning.parallel.executors import assign_places, open_processes
from mosesplug.tuning.parallel.list_files import (
    ShardRecipe,
    forget_shards,
    work_on_shard,
    write_lists,
)
from mosesplug.tuning.parallel.list_shards import divide_lists, open_list_shards
from mosesplug.tuning.parallel.optimize import optimize_sharded
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import planted, planted_for, space_of

BATCH = [each for each in algorithms().values() if each.maps_shards]
START = np.array([0.3, -0.1, 0.2, 0.4, 0.1])
PROCESSES = Sharding(3, workers="processes")


def solve(problem: Problem, name: str, sharding: Sharding | None, **options: Any) -> Solution:
    tuner = algorithm(name)
    optimizer, rng = tuner.bind(replace(tuner.options(), **options)), np.random.default_rng(5)
    if sharding is None:
        return optimizer.optimize(problem, START, rng)
    return optimize_sharded(problem, optimizer, sharding, START, rng)


def with_sparse(problem: Problem) -> Problem:
    """The last two features are sparse, and all are tuned."""
    made = problem.tuning_set
    values = made.dense[:, 3:]
    sparse = SparseRows(
        np.arange(0, values.size + 1, 2, dtype=np.int64),
        np.tile(np.arange(2, dtype=np.int32), len(values)),
        values.ravel().copy(),
    )
    space = type(made.space)(made.space.groups[:3], ("a_1", "b_2"))
    tuned = replace(made, space=space, dense=made.dense[:, :3].copy(), sparse=sparse)
    return replace(problem, tuning_set=tuned, active=np.ones(5, dtype=np.bool_))


def with_outside_scores(problem: Problem) -> Problem:
    """Statistics that are no integers."""
    made = problem.tuning_set
    stats = np.array(made.stats, dtype=np.float64) * 0.1
    return replace(problem, tuning_set=replace(made, stats=stats))


def with_empty_sentences(problem: Problem) -> Problem:
    """Sentences without hypotheses before, between and after the others."""
    made = problem.tuning_set
    offsets = np.repeat(made.offsets, 3)
    ids = np.arange(len(offsets) - 1)
    return replace(problem, tuning_set=replace(made, offsets=offsets, sentence_ids=ids))


def not_negative() -> Bounds:
    bounds = Bounds.none(5)
    return replace(bounds, low=np.zeros(5))


SHAPES: dict[str, Any] = {
    "dense": lambda problem: problem,
    "sparse": with_sparse,
    "floats": with_outside_scores,
    "empty sentences": with_empty_sentences,
    "inactive": lambda problem: replace(problem, active=np.arange(5) > 0),
    "bounds": lambda problem: replace(problem, bounds=not_negative()),
}


def run_mert(shape: str, sharding: Sharding | None) -> Solution:
    problem = SHAPES[shape](planted(11, n_sentences=24, noise=1.0)[0])
    chosen = {"restarts": 1, "polish": 1, "random_directions": 2}
    return solve(problem, "mert", sharding, **chosen)


@cache
def run_mert_on_whole_lists(shape: str) -> Solution:
    return run_mert(shape, None)


@pytest.mark.parametrize("shards", [1, 7])
@pytest.mark.parametrize("shape", SHAPES)
def test_mert_has_the_bytes_of_the_whole_lists(shape: str, shards: int) -> None:
    expected = run_mert_on_whole_lists(shape)
    found = run_mert(shape, Sharding(shards))
    assert found.weights.tobytes() == expected.weights.tobytes()
    assert found.history == expected.history
    assert found.score == expected.score


@pytest.mark.parametrize("name", ["softmax", "risk", "linear-bleu", "xbleu"])
@pytest.mark.parametrize("shape", [with_empty_sentences, with_sparse], ids=["dense", "sparse"])
def test_sums_over_shards_are_those_of_the_whole_lists(name: str, shape: Any) -> None:
    problem = shape(planted_for(algorithm("xbleu"), 12, n_sentences=24, noise=1.0))
    expected = solve(problem, name, None)
    for shards in (1, 2, 5):
        found = solve(problem, name, Sharding(shards))
        np.testing.assert_allclose(found.weights, expected.weights, atol=1e-9)
        assert shards > 1 or found.weights.tobytes() == expected.weights.tobytes()


@pytest.mark.parametrize("name", ["softmax", "risk", "xbleu"])
def test_shards_of_whole_blocks_have_the_bytes_of_the_whole_lists(name: str) -> None:
    problem = planted_for(algorithm("xbleu"), 13, n_sentences=90, n_hyps=200, noise=1.0)
    assert len(split_into_blocks(problem.tuning_set.offsets)) == 5
    expected = solve(problem, name, None)
    for shards in (2, 3, 4):
        found = solve(problem, name, Sharding(shards))
        assert found.weights.tobytes() == expected.weights.tobytes()


def test_one_shard_of_kbmira_has_the_bytes_of_the_whole_lists() -> None:
    problem = with_sparse(planted(14, n_sentences=24, noise=1.0)[0])
    expected = solve(problem, "kbmira", None, epochs=4)
    assert solve(problem, "kbmira", Sharding(1), epochs=4).weights.tobytes() == (
        expected.weights.tobytes()
    )


@pytest.mark.parametrize("shape", ["dense", "floats", "inactive", "empty sentences"])
def test_kbmira_mixes_the_parameters_of_shards(shape: str) -> None:
    """McDonald et al. 2010, Figure 3, with a learner for each shard."""
    problem = SHAPES[shape](planted(15, n_sentences=24, noise=1.0)[0])
    options = replace(algorithm("kbmira").options(), epochs=3, shuffle=False)
    lists, n_sentences = problem.tuning_set, problem.tuning_set.n_sentences
    parts = [lists.view_sentences(0, n_sentences // 2)]
    parts.append(lists.view_sentences(n_sentences // 2, n_sentences))
    learners = [list_learner(replace(problem, tuning_set=part), START, options) for part in parts]
    sums, count = 2.0 * START.astype(np.float32), 2
    scores, averages = [], []
    for _ in range(options.epochs):
        for learner in learners:
            for sentence in range(learner.n_sentences):
                before = learner.updates
                learner.visit(np.array([sentence]))
                if learner.updates > before:
                    sums, count = sums + learner.state.weights, count + 1
        mean = np.mean([learner.state.weights for learner in learners], axis=0)
        for learner in learners:
            learner.average()
            learner.state.weights[:] = mean
        averages.append(sums / count)
        weights = averages[-1].astype(np.float32)
        totals = sum(ListHypotheses(part, problem.metric).statistics(weights) for part in parts)
        scores.append(float(problem.metric.score(totals)))
    found = solve(problem, "kbmira", Sharding(2), epochs=3, shuffle=False)
    assert [step["score"] for step in found.history] == pytest.approx(scores)
    expected = np.where(problem.active_mask, averages[int(np.argmax(scores))], START)
    ratio = np.abs(found.weights).sum() / np.abs(expected).sum()
    np.testing.assert_allclose(found.weights, ratio * expected, atol=1e-5)


@pytest.mark.usefixtures("forked_workers")
def test_processes_have_the_bytes_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One optimizer for each way to use the lists: lines, sums with rows, and states.

    The first problem starts a process of its own, the others use the same ones.
    """
    chosen: dict[str, dict[str, Any]] = {
        "mert": {"restarts": 1, "polish": 0},
        "kbmira": {"epochs": 2},
        "risk": {"error": "pseudo-corpus", "quench_end": 10.0},
        "xbleu": {"quench_end": 1.0},
    }
    problem = planted_for(algorithm("xbleu"), 16, n_sentences=24, noise=1.0)
    here = {
        name: solve(replace(problem, threads=2), name, Sharding(3), **options).weights.tobytes()
        for name, options in chosen.items()
    }
    own = solve(replace(problem, threads=1), "mert", PROCESSES, **chosen["mert"])
    assert own.weights.tobytes() == here["mert"]
    with ExitStack() as stack:
        opened = [stack.enter_context(open_processes(1)) for _ in range(2)]
        for threads in (1, 2):
            for name, options in chosen.items():
                unused = iter(opened)
                monkeypatch.setattr(
                    executors, "open_processes", lambda _, u=unused: nullcontext(next(u))
                )
                there = solve(replace(problem, threads=threads), name, PROCESSES, **options)
                assert there.weights.tobytes() == here[name]
                assert len(list(unused)) == 2 - threads


@given(
    st.lists(st.integers(0, 9), min_size=1, max_size=30).filter(any),
    st.integers(1, 40),
)
def test_shards_are_whole_blocks_and_have_hypotheses(sizes: list[int], shards: int) -> None:
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    blocks = split_into_blocks(offsets, shards)
    parts = divide_lists(offsets, shards)
    assert 1 <= len(parts) <= shards
    positions = [position for part in parts for position in part.sentences]
    assert positions[0] == 0
    assert positions[-1] == len(sizes)
    assert positions[1:-1:2] == positions[2:-1:2]
    found = [part.sentences[0] + part.blocks for part in parts]
    assert np.concatenate([found[0][:1], *(each[1:] for each in found)]).tolist() == blocks.tolist()
    for part in parts:
        assert offsets[part.sentences[1]] > offsets[part.sentences[0]]


def test_the_number_of_blocks() -> None:
    def blocks(n_hyps: int, at_least: int) -> int:
        return len(split_into_blocks(np.arange(n_hyps + 1), at_least)) - 1

    assert blocks(100, 1) == 1
    assert blocks(100, 3) == 3
    assert blocks(2 * SMALLEST_BLOCK, 1) == 2
    assert blocks(100 * SMALLEST_BLOCK, 1) == BLOCKS
    assert blocks(100 * SMALLEST_BLOCK, BLOCKS + 4) == BLOCKS + 4


def test_places_stay_with_their_workers() -> None:
    assert assign_places([None] * 4, ["a", "b"]) == ["a", "b", "a", "b"]
    assert assign_places(["a", "b", "a", "b"], ["a", "b"]) == ["a", "b", "a", "b"]
    assert assign_places(["a", "b", "a", "b"], ["b", "c"]) == ["c", "b", "c", "b"]
    assert assign_places(["a", "a", "a", "a"], ["a", "b"]) == ["a", "a", "b", "b"]
    assert assign_places(["a", "b"], []) == [None, None]


def test_what_has_no_shards() -> None:
    problem = planted(17, n_sentences=4)[0]
    with pytest.raises(UsageError, match=r"5 shards for 4 sentences\. Lower --shards"):
        solve(problem, "mert", Sharding(5))
    nothing = replace(problem.tuning_set.view_sentences(0, 0), offsets=np.zeros(3, dtype=np.int64))
    with pytest.raises(OptimizerError, match="no hypotheses"):
        solve(replace(problem, tuning_set=nothing), "mert", Sharding(2))


def _sum_rows(shard: ListShard, rows: NDArray[np.float64]) -> list[float]:
    return [float(shard.lists.dense.sum()), float(rows.sum())]


def _identify(state: list[float]) -> tuple[int, list[float]]:
    return id(state), state


def test_a_worker_keeps_the_last_preparation_of_a_shard(tmp_path: Path) -> None:
    lists = planted(18, n_sentences=4)[0].tuning_set
    directory = tmp_path / "lists"
    directory.mkdir()
    write_lists(lists, directory)
    (part,) = divide_lists(lists.offsets, 1)
    first, second = (
        ShardRecipe(
            str(directory), number, 0, part.sentences, part.blocks, _sum_rows, {}, ("rows",)
        )
        for number in (0, 1)
    )
    np.save(first.path("rows"), np.arange(lists.n_hyps))
    np.save(second.path("rows"), np.ones(lists.n_hyps))
    once = work_on_shard(first, _identify)
    assert work_on_shard(first, _identify) == once
    other = work_on_shard(second, _identify)
    assert other[1][1] == lists.n_hyps
    assert work_on_shard(first, _identify)[1] == once[1]
    for path in directory.iterdir():
        path.unlink()
    directory.rmdir()
    forget_shards()
    with pytest.raises(Exception, match="does not find the n-best lists"):
        work_on_shard(first, _identify)


def test_the_space_of_shards_is_that_of_the_lists() -> None:
    problem = with_outside_scores(planted(19, n_sentences=24, noise=1.0)[0])
    whole = space_of(problem, START)
    with open_list_shards(problem, Sharding(4)) as shards:
        sharded = Sharded(problem.tuning_set, problem.metric, shards)
        space = sharded.lines(problem.active_mask, START)
        assert space.spread.tobytes() == whole.spread.tobytes()
        directions = np.random.default_rng(2).standard_normal((3, 5))
        for weights in np.random.default_rng(3).standard_normal((6, 5)):
            here, there = whole.at(weights), space.at(weights)
            assert space.decode(there) == whole.decode(here)
            pairs = [
                (space.along_axes(np.array([3, 1]), there),
                 whole.along_axes(np.array([3, 1]), here)),
                (space.along(directions, there),
                 whole.along(directions, here)),
            ]  # fmt: skip
            for found, expected in pairs:
                for one, two in zip(found, expected, strict=True):
                    assert one[0].tobytes() == two[0].tobytes()
                    assert one[1].tobytes() == two[1].tobytes()
