"""Pareto-optimal ranking with one and two metrics of planted problems."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import OptimizerError
from mosesplug.extras.optimizers.pareto import ParetoOptions, pareto_fronts
from mosesplug.metrics.interpolated import InterpolatedMetric
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.batch.ranking.test_pro import cosine
from tests.optimizers.problems import Accuracy, planted, tuning_set

pareto = algorithm("pareto").optimize


def two_metrics(seed: int, weights: tuple[float, float] = (0.5, 0.5)) -> Problem:
    """Hypotheses of which one metric likes the first two features, the other the last two."""
    rng = np.random.default_rng(seed)
    dense = rng.standard_normal((150 * 12, 3))
    likes = dense @ np.array([[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]])
    ranks = likes.reshape(150, 12, 2).argsort(axis=1).argsort(axis=1).reshape(-1, 2)
    made = tuning_set([12] * 150, dense, ranks[:, 0], possible=11)
    stats = np.column_stack([made.stats, ranks[:, 1], np.full(len(ranks), 11)]).astype(np.int32)
    metric = InterpolatedMetric((Accuracy("one"), Accuracy("two")), weights)
    return Problem(replace(made, stats=stats), metric)


def test_two_metrics() -> None:
    problem = two_metrics(1)
    found = pareto(problem, np.ones(3), np.random.default_rng(0), ParetoOptions(draws=3))
    assert found.score == corpus_score(problem, found.weights)
    assert found.score > corpus_score(problem, np.ones(3)) - 0.05
    fronts, *draws = found.history
    stats = problem.tuning_set.stats
    expected = pareto_fronts(problem.tuning_set.offsets, stats[:, [0, 2]].astype(np.float64))
    assert fronts["hypotheses"] == 1800
    assert fronts["pareto_optimal"] == expected.sum()
    assert fronts["share"] == pytest.approx(expected.mean())
    assert len(draws) == 3
    assert max(step["score"] for step in draws) == found.score
    for step in draws:
        assert step["score"] == pytest.approx((step["one"] + step["two"]) / 2)
        beaten = any(
            other["one"] >= step["one"] and other["two"] >= step["two"] and other != step
            and (other["one"] > step["one"] or other["two"] > step["two"])
            for other in draws
        )  # fmt: skip
        assert step["on_front"] == (not beaten)


def test_both_metrics_gain() -> None:
    problem = two_metrics(2)
    start = np.array([1.0, 0.0, -1.0])
    found = pareto(problem, start, np.random.default_rng(0), ParetoOptions(draws=1))
    parts = [replace(problem, metric=Accuracy()) for _ in range(2)]
    stats = problem.tuning_set.stats
    for columns, part in zip(([0, 1], [2, 3]), parts, strict=True):
        own = replace(part, tuning_set=replace(problem.tuning_set, stats=stats[:, columns]))
        assert corpus_score(own, found.weights) > 0.8


def test_one_metric_is_its_best_hypotheses() -> None:
    problem, hidden = planted(3, n_sentences=200)
    for acceptance in ("largest", "random"):
        options = ParetoOptions(draws=1, acceptance=acceptance)  # type: ignore[arg-type]
        found = pareto(problem, np.ones(5), np.random.default_rng(0), options)
        assert found.history[0]["pareto_optimal"] == 200
        assert cosine(found.weights, hidden) > 0.97


def test_rejects_lists_without_a_dominated_hypothesis() -> None:
    made = tuning_set([3], np.arange(6.0).reshape(3, 2), np.full(3, 4))
    with pytest.raises(OptimizerError, match="worse than another"):
        pareto(Problem(made, Accuracy()), np.ones(2), np.random.default_rng(0), ParetoOptions())


OFFSETS = np.array([0, 1, 1, 9, 40, 60])


@pytest.mark.parametrize("n_metrics", [1, 2, 3, 4])
def test_fronts_against_every_comparison(n_metrics: int) -> None:
    for seed in range(20):
        rng = np.random.default_rng(seed)
        # Few values, so that there are ties and equal hypotheses.
        scores = rng.integers(0, (4, 6, 60)[seed % 3], (60, n_metrics)) / 7
        expected = np.ones(60, dtype=np.bool_)
        for start, end in itertools.pairwise(OFFSETS.tolist()):
            for row, other in itertools.permutations(range(start, end), 2):
                if (scores[other] >= scores[row]).all() and (scores[other] > scores[row]).any():
                    expected[row] = False
        np.testing.assert_array_equal(pareto_fronts(OFFSETS, scores), expected)


def test_fronts_of_no_hypotheses() -> None:
    assert len(pareto_fronts(np.array([0, 0]), np.zeros((0, 2)))) == 0
