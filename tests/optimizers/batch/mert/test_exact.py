"""The exact search of MERT against other ways to know the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.batch.mert import exact
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.batch.mert.regions import NARROW, nearest_point
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.problem import Problem, Solution, corpus_score
from mosesplug.optimizers.registry import algorithm
from mosesplug.settings.algorithm_options import make_options
from mosesplug.tuning_set import TuningSet
from tests.optimizers.exact import best_score_of_all
from tests.optimizers.problems import Accuracy, planted, tuning_set

EXACT = MertOptions(method="exact")


def search(problem: Problem, initial: np.ndarray | None = None) -> Solution:
    size = len(problem.tuning_set.space)
    start = np.ones(size) if initial is None else initial
    return algorithm("mert").optimize(problem, start, np.random.default_rng(0), EXACT)


def best_of_random(problem: Problem, weights: np.ndarray) -> float:
    return max(corpus_score(problem, own) for own in weights)


@pytest.mark.parametrize(("n_features", "n_hyps"), [(1, 9), (2, 8), (3, 6), (4, 3)])
def test_no_weights_are_better(n_features: int, n_hyps: int) -> None:
    """Lines through all regions find nothing better, and neither do random weights."""
    for seed in range(3):
        problem, _ = planted(seed, n_sentences=5, n_hyps=n_hyps, n_features=n_features, noise=1.0)
        solution = search(problem)
        assert solution.score == corpus_score(problem, solution.weights)
        if n_features > 1:
            assert solution.score == pytest.approx(best_score_of_all(problem), abs=1e-12)
        anywhere = np.random.default_rng(seed).standard_normal((500, n_features))
        assert best_of_random(problem, anywhere) <= solution.score
        assert "no weights score higher" in solution.notes[0]


def test_the_regions_of_a_plane_are_counted() -> None:
    """Each tie of two hypotheses on their envelope cuts a circle of weights once."""
    problem, _ = planted(4, n_sentences=6, n_hyps=7, n_features=2, noise=1.0)
    lists = problem.tuning_set
    angles = np.linspace(0.0, 2.0 * np.pi, 200_001)
    choices = np.stack(
        [
            (lists.dense[begin:end] @ np.stack([np.cos(angles), np.sin(angles)])).argmax(axis=0)
            for begin, end in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)
        ]
    )
    regions = (np.diff(choices, axis=1) != 0).any(axis=0).sum()
    assert search(problem).history[0]["regions"] == regions


@pytest.mark.parametrize("kind", ["box", "cone", "positive", "fixed", "fixed and box"])
def test_bounds_and_fixed_weights(kind: str) -> None:
    rng = np.random.default_rng(7)
    for seed in range(3):
        problem, _ = planted(seed, n_sentences=4, n_hyps=6, n_features=3, noise=1.0)
        weights = rng.standard_normal((4000, 3))
        active = np.array([True, True, True])
        bounds = Bounds.none(3)
        if "fixed" in kind:
            weights[:, 2], active[2] = 0.5, False
        if "box" in kind:
            bounds = replace(
                bounds, low=np.array([0.2, -1.0, -2.0]), high=np.array([1.0, 0.5, 2.0])
            )
            weights[:, 0] = rng.uniform(0.2, 1.0, 4000)
            weights[:, 1] = rng.uniform(-1.0, 0.5, 4000)
            weights[:, 2] = 0.5 if "fixed" in kind else rng.uniform(-2.0, 2.0, 4000)
        if kind == "cone":
            bounds = replace(bounds, low=np.array([0.0, -np.inf, -np.inf]))
        if kind in ("cone", "positive"):
            weights[:, 0] = np.abs(weights[:, 0])
        problem = replace(
            problem,
            active=active,
            bounds=bounds if kind != "positive" else None,
            positive=np.array([True, False, False]) if kind == "positive" else None,
        )
        solution = search(problem, np.array([0.5, 0.25, 0.5]))
        assert best_of_random(problem, weights) <= solution.score
        assert solution.score == corpus_score(problem, solution.weights)
        if kind == "positive":
            assert solution.weights[0] > 0.0
        else:
            assert (solution.weights == bounds.project(solution.weights)).all()
        if "fixed" in kind:
            assert solution.weights[2] == 0.5


def test_ties_go_to_the_first() -> None:
    """Of equal features the first hypothesis counts; of equal scores, the first choice."""
    dense = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=np.float32)
    lists = tuning_set([3], dense, np.array([5, 10, 5]))
    solution = search(Problem(lists, Accuracy()))
    assert solution.score == 0.5  # the second can never win
    assert solution.history[0]["regions"] == 2
    assert solution.weights[0] > solution.weights[1]


def test_features_that_never_vary_keep_their_proportion() -> None:
    dense = np.array([[1.0, 3.0, 0.0], [0.0, 3.0, 1.0]], dtype=np.float32)
    lists = tuning_set([2], dense, np.array([0, 10]))
    weights = search(Problem(lists, Accuracy()), np.array([0.25, 0.5, 0.25])).weights
    np.testing.assert_allclose(np.abs(weights), [0.25, 0.5, 0.25])
    same = tuning_set([2], dense[:1].repeat(2, axis=0), np.array([0, 10]))
    start = np.array([0.25, 0.5, 0.25])
    np.testing.assert_array_equal(search(Problem(same, Accuracy()), start).weights, start)


def test_nearest_point_of_a_hull() -> None:
    """The widest cone inside random half-spaces, against a search of the whole circle."""
    rng = np.random.default_rng(3)
    circle = np.linspace(0.0, 2.0 * np.pi, 50_001)
    directions = np.stack([np.cos(circle), np.sin(circle)], axis=1)
    for _ in range(50):
        rows = rng.standard_normal((int(rng.integers(1, 6)), 2))
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        nearest = np.zeros(2)
        angle = nearest_point(rows, len(rows), nearest, False)
        widest = (directions @ rows.T).min(axis=1).max()
        if angle == 0.0:
            assert widest <= NARROW
        else:
            assert widest <= angle + 1e-12 <= widest + 1e-4  # the steps of the circle
            assert (rows @ nearest).min() == pytest.approx(angle, abs=1e-12)


def large(n_hyps: int, n_features: int) -> TuningSet:
    rng = np.random.default_rng(0)
    dense = rng.standard_normal((n_hyps, n_features)).astype(np.float32)
    return tuning_set([n_hyps], dense, np.ones(n_hyps))


def test_large_problems_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(OptimizerError, match=r"up to 6 features that vary, not 7\. Tune fewer"):
        search(Problem(large(10, 7), Accuracy()))
    with pytest.raises(OptimizerError, match=r"up to 1,000 hypotheses, not 1,001"):
        search(Problem(large(1001, 2), Accuracy()))
    monkeypatch.setattr(exact, "MOST_REGIONS", 5)
    with pytest.raises(OptimizerError, match=r"up to 5 regions of weights, and these lists"):
        search(Problem(large(50, 2), Accuracy()))


def test_settings_that_change_the_score_are_refused() -> None:
    for settings in ({"l2": "0.1"}, {"interval": "average"}):
        with pytest.raises(UsageError, match="leave out l2 and interval"):
            make_options(algorithm("mert"), {"method": "exact", **settings})


def test_bounds_without_room() -> None:
    problem, _ = planted(0, n_sentences=2, n_hyps=3, n_features=2)
    bounds = replace(Bounds.none(2), low=np.zeros(2), high=np.array([1e-9, 1e-9]))
    with pytest.raises(OptimizerError, match="leave no room"):
        search(replace(problem, bounds=bounds))
