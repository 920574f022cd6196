"""xBLEU against BLEU itself, its formula written out, and differences."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.metrics import metric
from mosesplug.metrics.bleu.expected import expected_bleu, smooth_brevity

BLEU = metric("BLEU")


def totals(words: float, reference: float) -> NDArray[np.float64]:
    """Statistics of some corpus, with as many words as these."""
    counts = words * np.array([1.0, 0.9, 0.81, 0.72])
    matches = counts * np.array([0.7, 0.4, 0.25, 0.15])
    return np.append(np.column_stack([matches, counts]).ravel(), reference)


@pytest.mark.parametrize("x", [-0.5, -1e-5, 0.0, 1e-5, 0.5])
def test_brevity(x: float) -> None:
    value, slope = smooth_brevity(x)
    assert value == pytest.approx(min(1.0, math.exp(x)), abs=1e-4)
    step = 1e-9
    numeric = (smooth_brevity(x + step)[0] - smooth_brevity(x - step)[0]) / (2 * step)
    assert slope == pytest.approx(numeric, abs=1e-5)


@pytest.mark.parametrize(("words", "reference"), [(980.0, 1000.0), (1000.0, 980.0), (1e3, 1e3)])
def test_is_bleu_but_where_lengths_are_equal(words: float, reference: float) -> None:
    value, _ = expected_bleu(totals(words, reference))
    assert value == pytest.approx(float(BLEU.score(totals(words, reference))), rel=1e-4)


@pytest.mark.parametrize("reference", [800.0, 999.9, 1000.0, 1000.1, 1200.0])
def test_derivatives(reference: float) -> None:
    at = totals(1000.0, reference)
    _, gradient = expected_bleu(at)
    for column in range(len(at)):
        step = 1e-4 * np.eye(len(at))[column]
        slope = (expected_bleu(at + step)[0] - expected_bleu(at - step)[0]) / 2e-4
        assert gradient[column] == pytest.approx(slope, rel=1e-5, abs=1e-9)


@pytest.mark.parametrize("column", [0, 6, 7])
def test_without_a_match_it_is_zero(column: int) -> None:
    at = totals(1000.0, 900.0)
    at[column] = 0.0
    value, gradient = expected_bleu(at)
    assert value == 0.0
    assert not gradient.any()
