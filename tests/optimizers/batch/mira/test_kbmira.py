"""k-best MIRA against recordings of Moses' ``kbmira`` and against a plain reading of the paper."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.candidates import ScoredDerivation
from mosesplug.errors import OptimizerError
from mosesplug.features import FeatureSpace
from mosesplug.metrics import Bleu, metric
from mosesplug.optimizers.batch.mira.hypotheses import ListHypotheses, subtract_features
from mosesplug.optimizers.batch.mira.kbmira import (
    KbmiraOptions,
    MiraLearner,
    ShardedMiraLearner,
    list_learner,
    run_epochs,
    search_learner,
)
from mosesplug.optimizers.lists.shards import WholeLists
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import algorithm
from mosesplug.tuning_set import SparseRows, TuningSet
from tests.optimizers.batch.mert.test_mert import recorded_problem
from tests.optimizers.batch.mira.searches import ListSearch, background_bleu, dense_features
from tests.optimizers.problems import Accuracy, planted, tuning_set

IN_ORDER = KbmiraOptions(epochs=5, shuffle=False)


def solve(problem: Problem, start: NDArray[Any], options: KbmiraOptions, seed: int = 0) -> Any:
    return algorithm("kbmira").optimize(
        problem, np.asarray(start), np.random.default_rng(seed), options
    )


def bleu_statistics(rng: np.random.Generator, n: int) -> NDArray[np.int32]:
    """Statistics such as hypotheses of 4 to 12 words have, many of them alike."""
    totals = rng.integers(4, 13, n)[:, None] - np.arange(4)
    matches = rng.binomial(totals, 0.5)
    counts = np.stack([matches, totals], axis=2).reshape(n, 8)
    return np.column_stack([counts, rng.integers(5, 11, n)]).astype(np.int32)


def bleu_problem(seed: int, n_sparse: int = 0) -> Problem:
    """Twelve sentences, one of them without hypotheses; three dense features, any sparse ones."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 9, 12)
    sizes[5] = 0
    n = int(sizes.sum())
    sparse = None
    if n_sparse:
        widths = rng.integers(0, 4, n)
        columns = [rng.choice(n_sparse, width, replace=False) for width in widths]
        sparse = SparseRows(
            np.concatenate([[0], np.cumsum(widths)]).astype(np.int64),
            np.concatenate(columns).astype(np.int32),
            rng.choice([1.0, 2.0, 0.5], int(widths.sum())).astype(np.float32),
        )
    stats = bleu_statistics(rng, n)
    made = TuningSet(
        FeatureSpace.of_names(["A", "B", "C"], [f"S_{i}" for i in range(n_sparse)]),
        np.arange(12, dtype=np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        rng.integers(-8, 9, (n, 3)).astype(np.float32) / 4,
        sparse,
        stats,
        stats[:, 1].copy(),
    )
    return Problem(made, Bleu())


def plain_mira(
    problem: Problem, start: NDArray[Any], options: KbmiraOptions, active: NDArray[np.bool_]
) -> list[tuple[int, float, NDArray[np.float64]]]:
    """Updates, summed loss and averaged weights of each epoch, by the book, in double precision."""
    made = problem.tuning_set
    features = dense_features(made)
    weights = np.array(start, dtype=np.float64)
    total, n = weights.copy(), 0
    background = np.ones(9)
    epochs = []
    for _ in range(options.epochs):
        updates, losses = 0, 0.0
        for first, end in zip(made.offsets[:-1], made.offsets[1:], strict=True):
            if first == end:
                continue
            h, stats = features[first:end], made.stats[first:end]
            scores, gains = h @ weights, background_bleu(stats, background)
            hope, fear, model = (
                int(np.argmax(np.round(x, 5))) for x in (scores + gains, scores - gains, scores)
            )
            if options.safe_hope and abs(scores[hope]) > 1e-8:
                scale = min(1.0, abs(5 * gains[hope] / scores[hope]))
                hope = int(np.argmax(np.round(scale * scores + gains, 5)))
            if hope == fear or not gains[hope] > gains[fear]:
                continue
            difference = (h[hope] - h[fear]) * active
            loss = gains[hope] - gains[fear] - (scores[hope] - scores[fear])
            if loss > 0:
                squared = difference @ difference
                rate = min(options.step_cap, loss / squared) if squared else 0.0
                weights = weights + rate * difference
                total, n = total + weights, n + 1
                updates, losses = updates + 1, losses + loss
            chosen = model if options.background == "model" else hope
            background = options.decay * background + stats[chosen]
        epochs.append((updates, losses, total / (n + 1)))
    return epochs


def make_learner(
    where: str, problem: Problem, start: NDArray[Any], options: KbmiraOptions
) -> MiraLearner | ShardedMiraLearner:
    """A learner of all weights; one shard learns as without shards."""
    if where == "graphs":
        return search_learner(ListSearch(problem.tuning_set), 3, start, options)
    learner = list_learner(problem, start, options)
    if where == "lists":
        return learner
    shards = WholeLists(problem.tuning_set)
    return ShardedMiraLearner(shards, problem.metric, learner.settings, learner.state)


@pytest.mark.parametrize("n_sparse", [0, 6])
@pytest.mark.parametrize(
    "options",
    [
        IN_ORDER,
        replace(IN_ORDER, background="model", decay=0.9),
        replace(IN_ORDER, safe_hope=True, step_cap=0.1),
        replace(IN_ORDER, step_cap=10.0),
    ],
)
@pytest.mark.parametrize("where", ["lists", "graphs", "shards"])
def test_follows_the_paper(where: str, n_sparse: int, options: KbmiraOptions) -> None:
    for seed in range(8 if where == "lists" else 4):
        problem = bleu_problem(seed, n_sparse)
        start = np.array([0.5, -0.25, 1.0] + [0.125] * n_sparse)
        everything = np.ones(len(start), dtype=np.bool_)
        expected = plain_mira(problem, start, options, everything)
        learner = make_learner(where, problem, start, options)
        order = np.arange(learner.n_sentences)
        found = list(run_epochs(learner, lambda order=order: order, options.epochs))
        for (updates, loss, weights), epoch in zip(expected, found, strict=True):
            made = corpus_score(problem, epoch.weights.astype(np.float64))
            assert epoch.score == pytest.approx(made, rel=1e-5)
            assert epoch.updates == updates
            assert epoch.loss * epoch.sentences == pytest.approx(loss, abs=1e-3)
            np.testing.assert_allclose(epoch.average, weights, atol=1e-4)


def test_inactive_weights_do_not_change() -> None:
    options = replace(IN_ORDER, step_cap=0.1)
    for seed in range(8):
        active = np.array([True, False, True] + [True, False] * 3)
        problem = replace(bleu_problem(seed, 6), active=active)
        start = np.array([0.5, -0.3, 1.0] + [0.1] * 6)
        expected = plain_mira(problem, start, options, active)
        solution = solve(problem, start, options)
        np.testing.assert_array_equal(solution.weights[~active], start[~active])
        scores = [step["score"] for step in solution.history]
        weights = expected[int(np.argmax(scores))][2]
        np.testing.assert_allclose(solution.weights, weights, atol=1e-4)


def test_sparse_features_are_as_good_as_dense_ones() -> None:
    problem = bleu_problem(3, n_sparse=5)
    made = problem.tuning_set
    names = [name.rsplit("_", 1)[0] for name in made.space.names[:3]]
    dense = replace(
        made,
        space=FeatureSpace.of_names([*names, *(f"D{i}" for i in range(5))]),
        dense=dense_features(made).astype(np.float32),
        sparse=None,
    )
    start = np.array([0.5, -0.25, 1.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    as_sparse = solve(problem, start, IN_ORDER)
    as_dense = solve(replace(problem, tuning_set=dense), start, IN_ORDER)
    assert as_sparse.history == as_dense.history
    assert as_sparse.weights[3:].any()
    ratio = np.abs(as_sparse.weights[:3]).sum() / np.abs(as_dense.weights[:3]).sum()
    np.testing.assert_allclose(as_sparse.weights, ratio * as_dense.weights, rtol=1e-6)


def test_sparse_weights_are_tuned_by_default() -> None:
    problem = bleu_problem(4, n_sparse=5)
    start = np.array([0.5, -0.25, 1.0] + [0.0] * 5)
    assert solve(problem, start, IN_ORDER).weights[3:].any()
    only_dense = replace(problem, active=np.arange(8) < 3)
    assert not solve(only_dense, start, IN_ORDER).weights[3:].any()


def test_hypotheses_with_the_same_features_are_one() -> None:
    """No weights can select the second of them."""
    sparse = SparseRows(
        np.array([0, 2, 4, 5, 5], dtype=np.int64),
        np.array([0, 1, 1, 0, 1], dtype=np.int32),
        np.array([1, 2, 2, 1, 1], dtype=np.float32),
    )
    dense = np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, 1.0], [0.0, 2.0]])
    made = tuning_set([3, 1], dense, np.array([1, 9, 2, 3]), sparse, ("S_a", "S_b"))
    learner = list_learner(Problem(made, Accuracy()), np.array([1.0, 1.0, 0.1, 0.1]), IN_ORDER)
    assert ListHypotheses(made, Accuracy()).rows.tolist() == [0, 2, 3]
    decisions = learner.visit(np.array([0, 1]))
    assert decisions.hope[0] == 1
    assert decisions.fear[0] == 0


