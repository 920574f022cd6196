"""Decoding at many points against the decoding of one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mosesplug.extras.optimizers.decoding import PointDecoder
from mosesplug.optimizers.problem import corpus_score
from tests.optimizers.problems import planted, space_of


def test_scores_match_decoding_for_any_number_of_threads() -> None:
    problem, _ = planted(1, n_sentences=20)
    points = np.random.default_rng(2).standard_normal((7, 5))
    space = space_of(problem, np.ones(5))
    one, three = (PointDecoder(space, threads).scores(points) for threads in (1, 3))
    assert one.tolist() == [corpus_score(problem, point) for point in points]
    np.testing.assert_array_equal(one, three)


def test_fixed_weights_count_and_ties_go_to_the_first() -> None:
    problem, _ = planted(3, n_sentences=20)
    active = np.array([True, False, True, True, False])
    problem = replace(problem, active=active)
    weights = np.array([0.3, -0.7, 0.2, 0.4, 0.9])
    decoder = PointDecoder(space_of(problem, weights))
    points = np.array([weights[active], [0.0, 0.0, 0.0]])
    fixed = np.where(active, 0.0, weights)
    expected = [corpus_score(problem, weights), corpus_score(problem, fixed)]
    assert decoder.scores(points).tolist() == expected
    free = PointDecoder(space_of(replace(problem, active=None), weights))
    assert free.scores(np.zeros((1, 5))).tolist() == [corpus_score(problem, np.zeros(5))]


def test_fixed_spread_is_that_of_inactive_weights() -> None:
    problem, _ = planted(4, n_sentences=3, n_hyps=4)
    assert space_of(problem, np.ones(5)).fixed_spread == 0.0
    active = np.array([True, True, False, True, True])
    values = problem.tuning_set.dense[:, 2].reshape(3, 4).astype(np.float64)
    made = space_of(replace(problem, active=active), np.full(5, -2.0))
    assert made.fixed_spread == (2.0 * (values.max(axis=1) - values.min(axis=1))).mean()
