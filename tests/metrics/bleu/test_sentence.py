"""Smoothed sentence BLEU against hand computation and recorded output of Moses."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.metrics import (
    Bleu,
    sentence_bleu_lin_och,
    sentence_bleu_moses,
    sentence_bleu_nakov,
)
from mosesplug.metrics.bleu import sentence
from mosesplug.metrics.bleu.sentence import single_bleu

Variant = Callable[[NDArray[Any]], NDArray[np.float64]]
VARIANTS: tuple[Variant, ...] = (sentence_bleu_lin_och, sentence_bleu_moses, sentence_bleu_nakov)

# Six words against seven, the example of Moses' own unit test.
SIX_OF_SEVEN = [6, 6, 4, 5, 2, 4, 1, 3, 7]
SHORT_PERFECT = [2, 2, 1, 1, 0, 0, 0, 0, 2]
NOTHING_RIGHT = [0, 4, 0, 3, 0, 2, 0, 1, 4]
EMPTY = [0, 0, 0, 0, 0, 0, 0, 0, 3]
EMPTY_OF_EMPTY = [0] * 9

BREVITY = math.exp(1 - 7 / 6)
BREVITY_PLUS_1 = math.exp(1 - 8 / 6)


def scores(variant: Variant, *rows: list[int]) -> list[float]:
    return list(map(float, variant(np.array(rows, dtype=np.int32))))


def test_lin_och_smooths_orders_above_one() -> None:
    assert scores(
        sentence_bleu_lin_och, SIX_OF_SEVEN, SHORT_PERFECT, NOTHING_RIGHT, EMPTY, EMPTY_OF_EMPTY
    ) == pytest.approx([(6 / 6 * 5 / 6 * 3 / 5 * 2 / 4) ** 0.25 * BREVITY, 1.0, 0.0, 0.0, 0.0])


def test_moses_smooths_every_order() -> None:
    assert scores(
        sentence_bleu_moses, SIX_OF_SEVEN, SHORT_PERFECT, NOTHING_RIGHT, EMPTY, EMPTY_OF_EMPTY
    ) == pytest.approx(
        [
            (7 / 7 * 5 / 6 * 3 / 5 * 2 / 4) ** 0.25 * BREVITY,
            1.0,
            (1 / 5 * 1 / 4 * 1 / 3 * 1 / 2) ** 0.25,
            0.0,
            1.0,
        ]
    )
    half = sentence_bleu_moses(np.array([SIX_OF_SEVEN]), 0.5)[0]
    expected = (6.5 / 6.5 * 4.5 / 5.5 * 2.5 / 4.5 * 1.5 / 3.5) ** 0.25 * BREVITY
    assert half == pytest.approx(expected)


def test_nakov_adds_one_to_the_reference_length() -> None:
    assert scores(
        sentence_bleu_nakov, SIX_OF_SEVEN, SHORT_PERFECT, EMPTY, EMPTY_OF_EMPTY
    ) == pytest.approx(
        [
            (7 / 7 * 5 / 6 * 3 / 5 * 2 / 4) ** 0.25 * BREVITY_PLUS_1,
            math.exp(1 - 3 / 2),
            0.0,
            0.0,
        ]
    )


def test_values_of_moses_own_unit_test() -> None:
    row = np.array([SIX_OF_SEVEN], dtype=np.float32)
    assert sentence_bleu_moses(row)[0] == pytest.approx(0.5985, rel=1e-4)
    assert sentence_bleu_moses(row, 0.5)[0] == pytest.approx(0.5624, rel=1e-4)
    assert sentence_bleu_nakov(row)[0] == pytest.approx(0.5067, rel=1e-4)


def test_background_is_added_before_scoring() -> None:
    background = np.array([10.5, 12, 6, 11, 3, 10, 1.5, 9, 13])
    row = np.array([SIX_OF_SEVEN], dtype=np.int32)
    bleu = (16.5 / 18 * 10 / 16 * 5 / 14 * 2.5 / 12) ** 0.25 * math.exp(1 - 20 / 18)
    assert single_bleu((row[0] + background).astype(np.float32)) == pytest.approx(bleu, rel=1e-6)


def test_a_background_without_a_match_gives_a_score_of_zero() -> None:
    rows = np.array([NOTHING_RIGHT, EMPTY_OF_EMPTY], dtype=np.float32)
    assert [single_bleu(row) for row in rows] == [0.0, 0.0]


LENGTHS = st.integers(0, 40)


@st.composite
def statistics_rows(draw: st.DrawFn) -> list[int]:
    """A row that a sentence could have: matches never above totals, orders shrinking."""
    length = draw(LENGTHS)
    row: list[int] = []
    match = length
    for order in range(4):
        total = max(length - order, 0)
        match = draw(st.integers(0, min(match, total)))
        row += [match, total]
    return [*row, draw(LENGTHS)]


@given(st.lists(statistics_rows(), min_size=1, max_size=20))
def test_scores_are_in_range_and_ordered(rows: list[list[int]]) -> None:
    array = np.array(rows, dtype=np.int32)
    for variant in VARIANTS:
        values = variant(array)
        assert values.dtype == np.float64
        assert np.all((values >= 0) & (values <= 1))
    assert np.all(sentence_bleu_nakov(array) <= sentence_bleu_moses(array))
    assert np.all(sentence_bleu_lin_och(array) <= sentence_bleu_moses(array) * (1 + 1e-12))
    # Any smoothing is a lift over BLEU itself, except the longer reference of Nakov et al.
    assert np.all(Bleu().score(array) <= sentence_bleu_lin_och(array) * (1 + 1e-12))


@pytest.mark.parametrize("variant", VARIANTS)
def test_rows_are_scored_in_parts(variant: Variant, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [SIX_OF_SEVEN, SHORT_PERFECT, NOTHING_RIGHT, EMPTY, EMPTY_OF_EMPTY] * 3
    each = [scores(variant, row)[0] for row in rows]
    monkeypatch.setattr(sentence, "_AT_ONCE", 4)
    assert scores(variant, *rows) == each
    assert scores(variant, *rows[:8]) == each[:8]


@given(statistics_rows())
def test_lin_och_equals_sacrebleu_add_one(row: list[int]) -> None:
    theirs = sacrebleu.BLEU.compute_bleu(
        row[0:8:2], row[1:8:2], row[1], row[8], smooth_method="add-k", smooth_value=1
    )
    [ours] = scores(sentence_bleu_lin_och, row)
    assert 100 * ours == pytest.approx(theirs.score, abs=1e-9)


def test_recorded_sentence_bleu(multi30k: Path) -> None:
    folder = multi30k / "scores"
    hypotheses = (folder / "first100.1best").read_bytes().removesuffix(b"\n").split(b"\n")
    references = (folder / "first100.ref").read_bytes().removesuffix(b"\n").split(b"\n")
    recorded = np.array((folder / "first100.sentence-bleu.txt").read_text().split(), dtype=float)
    ends = np.cumsum([len(line) for line in hypotheses])
    starts = np.concatenate([[0], ends[:-1]])
    buffer = np.frombuffer(b"".join(hypotheses), dtype=np.uint8)
    metric = Bleu()
    rows = metric.statistics(
        metric.prepare([references]), np.arange(len(hypotheses)), buffer, starts, ends
    )
    assert len(recorded) == len(hypotheses) == 100
    # Moses prints six digits of what it computed in single precision.
    np.testing.assert_allclose(sentence_bleu_moses(rows), recorded, rtol=4e-6)
