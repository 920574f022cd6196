"""PER, WER and CDER against definitions written out plainly."""

from __future__ import annotations

from collections import Counter
from functools import cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import Cder, Metric, Per, Wer

sentences = st.lists(st.sampled_from("abcd"), max_size=7).map(tuple)

Sentence = tuple[str, ...]


def count(
    scorer: Metric, hypothesis: Sentence | str, *references: Sentence | str
) -> NDArray[np.int32]:
    text = " ".join(hypothesis).encode()
    prepared = scorer.prepare([[" ".join(reference).encode()] for reference in references])
    buffer = np.frombuffer(bytearray(text), dtype=np.uint8)
    row = scorer.statistics(
        prepared, np.array([0]), buffer, np.array([0]), np.array([len(buffer)])
    )[0]
    return np.asarray(row)


def edit_distance(left: Sentence, right: Sentence) -> int:
    """Levenshtein's recursion."""

    @cache
    def cost(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        same = 0 if left[i - 1] == right[j - 1] else 1
        return min(cost(i - 1, j) + 1, cost(i, j - 1) + 1, cost(i - 1, j - 1) + same)

    return cost(len(left), len(right))


def jumping_distance(hypothesis: Sentence, reference: Sentence) -> int:
    """Shortest path over all pairs of places, jumps included, by relaxing every edge (Bellman)."""
    places = [(i, j) for i in range(len(hypothesis) + 1) for j in range(len(reference) + 1)]
    cost = dict.fromkeys(places, 10**6)
    cost[0, 0] = 0
    for _ in places:
        for i, j in places:
            steps = [((k, j), 1) for k in range(len(hypothesis) + 1)]
            if i < len(hypothesis):
                steps.append(((i + 1, j), 1))
            if j < len(reference):
                steps.append(((i, j + 1), 1))
            if i < len(hypothesis) and j < len(reference):
                steps.append(((i + 1, j + 1), int(hypothesis[i] != reference[j])))
            for place, price in steps:
                cost[place] = min(cost[place], cost[i, j] + price)
    return cost[len(hypothesis), len(reference)]


@given(sentences, sentences)
def test_wer_is_edit_distance(hypothesis: Sentence, reference: Sentence) -> None:
    expected = [edit_distance(hypothesis, reference), len(reference)]
    assert count(Wer(), hypothesis, reference).tolist() == expected


short = st.lists(st.sampled_from("abc"), max_size=5).map(tuple)


@given(short, short)
def test_cder_is_edit_distance_with_jumps(hypothesis: Sentence, reference: Sentence) -> None:
    expected = [jumping_distance(hypothesis, reference), len(reference)]
    assert count(Cder(), hypothesis, reference).tolist() == expected


@given(sentences, sentences)
def test_per_is_the_size_of_the_common_bag(hypothesis: Sentence, reference: Sentence) -> None:
    common = (Counter(hypothesis) & Counter(reference)).total()
    expected = [common, len(hypothesis), len(reference)]
    assert count(Per(), hypothesis, reference).tolist() == expected


def test_moved_blocks_cost_jumps_only() -> None:
    # To the second half, back to the first, and to the end.
    assert count(Cder(), "defabc", "abcdef").tolist() == [3, 6]
    assert count(Wer(), "defabc", "abcdef").tolist() == [6, 6]
    assert count(Per(), "defabc", "abcdef").tolist() == [6, 6, 6]


@pytest.mark.parametrize(
    ("scorer", "totals", "score"),
    [
        (Per(), [7, 9, 10], 0.7),
        (Per(), [7, 12, 10], 0.5),
        (Per(), [0, 30, 10], -2.0),
        (Per(), [0, 5, 0], -4.0),
        (Wer(), [3, 10], 0.7),
        (Wer(), [15, 10], -0.5),
        (Wer(), [0, 0], 1.0),
        (Wer(), [3, 0], -2.0),
        (Cder(), [3, 12], 0.75),
    ],
)
def test_scores(scorer: Metric, totals: list[int], score: float) -> None:
    assert float(scorer.score(np.array(totals))) == pytest.approx(score, abs=1e-15)


@pytest.mark.parametrize("scorer", [Wer(), Cder()])
@pytest.mark.parametrize(
    ("references", "expected"),
    [
        # The first, though the second is closer.
        (("abcd", "abxy"), [2, 4]),
        # The second, which matches exactly.
        (("abcd", "abxx"), [0, 4]),
        # The second: the first gives two errors a word.
        (("q", "abxz"), [1, 4]),
        # An empty reference passes for an exact match.
        (("abcd", ""), [4, 0]),
    ],
)
def test_which_reference_moses_takes(
    scorer: Wer, references: tuple[str, ...], expected: list[int]
) -> None:
    expected = expected if not isinstance(scorer, Cder) or expected[1] else [1, 0]
    assert count(scorer, "abxx", *references).tolist() == expected


@pytest.mark.parametrize(
    ("hypothesis", "references", "expected"),
    [
        ("abxx", ("abcd", "abxy"), [1, 4]),
        ("abxx", ("abxy", "abcd"), [1, 4]),
        ("abxx", ("abxyzz", "abxy"), [1, 4]),
        ("abxx", ("", "qrst"), [4, 4]),
        ("abxx", ("qrst", ""), [4, 4]),
        ("", ("", "a"), [0, 0]),
        ("", ("a", ""), [0, 0]),
        ("a", ("", ""), [1, 0]),
    ],
)
def test_the_reference_of_the_lowest_error_rate(
    hypothesis: str, references: tuple[str, ...], expected: list[int]
) -> None:
    assert count(Wer(reference_choice="best"), hypothesis, *references).tolist() == expected


def test_unknown_words_match_nothing() -> None:
    assert count(Wer(), "xy", "yx").tolist() == [2, 2]
    assert count(Per(), "xxx", "yyy").tolist() == [0, 3, 3]


def test_per_takes_one_reference() -> None:
    with pytest.raises(DataError, match="PER supports one reference, but there are 2"):
        Per().prepare([[b"a"], [b"a"]])


def test_unknown_choice_of_references_is_rejected() -> None:
    with pytest.raises(UsageError, match="unknown reference choice 'worst' for CDER"):
        Cder(reference_choice="worst")  # type: ignore[arg-type]


def test_case_of_ascii_letters_only() -> None:
    assert count(Wer(lowercase=True), ("ABC", "Ä"), ("abc", "ä")).tolist() == [1, 2]
