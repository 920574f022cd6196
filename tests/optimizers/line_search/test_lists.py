"""The error surface against decoding, and the choice of the interval by hand."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, pairwise
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.optimizers.line_search.lists import LineScratch
from mosesplug.optimizers.line_search.space import IntervalChoice, LinePoint, best_point
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import Accuracy, planted, space_of, tuning_set

BEST = IntervalChoice()


@given(seed=st.integers(0, 2**32 - 1), integral=st.booleans())
def test_the_score_of_every_interval_matches_decoding(seed: int, integral: bool) -> None:
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(0, 8, 6)] + [3]  # some sentences are empty
    n_hyps = sum(sizes)
    dense = rng.integers(-2, 3, (n_hyps, 3)) if integral else rng.standard_normal((n_hyps, 3))
    problem = Problem(tuning_set(sizes, dense, rng.integers(0, 11, n_hyps)), Accuracy())
    origin = rng.standard_normal(3)
    directions = np.concatenate([np.eye(3), rng.standard_normal((2, 3))])
    space = space_of(problem, origin)
    surfaces = space.along(directions, space.at(origin))
    for direction, (thresholds, scores) in zip(directions, surfaces, strict=True):
        assert len(scores) == len(thresholds) + 1
        points = np.concatenate([[-1e3], thresholds, [1e3]])
        for i, score in enumerate(scores):
            if points[i + 1] - points[i] > 1e-6:
                middle = 0.5 * (points[i] + points[i + 1])
                weights = origin + middle * direction
                assert space.decode(space.at(weights)) == pytest.approx(score)
                chosen = problem.tuning_set.first_best(weights)
                total = problem.tuning_set.stats[chosen].sum(axis=0)
                assert float(problem.metric.score(total)) == pytest.approx(score)


def test_wanted_lines_only() -> None:
    problem, hidden = planted(1)
    space = space_of(problem, hidden)
    intercepts = space.at(hidden)
    all_lines = [
        (thresholds.copy(), scores.copy())
        for thresholds, scores in space.along_axes(np.arange(5), intercepts)
    ]
    some = space.along_axes(np.array([3, 1]), intercepts)
    for (thresholds, scores), axis in zip(some, (3, 1), strict=True):
        np.testing.assert_array_equal(thresholds, all_lines[axis][0])
        np.testing.assert_array_equal(scores, all_lines[axis][1])


def test_inactive_and_sparse_features_share_in_the_model_score() -> None:
    sparse = SparseRows(
        np.array([0, 1, 3, 3, 4], dtype=np.int64),
        np.array([0, 0, 1, 1], dtype=np.int32),
        np.array([1.0, 2.0, -1.0, 0.5], dtype=np.float32),
    )
    dense = np.array([[1, 0], [0, 1], [2, 2], [1, 1]])
    made = tuning_set([2, 2], dense, np.array([1, 2, 3, 4]), sparse, ("A_x", "B_y"))
    weights = np.array([0.5, -0.25, 2.0, 4.0])
    expected = made.model_scores(weights)
    for active in ([True, False, False, False], [True, True, False, True], [False] * 3 + [True]):
        mask = np.array(active)
        space = space_of(Problem(made, Accuracy(), active=mask), weights)
        np.testing.assert_allclose(space.at(weights[mask]), expected)


def test_the_middle_of_the_best_interval() -> None:
    point = best_point(np.array([-1.0, 1.0, 2.0]), np.array([0.1, 0.2, 0.5, 0.3]), BEST, 1e3)
    assert point is not None
    assert (point.step, point.value) == (1.5, 0.5)


def test_unbounded_intervals_are_entered_a_little_only() -> None:
    thresholds = np.array([-1.0, 1.0])
    for scores, step in (([0.9, 0.1, 0.2], -1.1), ([0.1, 0.2, 0.9], 1.1)):
        point = best_point(thresholds, np.array(scores), BEST, 1e3)
        assert point is not None
        assert point.step == pytest.approx(step)


def test_neighbors_of_one_score_count_as_one_interval_and_the_widest_wins() -> None:
    thresholds = np.array([0.0, 0.7, 2.0, 3.0, 4.5])
    scores = np.array([0.0, 0.5, 0.5, 0.0, 0.5, 0.0])
    point = best_point(thresholds, scores, BEST, 1e3)
    assert point is not None
    assert point.step == 1.0


def test_the_point_is_never_on_a_threshold() -> None:
    """Three hypotheses may tie there, and the one in the middle be what decoding takes."""
    scores = np.array([0.0, 0.5, 0.5, 0.0])
    assert best_point(np.array([0.0, 1.0, 2.0]), scores, BEST, 1e3) == LinePoint(0.5, 0.5)
    scores = np.array([0.0, 0.5, 0.5, 0.5, 0.0])
    point = best_point(np.array([0.0, 2.0, 3.0, 6.0]), scores, BEST, 1e3)
    assert point == LinePoint(4.5, 0.5)
    smooth = IntervalChoice("minimum", 1)  # both sides of the one threshold have one minimum
    point = best_point(np.array([1.0]), np.array([0.2, 0.6]), smooth, 1e3)
    assert point == LinePoint(0.9, 0.2)


def test_an_interval_too_narrow_to_be_sure_of_is_never_chosen() -> None:
    thresholds = np.array([0.0, 1e-9, 5.0])
    point = best_point(thresholds, np.array([0.1, 0.9, 0.3, 0.2]), BEST, 1e3)
    assert point is not None
    assert point.value == 0.3


def test_no_step_beyond_reach() -> None:
    thresholds = np.array([50.0, 60.0])
    scores = np.array([0.1, 0.9, 0.2])
    assert best_point(thresholds, scores, BEST, 52.0) == LinePoint(51.0, 0.9)
    assert best_point(thresholds, scores, BEST, 50.0) == LinePoint(49.9, 0.1)
    assert best_point(thresholds, scores, BEST, 10.0) is None


def test_a_distant_threshold_hides_no_interval() -> None:
    # Slopes that rounding keeps from being equal cross where no step leads.
    thresholds = np.array([-1e17, 0.0, 1.0, 1e17])
    for scores, step in (([0.1, 0.9, 0.2, 0.3, 0.1], -500.0), ([0.1, 0.2, 0.3, 0.9, 0.1], 500.5)):
        assert best_point(thresholds, np.array(scores), BEST, 1e3) == LinePoint(step, 0.9)


@given(seed=st.integers(0, 2**32 - 1), quarters=st.booleans())
def test_no_point_of_a_line_beats_the_chosen_one(seed: int, quarters: bool) -> None:
    """Between neighboring crossings of any two hypotheses, decoding is tried in the middle."""
    rng = np.random.default_rng(seed)
    sizes = [int(size) for size in rng.integers(1, 8, 5)]  # some have one hypothesis only
    n_hyps = sum(sizes)
    dense = rng.standard_normal((n_hyps, 3)) * [1.0, 1e3, 1e-3]
    dense[:, 0] = np.round(4 * dense[:, 0]) / 4 if quarters else dense[:, 0]  # parallel lines
    problem = Problem(tuning_set(sizes, dense, rng.integers(0, 11, n_hyps)), Accuracy())
    origin = rng.standard_normal(3)
    space = space_of(problem, origin)
    directions = np.concatenate([np.eye(3), rng.uniform(0.0, 1.0, (1, 3))])
    surfaces = space.along(directions, space.at(origin))
    heights = problem.tuning_set.model_scores(origin)
    for direction, (thresholds, scores) in zip(directions, surfaces, strict=True):
        slopes = problem.tuning_set.model_scores(direction)
        crossings = []
        for first, end in pairwise(np.append(0, np.cumsum(sizes))):
            for i, j in combinations(range(first, end), 2):
                if abs(slopes[i] - slopes[j]) > 1e-9:
                    crossings.append((heights[j] - heights[i]) / (slopes[i] - slopes[j]))
        edges = np.sort(crossings)
        edges = edges[np.abs(edges) < 1e3]
        if not len(edges):
            continue
        tried = [edges[0] - 0.05, edges[-1] + 0.05]
        tried += [0.5 * (a + b) for a, b in pairwise(edges) if b - a > 1e-3]
        best = max(corpus_score(problem, origin + x * direction) for x in tried)
        point = best_point(thresholds, scores, BEST, 1e4)
        if point is None:  # all thresholds are out of reach: the score is the same everywhere
            assert np.abs(thresholds).min() > 1e4
            assert corpus_score(problem, origin) == best
            continue
        assert point.value >= best - 1e-12
        decoded = corpus_score(problem, origin + point.step * direction)
        assert decoded == pytest.approx(point.value)


def test_float_statistics_lose_nothing_along_a_line() -> None:
    problem, _ = planted(2, n_sentences=2000, n_hyps=20, n_features=2)
    made = problem.tuning_set
    rng = np.random.default_rng(0)
    stats = np.stack([rng.uniform(0, 1e6, made.n_hyps), np.ones(made.n_hyps)], axis=1)
    stats = stats.astype(np.float32)
    problem = replace(problem, tuning_set=replace(made, stats=stats))
    origin = np.array([1.0, 0.5])
    space = space_of(problem, origin)
    intercepts = space.at(origin)
    surfaces = space.along_axes(np.array([1]), intercepts)
    ((thresholds, scores),) = surfaces
    chosen = made.first_best(np.array([1.0, 0.5 + thresholds[-1] + 1.0]))
    exact = stats[chosen].astype(np.float64)
    np.testing.assert_allclose(scores[-1], exact[:, 0].sum() / exact[:, 1].sum(), rtol=1e-13)


def test_a_line_without_thresholds_keeps_its_origin() -> None:
    point = best_point(np.zeros(0), np.array([0.4]), BEST, 1e3)
    assert point is not None
    assert (point.step, point.value) == (0.0, 0.4)


@pytest.mark.parametrize(
    ("method", "step", "value"),
    [("best", 4.5, 0.9), ("average", 1.5, 1.6 / 3), ("minimum", 1.5, 0.5)],
)
def test_neighborhoods_avoid_narrow_peaks(
    method: Literal["best", "average", "minimum"], step: float, value: float
) -> None:
    thresholds = np.arange(6.0)
    scores = np.array([0.1, 0.5, 0.6, 0.5, 0.1, 0.9, 0.1])
    point = best_point(thresholds, scores, IntervalChoice(method, 1), 1e3)
    assert point is not None
    assert (point.step, point.value) == (step, pytest.approx(value))


def test_empty_intervals_are_not_neighbors() -> None:
    thresholds = np.array([0.0, 1.0, 1.0, 1.0, 2.0, 3.0])
    scores = np.array([0.1, 0.6, 0.0, 0.0, 0.5, 0.3, 0.1])
    point = best_point(thresholds, scores, IntervalChoice("average", 1), 1e3)
    assert point is not None
    assert (point.step, point.value) == (1.5, pytest.approx((0.6 + 0.5 + 0.3) / 3))


def test_room_for_thresholds_grows() -> None:
    slopes = np.arange(200.0)[:, None]  # points of a parabola: all of them are on the hull
    dense = np.concatenate([slopes, -(slopes**2)], axis=1)
    problem = Problem(tuning_set([200], dense, np.arange(200), possible=200), Accuracy())
    space = space_of(problem, np.ones(2))
    before = LineScratch.of(space, 1).thresholds.shape[1]
    origin = np.array([0.0, 1.0])
    ((thresholds, scores),) = space.along_axes(np.array([0]), space.at(origin))
    assert before < len(thresholds) == 199
    np.testing.assert_allclose(thresholds, np.arange(1.0, 399.0, 2.0))
    np.testing.assert_allclose(scores, np.arange(200) / 200)
