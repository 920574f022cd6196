"""Bounds of weights: every algorithm keeps them or refuses them, and MERT is exact inside them."""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.batch.mert.climb import ClimbSettings
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.batch.ranking.pro import ProOptions
from mosesplug.optimizers.bounds import Bounds
from mosesplug.optimizers.line_search.space import IntervalChoice
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import Algorithm, algorithm, algorithms
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import planted, planted_for, tuning_set

mert = algorithm("mert").optimize
pro = algorithm("pro").optimize

INF = np.inf
START = np.full(5, 0.2)

BOXES = {
    "signs": ([0, 0, -INF, -INF, 0], [INF, INF, 0, INF, INF], [0, 2]),
    "one fixed": ([1, -INF, -INF, -INF, 0], [1, INF, INF, INF, INF], []),
    "small": ([0.2, -0.5, 0.1, -0.3, 0], [0.4, 0.5, 0.1, 0.3, 1], []),
    "without 0": ([2, 2, -3, 0, 0], [3, 3, -2, 1, INF], []),
}


def make_bounds(low: list[float], high: list[float], above: list[int] | None = None) -> Bounds:
    is_open = np.zeros(len(low), dtype=np.bool_)
    is_open[above or []] = np.isfinite(np.array(low, float)[above or []])
    return Bounds(np.array(low, float), np.array(high, float), is_open, np.zeros_like(is_open))


def with_sparse_tail(problem: Problem) -> Problem:
    """The same features, the last two of them sparse."""
    made = problem.tuning_set
    rows = SparseRows(
        np.arange(0, 2 * made.n_hyps + 1, 2),
        np.tile(np.array([0, 1], dtype=np.int32), made.n_hyps),
        made.dense[:, 3:].ravel(),
    )
    sizes = np.diff(made.offsets).tolist()
    won = np.zeros(made.n_hyps)
    lists = tuning_set(sizes, made.dense[:, :3], won, rows, ("sparse_a", "sparse_b"))
    return replace(problem, tuning_set=replace(lists, stats=made.stats))


@pytest.mark.usefixtures("few_restarts")
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
@pytest.mark.parametrize("tuner", algorithms().values(), ids=lambda each: each.name)
def test_every_algorithm_keeps_bounds_or_refuses_them(tuner: Algorithm, sparse: bool) -> None:
    problem, boxes = planted_for(tuner, 11, n_sentences=10), BOXES
    if sparse:  # one box is enough: it bounds both sparse weights
        problem, boxes = with_sparse_tail(problem), {"small": BOXES["small"]}
    optimizer = tuner.bind(tuner.options())
    for name, box in boxes.items():
        bounded = replace(problem, bounds=make_bounds(*box))
        assert bounded.bounds is not None
        if not tuner.keeps_bounds:
            with pytest.raises(
                UsageError, match=rf"{re.escape(tuner.name)} cannot keep bounds.*mert"
            ):
                optimizer.optimize(bounded, START, np.random.default_rng(0))
            continue
        found = optimizer.optimize(bounded, START, np.random.default_rng(0))
        assert not bounded.bounds.find_outside(found.weights).size, name
        assert found.score == pytest.approx(corpus_score(bounded, found.weights), abs=1e-9)
        # Inside bounds, not only pushed there: no worse than the start, which is inside.
        start = corpus_score(bounded, bounded.bounds.project(START))
        if tuner.name in ("mert", "nelder-mead", "pso"):
            assert found.score >= start, name


@pytest.mark.usefixtures("few_restarts")
@pytest.mark.parametrize(
    "tuner",
    [tuner for tuner in algorithms().values() if tuner.keeps_bounds],
    ids=lambda tuner: tuner.name,
)
def test_bounds_that_the_optimum_keeps_are_no_hindrance(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 11, n_sentences=40)
    _, hidden = planted(11)
    signs = make_bounds(
        np.where(hidden > 0.0, 0.0, -INF).tolist(), np.where(hidden > 0.0, INF, 0.0).tolist()
    )
    start = 0.2 * np.sign(hidden)
    found = tuner.bind(tuner.options()).optimize(
        replace(problem, bounds=signs), start, np.random.default_rng(0)
    )
    assert found.score > 0.9


@pytest.mark.usefixtures("few_restarts")
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(
    ("low", "high"),
    [((0.5, -1), (1, 1)), ((-1, 0), (1, INF)), ((0, 2), (1, 2)), ((-3, 1), (-1, 3))],
)
def test_mert_is_exact_in_two_dimensions(
    seed: int, low: tuple[float, float], high: tuple[float, float]
) -> None:
    """Decisions depend on the direction only, of which two weights have a line of."""
    problem = planted(seed, n_sentences=4, n_hyps=6, n_features=2, noise=1.0)[0]
    bounds = make_bounds(list(low), list(high))
    found = mert(
        replace(problem, bounds=bounds), np.ones(2), np.random.default_rng(seed), MertOptions()
    )
    dense = problem.tuning_set.dense.astype(np.float64)
    angles: list[float] = []
    for start in range(0, len(dense), 6):
        for one, other in itertools.combinations(dense[start : start + 6], 2):
            across = np.arctan2(one[1] - other[1], one[0] - other[0]) + 0.5 * np.pi
            angles += [across, across + np.pi]
    for corner in itertools.product(*np.clip([low, high], -1e9, 1e9).T):
        angles.append(np.arctan2(corner[1], corner[0]))
    edges = np.sort(np.mod(angles, 2.0 * np.pi))
    middles = 0.5 * (edges + np.roll(edges, -1))
    middles[-1] += np.pi
    best = -INF
    for angle in middles:
        ray = np.array([np.cos(angle), np.sin(angle)])
        if reaches(ray, np.array(low), np.array(high)):
            best = max(best, corpus_score(problem, ray))
    assert not bounds.find_outside(found.weights).size
    assert found.score == pytest.approx(best)


