"""What keeps candidates from being pairs, by hand, and PRO under such limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.ranking.pairs import (
    ConstraintOptions,
    PairSampling,
    RankedPairs,
    sample_pairs,
)
from mosesplug.optimizers.batch.ranking.pro import ProOptions
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.problems import planted

pro = algorithm("pro").optimize

OFFSETS = np.array([0, 0, 6, 12])
SCORES = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.9, 0.5, 0.5, 0.52, 0.54, 0.56, 0.58])
LENGTHS = np.array([10, 11, 12, 13, 14, 40, 20, 20, 20, 20, 20, 26], dtype=np.int32)


def allowed(**settings: object) -> set[tuple[int, int]]:
    """Pairs that the first sentence may have, each in one direction."""
    options = replace(ConstraintOptions(), **settings)  # type: ignore[arg-type]
    rule = options.rule(SCORES, LENGTHS, lambda top, count: np.zeros(count, dtype=np.int64))
    first, second = np.triu_indices(6, 1)
    assert rule is not None
    kept = rule(slice(0, 6), first, second)
    return set(zip(first[kept].tolist(), second[kept].tolist(), strict=True))


def test_without_limits_there_is_no_rule() -> None:
    draw = np.random.default_rng(0).integers
    assert ConstraintOptions().rule(SCORES, LENGTHS, lambda top, n: draw(0, top, n)) is None


def test_cut_offs() -> None:
    steps = {(row, row + 1) for row in range(4)}
    assert allowed(maximum_difference=0.15) == steps
    assert allowed(maximum_length_difference=1) == steps
    assert allowed(maximum_length_difference=2, maximum_difference=0.15) == steps


def test_outliers() -> None:
    inside = {(one, two) for one in range(5) for two in range(one + 1, 5)}
    # Of scores 0.1 to 0.5 and 0.9 the mean is 0.4 and the deviation 0.258: 0.9 is 1.94 away.
    assert allowed(score_outliers=1.9) == inside
    assert len(allowed(score_outliers=1.95)) == 15
    assert allowed(length_outliers=2.0) == inside


def test_typical_differences_are_accepted_more_often() -> None:
    rng = np.random.default_rng(1)
    gaps = rng.standard_normal(400)
    lengths = np.zeros(400, dtype=np.int32)
    options = ConstraintOptions(typical="score")
    rule = options.rule(gaps, lengths, lambda top, count: rng.integers(0, top, count))
    assert rule is not None
    first, second = rng.integers(0, 400, (2, 40000))
    kept = rule(slice(0, 400), first, second)
    # The density of differences is that of N(0, 2v); times itself it integrates to 1/sqrt(2).
    assert kept.mean() == pytest.approx(np.sqrt(0.5), abs=0.02)
    near, far = np.abs(gaps[first] - gaps[second]) < 0.5, np.abs(gaps[first] - gaps[second]) > 3.0
    assert kept[near].mean() > 0.95
    assert kept[far].mean() < 0.2
    by_length = replace(options, typical="length").rule(gaps, lengths, lambda top, n: first[:n])
    assert by_length is not None
    assert by_length(slice(0, 400), first, second).all()  # all are as long: none is untypical


def sampled(settings: ConstraintOptions, sampling: PairSampling) -> RankedPairs:
    rng = np.random.default_rng(2)

    def draw(top: int, count: int) -> NDArray[np.int64]:
        return rng.integers(0, top, count)

    return sample_pairs(OFFSETS, SCORES, draw, sampling, settings.rule(SCORES, LENGTHS, draw))


def test_sampled_pairs_keep_to_the_rule() -> None:
    sampling = PairSampling(candidates=300, kept=20, minimum_difference=0.05)
    free = sampled(ConstraintOptions(), sampling)
    assert 5 in free.better
    limited = sampled(ConstraintOptions(maximum_length_difference=5), sampling)
    assert len(limited) == 40
    gaps = np.abs(LENGTHS[limited.better] - LENGTHS[limited.worse])
    assert gaps.max() <= 5
    assert (SCORES[limited.better] - SCORES[limited.worse] >= 0.05 - 1e-9).all()


def test_random_acceptance_keeps_the_first_pairs_drawn() -> None:
    sampling = PairSampling(candidates=300, kept=20, minimum_difference=0.05)
    largest = sampled(ConstraintOptions(), sampling)
    some = sampled(ConstraintOptions(), replace(sampling, largest=False))
    gaps = [np.mean(SCORES[pairs.better] - SCORES[pairs.worse]) for pairs in (largest, some)]
    assert gaps[0] > gaps[1] + 0.05


@pytest.mark.parametrize("classifier", ["hinge", "perceptron"])
def test_pro_with_other_classifiers(classifier: str) -> None:
    problem, hidden = planted(3, n_sentences=100)
    options = ProOptions(classifier=classifier, score_outliers=3.0, kept_pairs=30)  # type: ignore[arg-type]
    found = [pro(problem, np.ones(5), np.random.default_rng(0), options) for _ in range(2)]
    weights = found[0].weights
    assert weights @ hidden / np.linalg.norm(weights) / np.linalg.norm(hidden) > 0.9
    np.testing.assert_array_equal(weights, found[1].weights)
    assert ("gap" in found[0].history[0]) == (classifier == "hinge")
    active = np.array([True, False, True, True, True])
    held = pro(
        replace(problem, active=active),
        np.where(active, 0.0, 7.0 * hidden),
        np.random.default_rng(0),
        options,
    ).weights
    assert held[1] == 7.0 * hidden[1]
    assert held @ hidden / np.linalg.norm(held) / np.linalg.norm(hidden) > 0.9


def test_limits_that_leave_no_pairs_are_an_error() -> None:
    problem, _ = planted(4, n_sentences=5)
    options = ProOptions(maximum_difference=0.01)
    with pytest.raises(OptimizerError, match="within the limits"):
        pro(
            Problem(problem.tuning_set, problem.metric),
            np.ones(5),
            np.random.default_rng(0),
            options,
        )