def test_nothing_to_learn_leaves_the_weights() -> None:
    made = tuning_set([2, 1], np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]), np.array([5, 5, 5]))
    solution = solve(Problem(made, Accuracy()), np.array([0.25, 0.75]), IN_ORDER)
    np.testing.assert_allclose(solution.weights, [0.25, 0.75])
    assert [step["updates"] for step in solution.history] == [0] * 5


def test_other_metrics_learn_too() -> None:
    problem, _ = planted(21, noise=0.5)
    solution = solve(problem, np.ones(5), KbmiraOptions(epochs=10))
    assert corpus_score(problem, np.ones(5)) < 0.7
    assert solution.score > 0.9
    assert solution.score == corpus_score(problem, solution.weights)


def test_other_metrics_have_the_scale_of_bleu() -> None:
    """A metric that computes BLEU, but is not known as such, makes the same choices."""

    class Unknown:
        name = "unknown"
        n_statistics = 9
        statistics_names = Bleu.statistics_names
        has_bleu_statistics = False
        score = staticmethod(Bleu().score)

    problem = bleu_problem(5, n_sparse=4)
    start = np.array([0.5, -0.25, 1.0] + [0.0] * 4)
    known = solve(problem, start, IN_ORDER)
    unknown = solve(replace(problem, metric=Unknown()), start, IN_ORDER)  # type: ignore[arg-type]
    np.testing.assert_allclose(unknown.weights, known.weights, atol=1e-5)


