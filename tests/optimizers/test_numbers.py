"""What must not change a result: the order of sentences, and what all of a list have in common."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.optimizers.problem import Problem, Solution, no_progress
from mosesplug.optimizers.registry import Algorithm, algorithm, algorithms
from mosesplug.tuning_set import TuningSet
from tests.optimizers.problems import planted, planted_for

pytestmark = pytest.mark.usefixtures("few_restarts")

BATCH = [tuner for tuner in algorithms().values() if tuner.learner is None]

SMALL_SAMPLES = {"candidate_pairs": 20, "kept_pairs": 10}
"""Settings with which random choices matter in lists as short as these: of their pairs, the
thousands drawn by default miss none."""

UNKNOWN = -100.0
"""The score of an unknown word; its weight of 1 is not tuned."""


def solve(problem: Problem, tuner: Algorithm, **settings: Any) -> Solution:
    size = len(problem.tuning_set.space)
    start = np.append(np.full(5, 0.2), np.ones(size - 5))
    options = tuner.options(**settings)
    return tuner.optimize(problem, start, np.random.default_rng(0), options, no_progress)


@pytest.mark.parametrize("tuner", BATCH, ids=lambda each: each.name)
def test_order_of_sentences(tuner: Algorithm) -> None:
    """Another order changes the rounding of sums, and more only where ``order_matters``."""
    problem = planted_for(tuner, 12, noise=1.0, n_sentences=30, n_hyps=10)
    names = {each.name for each in fields(tuner.options)} if tuner.order_matters else set()
    settings = {name: value for name, value in SMALL_SAMPLES.items() if name in names}
    bound = 0.05 if settings else 0.03 if tuner.order_matters else 1e-6
    first = solve(problem, tuner, **settings)
    moved = []
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(30)
        permuted = replace(problem, tuning_set=problem.tuning_set.take_sentences(order))
        found = solve(permuted, tuner, **settings)
        assert found.score == pytest.approx(first.score, abs=bound)
        moved.append(float(np.abs(found.weights - first.weights).max()))
    assert (max(moved) > 1e-6) == tuner.order_matters


def unknown_words(made: TuningSet, counts: NDArray[np.int64]) -> TuningSet:
    """One more dense feature, the same for all hypotheses of a sentence."""
    column = np.repeat(UNKNOWN * counts, np.diff(made.offsets))
    space = FeatureSpace.of_names([*made.space.names, "UnknownWordPenalty"])
    dense = np.column_stack([made.dense, column]).astype(np.float32)
    dense.flags.writeable = False
    return replace(made, space=space, dense=dense)


@pytest.fixture(scope="module")
def pair() -> tuple[Problem, Problem]:
    """A problem with a sixth feature that is 0, and with unknown words in most sentences."""
    problem = planted(12, noise=1.0, n_sentences=30, n_hyps=10)[0]
    counts = np.random.default_rng(1).integers(0, 12, 30)
    without, with_them = (
        replace(
            problem,
            tuning_set=unknown_words(problem.tuning_set, each),
            active=np.arange(6) < 5,
        )
        for each in (0 * counts, counts)
    )
    return without, with_them


def test_unknown_words_change_no_choice(pair: tuple[Problem, Problem]) -> None:
    rng = np.random.default_rng(2)
    for weights in np.column_stack([rng.standard_normal((50, 5)), np.ones(50)]):
        chosen = [each.tuning_set.first_best(weights) for each in pair]
        np.testing.assert_array_equal(*chosen)


@pytest.mark.parametrize(
    ("name", "tolerance"),
    [
        # Thresholds are crossings of lines whose intercepts are 1000 times larger, in double
        # precision; pairs cancel the constant exactly.
        ("mert", 1e-9),
        ("pro", 0.0),
        # Scores are in single precision, as Moses' are: 1200 is known to 1e-4.
        ("kbmira", 1e-3),
    ],
)
def test_unknown_words_change_no_weights(
    pair: tuple[Problem, Problem], name: str, tolerance: float
) -> None:
    without, with_them = (solve(each, algorithm(name)) for each in pair)
    assert with_them.score == without.score
    np.testing.assert_allclose(with_them.weights[:5], without.weights[:5], rtol=0, atol=tolerance)
