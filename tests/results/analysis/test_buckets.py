"""Test the ranges and labels of buckets."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.results.analysis.buckets import (
    DIFFERENCES,
    FREQUENCIES,
    LENGTHS,
    Buckets,
    score_buckets,
)


@pytest.mark.parametrize(
    ("buckets", "value", "label"),
    [
        (FREQUENCIES, 0, "0"),
        (FREQUENCIES, 4, "4"),
        (FREQUENCIES, 5, "5 to 9"),
        (FREQUENCIES, 9, "5 to 9"),
        (FREQUENCIES, 999, "100 to 999"),
        (FREQUENCIES, 1000, "1000 or more"),
        (LENGTHS, 0, "0 to 9"),
        (LENGTHS, 9.5, "0 to 9"),
        (LENGTHS, 10, "10 to 19"),
        (LENGTHS, 60, "60 or more"),
        (DIFFERENCES, -21, "below -20"),
        (DIFFERENCES, -20, "-20 to -11"),
        (DIFFERENCES, -5, "-5"),
        (DIFFERENCES, 0, "0"),
        (DIFFERENCES, 10, "6 to 10"),
        (DIFFERENCES, 21, "21 or more"),
    ],
)
def test_labels(buckets: Buckets, value: float, label: str) -> None:
    (place,) = buckets.assign(np.array([value]))
    assert buckets.labels[place] == label


@pytest.mark.parametrize(
    ("scores", "from_zero", "labels"),
    [
        ([0.0, 0.1, 1 - 0.7, 0.95, 1.0], False, ["below 0.1", "0.1 to 0.2", "0.3 to 0.4", None]),
        ([0.2, 2.5], True, ["0.2 to 0.3", "0.9 or more"]),
        ([0.5] * 3, False, ["0.5 to 0.6"]),
        ([7.0] * 3, False, ["7 or more"]),
        ([-2.0, -2.0 + 1e-12], False, ["-2 or more"]),
        # 98 % of the scores are between -0.488 and 0.688: ranges of 0.2, not of 0.1.
        (np.linspace(-0.5, 0.7, 101).tolist(), False, ["below -0.4", "-0.4 to -0.2"]),
        (np.linspace(-50, 50, 101).tolist(), False, ["below -40", "-40 to -30"]),
    ],
)
def test_scores(scores: list[float], from_zero: bool, labels: list[str | None]) -> None:
    buckets = score_buckets(np.array(scores), from_zero=from_zero)
    found = dict.fromkeys(buckets.labels[place] for place in buckets.assign(np.array(scores)))
    for label, expected in zip(found, labels, strict=False):
        assert expected in (None, label)
    assert len(buckets) == len(buckets.bounds) + 1
    assert len(buckets) <= 12