def test_rejects_weights_beyond_single_precision() -> None:
    problem = bleu_problem(6)
    with pytest.raises(OptimizerError, match=r"B_0 is 1e\+20, too large"):
        solve(problem, np.array([1.0, 1e20, 1.0]), IN_ORDER)


@pytest.mark.parametrize("active", [None, (True, False, True)])
def test_the_optimizer_takes_a_search_for_lists(active: tuple[bool, ...] | None) -> None:
    problem = replace(bleu_problem(2), active=None if active is None else np.array(active))
    made = problem.tuning_set
    search = ListSearch(made)
    nothing = replace(
        made,
        offsets=0 * made.offsets,
        dense=made.dense[:0],
        stats=made.stats[:0],
        lengths=made.lengths[:0],
    )
    start = np.array([0.5, -0.25, 1.0])
    options = KbmiraOptions(epochs=3)
    expected = solve(problem, start, options)
    found = solve(replace(problem, tuning_set=nothing, source=search), start, options)
    np.testing.assert_allclose(found.weights, expected.weights, atol=1e-4)
    assert found.score == pytest.approx(expected.score, rel=1e-6)
    for step, same in zip(found.history, expected.history, strict=True):
        assert step["updates"] == same["updates"]
        assert step["spread"] == pytest.approx(same["spread"], rel=1e-4)
    if active is not None:
        assert found.weights[1] == -0.25


