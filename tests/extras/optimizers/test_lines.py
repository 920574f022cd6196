"""Lines in any direction against those of MERT."""

from __future__ import annotations

import numpy as np

from mosesplug.extras.optimizers.xbleu_mert import DirectionSpace
from mosesplug.optimizers.problem import corpus_score
from tests.optimizers.problems import planted_bleu, space_of


def test_any_lines_are_those_of_mert() -> None:
    problem, _ = planted_bleu(52, n_sentences=12)
    weights = np.array([0.3, -0.2, 0.1, 0.3, 0.1])
    directions = list(np.random.default_rng(1).standard_normal((3, 5)))
    lines, space = DirectionSpace.of(problem), space_of(problem, weights)
    point = space.at(weights)
    np.testing.assert_array_equal(lines.at(weights), point)
    assert lines.score(point) == corpus_score(problem, weights)
    theirs = space.along(np.array(directions), point)
    for (xs, scores), (expected_xs, expected) in zip(
        lines.along(directions, point), theirs, strict=True
    ):
        np.testing.assert_allclose(xs, expected_xs)
        np.testing.assert_array_equal(scores, expected)
