"""The particle swarm: its moves by hand, and as an optimizer of lists."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.extras.optimizers.swarm import PsoOptions, Swarm, project_to_sphere
from mosesplug.optimizers.problem import corpus_score
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.problems import planted

pso = algorithm("pso").optimize

FEW = PsoOptions(particles=6, moves=10)


def test_a_move_is_inertia_and_two_pulls() -> None:
    places = np.array([[1.0, 0.0], [0.0, 2.0]])
    velocities = np.array([[0.1, 0.2], [0.3, -0.4]])
    own = np.array([[2.0, 0.0], [0.0, 3.0]])
    swarm = Swarm(places, velocities, own, np.array([0.2, 0.5]))
    options = PsoOptions(inertia=0.5, own_pull=1.0, swarm_pull=2.0)
    moved = swarm.move(options, np.random.default_rng(1), lambda places: places)
    r = np.random.default_rng(1).random((2, 2, 2))
    for particle in range(2):
        for axis in range(2):
            expected = (
                0.5 * velocities[particle, axis]
                + 1.0 * r[0, particle, axis] * (own[particle, axis] - places[particle, axis])
                + 2.0 * r[1, particle, axis] * (own[1, axis] - places[particle, axis])
            )
            assert moved.velocities[particle, axis] == pytest.approx(expected, rel=1e-15)
    np.testing.assert_array_equal(moved.places, places + moved.velocities)
    on_sphere = swarm.move(options, np.random.default_rng(1), project_to_sphere)
    np.testing.assert_allclose(np.linalg.norm(on_sphere.places, axis=1), 1.0)
    np.testing.assert_allclose(
        on_sphere.places * np.linalg.norm(moved.places, axis=1)[:, np.newaxis], moved.places
    )


def test_better_points_are_remembered() -> None:
    swarm = Swarm(np.eye(2), np.zeros((2, 2)), 2 * np.eye(2), np.array([0.2, 0.5]))
    told = swarm.with_scores(np.array([0.3, 0.4]))
    np.testing.assert_array_equal(told.own, [[1.0, 0.0], [0.0, 2.0]])
    np.testing.assert_array_equal(told.own_scores, [0.3, 0.5])
    assert told.best == 1


def test_starts_count_and_scores_never_fall() -> None:
    problem, hidden = planted(31)
    solution = pso(problem, np.ones(5), np.random.default_rng(1), FEW)
    scores = [step["score"] for step in solution.history]
    assert scores == sorted(scores)
    assert solution.score == scores[-1] > corpus_score(problem, np.ones(5))
    known = replace(problem, starts=(hidden,))
    assert pso(known, -hidden, np.random.default_rng(1), FEW).history[0]["score"] == 1.0


def test_inactive_weights_do_not_change_and_fix_the_scale() -> None:
    problem, hidden = planted(32)
    active = np.array([True, True, False, True, False])
    problem = replace(problem, active=active, minima=-np.ones(5), maxima=np.ones(5))
    start = np.where(active, 0.01, hidden)
    solution = pso(problem, start, np.random.default_rng(1), replace(FEW, particles=30, moves=30))
    np.testing.assert_array_equal(solution.weights[~active], hidden[~active])
    assert solution.score > corpus_score(problem, start) + 0.05


def test_ends_without_improvement() -> None:
    problem, hidden = planted(33)
    lazy = replace(FEW, idle_moves=2)
    assert len(pso(problem, hidden, np.random.default_rng(1), lazy).history) == 3


def test_more_starts_than_particles_and_inertia_without_end() -> None:
    problem, hidden = planted(34)
    crowded = replace(problem, starts=(-hidden, hidden, -hidden))
    few = replace(FEW, particles=2, moves=1)
    pso(crowded, hidden, np.random.default_rng(1), few)
    with pytest.raises(UsageError, match="inertia"):
        pso(problem, hidden, np.random.default_rng(1), replace(FEW, inertia=1.0))


def test_zero_weights_are_not_the_result_if_others_are_as_good() -> None:
    problem, hidden = planted(35, n_sentences=1)
    made = problem.tuning_set
    alike = replace(made, stats=np.full_like(made.stats, 10))
    solution = pso(replace(problem, tuning_set=alike), np.zeros(5), np.random.default_rng(1), FEW)
    assert solution.weights.any()
    assert solution.score == 1.0
    fixed = replace(problem, active=np.arange(5) > 2)
    start = np.where(fixed.active_mask, 0.0, hidden)
    kept = pso(fixed, start, np.random.default_rng(1), replace(FEW, moves=1))
    assert kept.score >= corpus_score(problem, start)