def test_a_search_is_for_bleu() -> None:
    problem = bleu_problem(2)
    search = ListSearch(problem.tuning_set)
    other = replace(problem, metric=metric("TER", ""), source=search)
    with pytest.raises(OptimizerError, match="by BLEU only, not by TER"):
        solve(other, np.ones(3), KbmiraOptions())


def test_equal_sparse_features_are_omitted() -> None:
    def hypothesis(**values: float) -> ScoredDerivation:
        columns = np.array([int(name[1:]) for name in values], dtype=np.int32)
        array = np.array([*values.values()], np.float32)
        edges = np.zeros(0, dtype=np.int64)
        return ScoredDerivation(edges, columns, array, np.zeros(9, np.float32), np.float32(0))

    hope = hypothesis(f0=1.0, f1=2.0, f2=3.0, f4=1e-7)
    fear = hypothesis(f0=1.0, f2=3.0, f3=5.0, f5=0.0)
    columns, values = subtract_features(hope, fear, 1)
    assert columns.tolist() == [0, 1, 3, 4, 5]
    np.testing.assert_allclose(values, [0.0, 2.0, -5.0, 1e-7, 0.0])


def recorded(path: Path) -> tuple[list[tuple[int, float, float]], NDArray[np.float64]]:
    """Updates, loss and BLEU of each epoch, and the weights in the order of the file."""
    log = Path(f"{path}.log").read_text()
    lines = re.findall(r"(\d+)/\d+ updates, avg loss = (\S+), BLEU = (\S+)", log)
    weights = Path(f"{path}.weights").read_text().split()[1::2]
    epochs = [(int(updates), float(loss), float(bleu)) for updates, loss, bleu in lines]
    return epochs, np.array(weights, dtype=np.float64)


@pytest.fixture(scope="module")
def two_lists(multi30k: Path) -> tuple[Problem, NDArray[np.float64]]:
    """Lists 1 and 2, and the weights that the recordings started from."""
    lines = (multi30k / "mert-work" / "run1.dense").read_text().splitlines()
    start = np.array([float(line.split()[1]) for line in lines])
    return recorded_problem(multi30k, [1, 2]), start


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("plain", IN_ORDER),
        ("model-bg", replace(IN_ORDER, background="model")),
        ("safe-hope", replace(IN_ORDER, safe_hope=True)),
        ("C0.1", replace(IN_ORDER, step_cap=0.1)),
        ("D0.9", replace(IN_ORDER, decay=0.9)),
    ],
)
def test_learns_as_moses_does(
    multi30k: Path,
    two_lists: tuple[Problem, NDArray[np.float64]],
    name: str,
    options: KbmiraOptions,
) -> None:
    problem, start = two_lists
    epochs, weights = recorded(multi30k / "kbmira" / f"noshuffle.{name}")
    solution = solve(problem, start, options)
    found = [(step["updates"], step["loss"], step["score"]) for step in solution.history]
    np.testing.assert_allclose(found, epochs, rtol=1e-5)
    np.testing.assert_allclose(solution.weights, weights / np.abs(weights).sum(), atol=1e-6)


def test_as_good_as_moses_over_seeds(multi30k: Path) -> None:
    """Moses' mean best BLEU over ten seeds is 0.4063, its standard deviation 0.0008."""
    problem = recorded_problem(multi30k, [1, 2, 3, 4, 5, 6, 7])
    lines = (multi30k / "mert-work" / "run7.dense").read_text().splitlines()
    start = np.array([float(line.split()[1]) for line in lines])
    scores = [solve(problem, start, KbmiraOptions(), seed).score for seed in range(2)]
    assert np.mean(scores) > 0.4063 - 0.0005
