"""Losses over all pairs, against every pair looked at, and against numeric derivatives."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.optimizers.batch.ranking.all_pairs import (
    AllPairs,
    all_pairs,
    all_pairs_hinge,
    squared_hinge,
)
from mosesplug.optimizers.batch.ranking.linear import ScoreLoss

Floats = NDArray[np.float64]

SIZES = (7, 0, 1, 12, 2)
OFFSETS = np.concatenate([[0], np.cumsum(SIZES)]).astype(np.int64)


@dataclass(frozen=True)
class Enumerated:
    """Every pair: rows of the better and the worse one, and the weight."""

    better: NDArray[np.int64]
    worse: NDArray[np.int64]
    weights: Floats


def enumerated(gains: Floats, least: float, by_gap: bool) -> Enumerated:
    rows: list[tuple[int, int, float]] = []
    for start, end in itertools.pairwise(OFFSETS.tolist()):
        own = [
            (i, j, gains[i] - gains[j] if by_gap else 1.0)
            for i in range(start, end)
            for j in range(start, end)
            if gains[i] > gains[j] and gains[i] >= gains[j] + least  # eighths: exact
        ]
        whole = sum(weight for *_, weight in own)
        rows += [(i, j, weight / whole) for i, j, weight in own]
    better, worse, weights = zip(*rows, strict=True)
    return Enumerated(np.array(better), np.array(worse), np.array(weights))


def drawn(seed: int) -> tuple[Floats, Floats]:
    """Gains with many ties, and scores with some; margins on both sides of 1."""
    rng = np.random.default_rng(seed)
    n_hyps = int(OFFSETS[-1])
    scores = 40.0 + np.round(2.0 * rng.standard_normal(n_hyps), 1)
    return rng.integers(0, 6, n_hyps) / 8, scores


WAYS = [(least, by_gap) for least in (0.0, 0.25) for by_gap in (False, True)]


@pytest.mark.parametrize(("least", "by_gap"), WAYS)
def test_against_every_pair(least: float, by_gap: bool) -> None:
    gains, scores = drawn(1)
    made = all_pairs(OFFSETS, gains, minimum_difference=least, by_gap=by_gap)
    every = enumerated(gains, least, by_gap)
    assert made.n_pairs == len(every.better)
    assert made.total == pytest.approx(every.weights.sum())
    missed = 1.0 - (scores[every.better] - scores[every.worse])

    def pulled_back(slopes: Floats) -> Floats:
        found = np.zeros(len(scores))
        np.subtract.at(found, every.better, every.weights * slopes)
        np.add.at(found, every.worse, every.weights * slopes)
        return found

    curve = squared_hinge(made)(scores)
    positive = np.maximum(missed, 0.0)
    assert curve.value == pytest.approx(every.weights @ positive**2)
    np.testing.assert_allclose(curve.derivatives, pulled_back(2.0 * positive), atol=1e-12)
    vector = np.random.default_rng(2).standard_normal(len(scores))
    along = vector[every.better] - vector[every.worse]
    np.testing.assert_allclose(
        curve.product(vector), pulled_back(-2.0 * (missed > 0.0) * along), atol=1e-12
    )

    losses = all_pairs_hinge(made)
    assert losses.exact(scores) == pytest.approx(every.weights @ positive)
    width = 0.7
    slopes = np.clip(missed / width, 0.0, 1.0)
    rounded = losses.rounded_loss(width)(scores)
    assert rounded.value == pytest.approx(
        every.weights @ np.where(missed > width, missed - width / 2, positive**2 / (2 * width))
    )
    np.testing.assert_allclose(rounded.derivatives, pulled_back(slopes), atol=1e-12)
    curved = (slopes > 0.0) & (slopes < 1.0)
    np.testing.assert_allclose(
        rounded.product(vector), pulled_back(-1.0 * curved * along / width), atol=1e-11
    )
    assert losses.pull(width, scores) == pytest.approx(every.weights @ slopes)


def losses(made: AllPairs) -> dict[str, ScoreLoss]:
    return {"squared": squared_hinge(made), "rounded": all_pairs_hinge(made).rounded_loss(0.5)}


@pytest.mark.parametrize("name", ["squared", "rounded"])
def test_numeric_derivatives(name: str) -> None:
    gains, scores = drawn(3)
    # No margin at a corner of the derivatives.
    scores = scores + 0.01 * np.random.default_rng(4).standard_normal(len(scores))
    loss = losses(all_pairs(OFFSETS, gains, by_gap=True))[name]
    curve, step = loss(scores), 1e-6
    vector = np.random.default_rng(5).standard_normal(len(scores))
    ahead, behind = loss(scores + step * vector), loss(scores - step * vector)
    assert curve.derivatives @ vector == pytest.approx((ahead.value - behind.value) / (2 * step))
    np.testing.assert_allclose(
        curve.product(vector), (ahead.derivatives - behind.derivatives) / (2 * step), atol=1e-6
    )


def test_scores_of_a_sentence_may_all_move() -> None:
    gains, scores = drawn(6)
    loss = squared_hinge(all_pairs(OFFSETS, gains))
    moved = scores + np.repeat([1e6, 0.0, 3.0, -1e6, 7.0], SIZES)
    assert loss(moved).value == pytest.approx(loss(scores).value, rel=1e-7)


def test_no_pairs() -> None:
    made = all_pairs(OFFSETS, np.full(int(OFFSETS[-1]), 0.5))
    assert made.n_pairs == 0
    assert squared_hinge(made)(np.zeros(int(OFFSETS[-1]))).value == 0.0
