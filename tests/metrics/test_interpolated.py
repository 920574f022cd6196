"""Weighted sums of metrics."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.metrics import Bleu, InterpolatedMetric, Metric, Per, Ter, metric

REFERENCE = [[b"the cat sat on the mat", b"a b c d e f"]]
TEXT = b"the cat is on the mata b d c e"


def rows_of(scorer: Metric) -> np.ndarray[tuple[int, ...], np.dtype[np.int32]]:
    buffer = np.frombuffer(TEXT, dtype=np.uint8)
    bounds = np.array([0, 21, 30])
    return scorer.statistics(
        scorer.prepare(REFERENCE), np.array([0, 1]), buffer, bounds[:-1], bounds[1:]
    )


def test_statistics_follow_one_another() -> None:
    parts: tuple[Metric, ...] = (Bleu(), Ter(), Per())
    rows = rows_of(InterpolatedMetric(parts))
    np.testing.assert_array_equal(rows, np.concatenate([rows_of(p) for p in parts], axis=1))


@pytest.mark.parametrize("weights", [(0.6, 0.4), (3.0, 2.0), (600.0, 400.0)])
def test_weights_are_normalized_to_sum_1(weights: tuple[float, ...]) -> None:
    scorer = InterpolatedMetric((Bleu(), Ter()), weights)
    totals = rows_of(scorer).sum(axis=0)
    expected = 0.6 * Bleu().score(totals[:9]) + 0.4 * Ter().score(totals[9:])
    assert float(scorer.score(totals)) == pytest.approx(float(expected), rel=1e-14)


def test_weights_are_equal_if_not_given() -> None:
    assert metric("BLEU,TER") == InterpolatedMetric((Bleu(), Ter()), (0.5, 0.5))


def test_names() -> None:
    scorer = InterpolatedMetric((Per(), Ter()))
    assert scorer.name == "PER,TER"
    assert scorer.statistics_names[2:4] == ("PER.reference_length", "TER.edits_x100")


def test_the_signature_names_weights_and_metrics() -> None:
    scorer = metric("BLEU,TER", "weights:0.75+0.25,case:false")
    assert scorer.signature().startswith("BLEU,TER|weights:0.75+0.25|BLEU|case:lc-ascii|")
    assert "|TER|case:lc-ascii|" in scorer.signature()
    assert scorer.prepare(REFERENCE).signature.count("nrefs:1") == 2


def test_other_weights_take_other_references() -> None:
    prepared = metric("BLEU,TER", "weights:1+3").prepare(REFERENCE)
    nothing = np.zeros(0, dtype=np.int64)
    with pytest.raises(ValueError, match="cannot serve"):
        metric("BLEU,TER").statistics(prepared, nothing, nothing.astype(np.uint8), nothing, nothing)


def test_a_sum_needs_two_metrics() -> None:
    with pytest.raises(UsageError, match="at least two metrics"):
        InterpolatedMetric((Bleu(),))
