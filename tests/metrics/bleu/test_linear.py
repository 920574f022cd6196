"""Linear BLEU against what its sentences change in the BLEU of a corpus."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.errors import DataError
from mosesplug.metrics import metric
from mosesplug.metrics.bleu.linear import LinearBleu, linear_bleu

BLEU = metric("BLEU")
CORPUS = np.array([70e3, 100e3, 40e3, 95e3, 25e3, 90e3, 15e3, 85e3, 99e3])
SENTENCES = np.array([[8, 10, 4, 9, 2, 8, 1, 7, 9], [3, 12, 0, 11, 0, 10, 0, 9, 13]])


def test_equation_52_by_hand() -> None:
    gains = linear_bleu(CORPUS).gains(SENTENCES)
    expected = -10 / 100e3 + (8 / 70e3 + 4 / 40e3 + 2 / 25e3 + 1 / 15e3) / 4
    assert gains[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("reference", "brevity"), [(99e3, 0.0), (105e3, 1.0)])
def test_gains_are_changes_of_log_bleu(reference: float, brevity: float) -> None:
    """But for the numbers of n-grams, which are taken to grow like that of words."""
    corpus = np.append(CORPUS[:-1], reference)
    sentences = SENTENCES.astype(np.float64)
    sentences[:, [3, 5, 7]] = sentences[:, [1]] * corpus[[3, 5, 7]] / corpus[1]
    change = np.log(BLEU.score(corpus + sentences) / BLEU.score(corpus))
    assert linear_bleu(corpus, brevity=brevity).gains(sentences) == pytest.approx(change, rel=1e-3)


def test_of_precisions() -> None:
    shape = LinearBleu.of_precisions(0.8, 0.5)
    assert shape.word == -1.0
    np.testing.assert_allclose(shape.ngrams, 1 / (4 * 0.8 * np.array([1, 0.5, 0.25, 0.125])))
    counts = 1000.0 * np.array([1.0, 0.9, 0.8, 0.7])
    matches = 800.0 * np.array([1.0, 0.5, 0.25, 0.125])
    measured = linear_bleu(np.append(np.column_stack([matches, counts]).ravel(), 1000.0))
    np.testing.assert_allclose(1000.0 * measured.ngrams, shape.ngrams)


def test_needs_matches_of_all_lengths() -> None:
    with pytest.raises(DataError, match="no n-gram of 3 words"):
        linear_bleu(np.where(np.arange(9) == 4, 0.0, CORPUS))
