"""Weights between iterations, and the ranges of random starts."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.settings.intervals import parse_start_ranges
from mosesplug.tuning.weights import Weights, arrange_ranges, average_weights

SPACE = FeatureSpace((("d", 1), ("tm", 2)), ("wt_a", "wt_b"))


def test_vector_and_back() -> None:
    weights = Weights((1.0, 2.0, 3.0), {"wt_b": 0.5, "wt_z": 9.0})
    vector = weights.vector(SPACE)
    assert vector.tolist() == [1.0, 2.0, 3.0, 0.0, 0.5]
    assert Weights.of_vector(SPACE, vector) == Weights((1.0, 2.0, 3.0), {"wt_b": 0.5})


def test_normalizing_keeps_the_ranking() -> None:
    weights = Weights((1.0, -2.0, 1.0), {"wt_a": 8.0})
    assert weights.normalize() == Weights((0.25, -0.5, 0.25), {"wt_a": 2.0})
    assert Weights((0.0, 0.0, 0.0)).normalize() == Weights((0.0, 0.0, 0.0))


def test_completing() -> None:
    earlier = Weights((1.0, 3.0), {"wt_a": 2.0, "wt_b": 1.0, "wt_z": 8.0})
    found = Weights((0.5, 0.5), {"wt_a": 0.1})
    completed = {"wt_a": 0.1, "wt_b": 0.0, "wt_z": 2.0}
    assert found.complete(earlier, SPACE) == Weights((0.5, 0.5), completed)
    assert found.complete(Weights((0.0, 0.0)), SPACE) == found


def test_mixing() -> None:
    new, old = Weights((1.0,), {"wt_a": 1.0}), Weights((3.0,), {"wt_b": 4.0})
    assert new.mix(old, 0.25) == Weights((2.5,), {"wt_a": 0.25, "wt_b": 3.0})


def test_largest_change() -> None:
    old = Weights((1.0, 2.0), {"wt_a": 1.0})
    assert Weights((1.5, 2.0), {"wt_a": 1.0}).largest_change(old) == 0.5
    assert Weights((1.0, 2.0), {"wt_b": 3.0}).largest_change(old) == 3.0
    assert old.largest_change(old) == 0.0


def test_the_mean_of_weights_of_their_size_or_of_size_one() -> None:
    points = [Weights((1.0, 3.0), {"wt_a": 4.0}), Weights((2.0, -6.0)), Weights((6.0, 0.0))]
    assert average_weights(points, normalize=False).dense == pytest.approx((3.0, -1.0))
    assert average_weights(points, normalize=False).sparse == pytest.approx({"wt_a": 4 / 3})
    free = average_weights(points, normalize=True)
    assert free.dense == pytest.approx(((0.25 + 0.25 + 1) / 3, (0.75 - 0.75) / 3))
    assert free.sparse == pytest.approx({"wt_a": 1 / 3})


def test_ranges() -> None:
    names = ("d", "tm", "tm", "lm")
    assert arrange_ranges(parse_start_ranges(()), names) == ((0.0,) * 4, (1.0,) * 4)
    together = arrange_ranges(parse_start_ranges(("tm:0..1,-1..1",)), names)
    assert together == arrange_ranges(parse_start_ranges(("tm:0..1", "tm:-1..1")), names)
    assert together == ((0.0, 0.0, -1.0, 0.0), (1.0, 1.0, 1.0, 1.0))
    minima, maxima = arrange_ranges(parse_start_ranges(("tm:-.5..2e1,lm:-3..-1",)), names)
    assert np.array_equal(minima, [0, -0.5, 0, -3])
    assert np.array_equal(maxima, [1, 20, 1, -1])


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("0..1", "no feature is named"),
        ("tm:0-1", "not of the form"),
        ("tm:0..x", "not of the form"),
        ("tm:1..0", "lowest value first"),
        ("tm:0..inf", "give finite numbers"),
        ("xx:0..1", "no feature xx"),
        ("d:0..1,0..1", "2 bounds for d"),
    ],
)
def test_rejected_ranges(text: str, why: str) -> None:
    with pytest.raises((UsageError, ValueError), match=why):
        arrange_ranges(parse_start_ranges((text,)), ("d", "tm", "tm", "lm"))
