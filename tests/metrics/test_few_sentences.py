"""Scores of a few sentences: the metric's own, but never 0 for want of a long match."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.metrics import metric
from mosesplug.metrics.bleu.corpus import Bleu
from mosesplug.metrics.few_sentences import FewSentences
from mosesplug.metrics.ter.moses import Ter

COUNTS = st.lists(st.tuples(st.integers(1, 30), st.integers(0, 30)), min_size=4, max_size=4)


@given(counts=COUNTS, reference=st.integers(1, 60))
def test_is_the_metric_where_all_orders_match(
    counts: list[tuple[int, int]], reference: int
) -> None:
    totals = np.array([n for match, more in counts for n in (match, match + more)] + [reference])
    assert FewSentences(Bleu()).score(totals) == Bleu().score(totals)


def test_by_hand() -> None:
    few, bleu = FewSentences(Bleu()), Bleu()
    # Five words, three of them right and two side by side: no match of three or four words.
    row = np.array([3, 5, 1, 4, 0, 3, 0, 2, 5])
    assert bleu.score(row) == 0.0
    assert few.score(row) == pytest.approx((3 / 5 * 1 / 4 * 0.125 / 3 * 0.0625 / 2) ** 0.25)
    # Three right words of four, and nothing of four words to match.
    short = np.array([3, 3, 2, 2, 1, 1, 0, 0, 4])
    assert few.score(short) == pytest.approx(0.0625**0.25 * np.exp(1 - 4 / 3))
    assert few.score(np.array([0, 0, 0, 0, 0, 0, 0, 0, 4])) == 0.0
    rows = np.stack([row, short])
    np.testing.assert_array_equal(few.score(rows), [few.score(row), few.score(short)])
    np.testing.assert_array_equal(rows, [row, short])


def test_of_a_mixture_only_bleu_changes() -> None:
    mixed, bleu = metric("TER,BLEU", "weights:0.25+0.75"), np.array([3, 5, 1, 4, 0, 3, 0, 2, 5])
    ter = np.arange(2, 2 + Ter().n_statistics)
    wanted = 0.25 * Ter().score(ter) + 0.75 * FewSentences(Bleu()).score(bleu)
    totals = np.concatenate([ter, bleu])
    assert FewSentences(mixed).score(totals) == pytest.approx(float(wanted))
    assert FewSentences(Ter()).score(ter) == Ter().score(ter)
