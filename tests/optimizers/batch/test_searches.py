"""Where searches start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mosesplug.optimizers.batch.fits import starting_points
from tests.optimizers.problems import planted


def test_given_starts_are_normalized_and_random_ones_in_the_box() -> None:
    problem, _ = planted(61, n_sentences=2)
    box = replace(problem, minima=np.full(5, 2.0), maxima=np.full(5, 3.0))
    box = replace(box, starts=(np.array([3.0, 0.0, -1.0, 0.0, 0.0]),))
    given, random = starting_points(box, np.full(5, 0.2), np.random.default_rng(1), 4)
    assert [start.tolist() for start in given] == [[0.2] * 5, [0.75, 0.0, -0.25, 0.0, 0.0]]
    assert len(random) == 4
    assert all((start >= 2.0).all() and (start <= 3.0).all() for start in random)


def test_only_active_weights_are_drawn() -> None:
    problem, _ = planted(62, n_sentences=2)
    active = np.array([True, False, False, True, False])
    problem = replace(problem, active=active, starts=(np.arange(5.0),))
    given, random = starting_points(problem, np.ones(5), np.random.default_rng(1), 1)
    # Where others are fixed, weights have a scale, and keep it.
    assert [start.tolist() for start in given] == [[1.0, 1.0], [0.0, 3.0]]
    assert random[0].shape == (2,)