def reaches(ray: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]) -> bool:
    """Whether some multiple above 0 of a ray is inside a box."""
    with np.errstate(divide="ignore"):
        first, second = low / ray, high / ray
    least, most = np.minimum(first, second).max(), np.maximum(first, second).min()
    return bool(max(least, 1e-9) <= most)


@given(st.integers(0, 10_000))
def test_room_on_a_line_is_what_the_box_allows(seed: int) -> None:
    rng = np.random.default_rng(seed)
    bounds = make_bounds(rng.uniform(-2, 0, 3).tolist(), rng.uniform(0, 2, 3).tolist())
    inside, direction = bounds.project(rng.uniform(-2, 2, 3)), rng.standard_normal(3)
    direction[rng.integers(3)] *= rng.integers(2)
    if not direction.any():
        return
    zeros = np.zeros(3)
    climbs = ClimbSettings(zeros, zeros, 0, IntervalChoice(), 0.0, bounds=bounds)
    low, high = climbs.room(inside, direction)
    assert low <= 0.0 <= high
    for end, further in ((low, low - 1e-6), (high, high + 1e-6)):
        at_end = inside + (1.0 - 1e-12) * end * direction
        np.testing.assert_allclose(bounds.project(at_end), at_end, atol=1e-9)
        assert bounds.find_outside(inside + further * direction).size


@pytest.mark.usefixtures("few_restarts")
def test_a_fixed_weight_never_moves_and_sets_the_scale() -> None:
    problem, hidden = planted(3, n_sentences=60)
    bounds = make_bounds([-INF, -0.5, *[-INF] * 3], [INF, -0.5, *[INF] * 3])
    found = mert(
        replace(problem, bounds=bounds), START, np.random.default_rng(0), MertOptions(restarts=3)
    )
    assert hidden[1] < 0.0
    assert found.weights[1] == -0.5
    assert np.abs(found.weights).sum() != pytest.approx(1.0)
    assert found.score == 1.0


@pytest.mark.usefixtures("few_restarts")
def test_limits_of_0_leave_the_scale_free() -> None:
    problem = planted(3)[0]
    bounds = make_bounds([0.0] * 5, [INF] * 5, above=[0])
    found = mert(
        replace(problem, bounds=bounds), START, np.random.default_rng(0), MertOptions(restarts=3)
    )
    assert np.abs(found.weights).sum() == pytest.approx(1.0)
    assert found.weights[0] > 0.0


def test_the_scale_of_a_classifier_is_part_of_its_fit() -> None:
    """Bounds of any size allow the same directions, and so the same decisions."""
    problem = planted(5, noise=1.0)[0]
    scores = []
    for size in (0.001, 1.0, 1000.0):
        box = make_bounds([-size] * 5, [size] * 5)
        found = pro(replace(problem, bounds=box), START, np.random.default_rng(0), ProOptions())
        assert np.abs(found.weights).max() <= size
        scores.append(found.score)
    assert scores == [pro(problem, START, np.random.default_rng(0), ProOptions()).score] * 3


def test_a_perceptron_has_no_scale() -> None:
    problem = replace(planted(5)[0], bounds=make_bounds([1.0] * 5, [2.0] * 5))
    options = ProOptions(classifier="perceptron")
    with pytest.raises(UsageError, match="bounds of 0 only"):
        pro(problem, START, np.random.default_rng(0), options)


def test_weights_of_0_are_no_result() -> None:
    problem = planted(3)[0]
    for bounds in (make_bounds([0.0] * 5, [0.0] * 5), make_bounds([1.0] * 5, [-1.0] * 5)):
        with pytest.raises(OptimizerError, match=r"nothing to tune|no weight of F0"):
            mert(replace(problem, bounds=bounds), START, np.random.default_rng(0), MertOptions())


def test_projection() -> None:
    bounds = make_bounds([0.0, -1.0, 0.0], [1.0, INF, 5.0], above=[2])
    weights = np.array([-0.0, -3.0, 0.0])
    inside = bounds.project(weights)
    assert inside.tolist() == [0.0, -1.0, 1e-6]
    assert not bounds.find_outside(inside).size
    assert bounds.find_outside(weights).tolist() == [1, 2]
    low, high = bounds.start_box(None, None)
    assert (low.tolist(), high.tolist()) == ([0.0, 0.0, 1e-6], [1.0, 1.0, 5.0])
    low, high = bounds.start_box(np.full(3, -9.0), np.full(3, 0.5))
    assert (low.tolist(), high.tolist()) == ([0.0, -1.0, 1e-6], [0.5, 0.5, 0.5])
