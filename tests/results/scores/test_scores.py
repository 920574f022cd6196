"""Bootstrap intervals and sentence BLEU against plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.metrics import metric, sentence_bleu_moses
from mosesplug.moses_tools.c_rand import CRand
from mosesplug.results.scores.scores import bootstrap, corpus_score, sentence_bleu


@pytest.mark.parametrize(("samples", "low", "high"), [(1, 0, 0), (40, 1, 39), (1000, 25, 975)])
def test_bootstrap_draws_as_moses_does(samples: int, low: int, high: int) -> None:
    per = metric("PER")
    statistics = np.array([[3, 4, 4], [0, 5, 5], [2, 2, 2]], dtype=np.int32)
    draws = iter(CRand(11).draw(3 * samples).tolist())
    scores = []
    for _ in range(samples):
        chosen = [next(draws) % 3 for _ in range(3)]
        right, _, length = np.sum([statistics[row] for row in chosen], axis=0).tolist()
        scores.append(right / length)
    found = bootstrap(per, statistics, samples, CRand(11))
    assert found.mean == pytest.approx(sum(scores) / samples)
    assert found.low == pytest.approx(sorted(scores)[low])
    assert found.high == pytest.approx(sorted(scores)[high])
    assert corpus_score(per, statistics) == pytest.approx(5 / 11)


ROWS = st.tuples(st.integers(0, 40), st.integers(0, 40)).map(
    lambda pair: (
        [n for order in range(4) for n in (max(min(pair) - 2 * order, 0), max(pair[0] - order, 0))]
        + [pair[1]]
    )
)


@given(st.lists(ROWS, min_size=1, max_size=5))
def test_sentence_bleu_in_single_precision(rows: list[list[int]]) -> None:
    statistics = np.array(rows, dtype=np.int32)
    found = sentence_bleu(statistics)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, sentence_bleu_moses(statistics), rtol=3e-6)
    for row, score in zip(rows, found.tolist(), strict=True):
        if row[1] == 0:
            assert score == (1.0 if row[8] == 0 else 0.0)
        else:
            precision = math.prod((row[2 * n] + 1) / (row[2 * n + 1] + 1) for n in range(4))
            brevity = min(1.0, math.exp(1 - row[8] / row[1]))
            assert score == pytest.approx(precision**0.25 * brevity, rel=1e-5)
