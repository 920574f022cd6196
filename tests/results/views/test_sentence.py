"""One sentence's hypotheses, against sums by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.errors import DataError, StoreError
from mosesplug.metrics import metric
from mosesplug.results.views.run import open_run
from mosesplug.results.views.sentence import (
    FeatureContrast,
    compare_hypotheses,
    find_interval,
    find_matched_orders,
    read_sentence,
)
from mosesplug.results.views.texts import ParallelText
from mosesplug.tuning.weights import Weights
from tests.results.runs import LISTS, REFERENCE, make_run
from tests.store.toys import Hypothesis


def test_hypotheses_by_hand(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        found = read_sentence(run, 1, text=ParallelText((), [REFERENCE]))
    assert found.sentence_metric == "BLEU+1"
    assert [each.text for each in found.hypotheses] == [
        "she sees a small dog",
        "she sees one dog",
        "she sees a small dog today",
    ]
    first, second, third = found.hypotheses
    assert first.contributions == pytest.approx((0.25 * -3.0, 0.0))
    assert [each.model for each in found.hypotheses] == pytest.approx([-0.75, -1.0, -1.0])
    assert [each.rank for each in found.hypotheses] == [1, 2, 3]
    # The brevity penalty of five words against six is exp(-0.2): better than 0.75 of the score.
    assert first.metric == pytest.approx(np.exp(-0.2))
    assert first.roles == ("1-best", "hope")
    assert third.roles == ("oracle",)
    assert found.find("oracle") is third
    assert second.roles == ("fear",)
    assert third.matches == ((6, 6), (5, 5), (4, 4), (3, 3))
    assert found.references == ("she sees a small dog today",)


def test_two_hypotheses_feature_by_feature(tmp_path: Path) -> None:
    """The 1-best (-3, 0) wins at 0.25 and 0.75 over (-1, -1) and (-4, 0)."""
    with open_run(make_run(tmp_path / "work")) as run:
        found = read_sentence(run, 1)
        first, one_dog = found.find("1-best"), found.find("fear")
    comparison = compare_hypotheses(found, first, one_dog)
    # -3 w = -w - 0.75 at 0.375; and with 0.25, -0.75 = -0.25 - w at 0.5.
    assert comparison.features == (
        FeatureContrast("TM0_0", 0.0, -1.0, 0.75, 0.75, 0.5, (-np.inf, 0.5)),
        FeatureContrast("LM0_0", -3.0, -1.0, 0.25, -0.5, 0.375, (0.375, np.inf)),
    )
    oracle = compare_hypotheses(found, first, found.find("oracle")).features
    # It has the smaller value of the first feature: it wins where that counts less than nothing.
    assert oracle == (
        FeatureContrast("LM0_0", -3.0, -4.0, 0.25, 0.25, 0.0, (-np.inf, 0.0)),
        FeatureContrast("TM0_0", 0.0, 0.0, 0.75, 0.0, None, None),
    )
    # The 1-best itself wins from there up to the tie with the third.
    itself = compare_hypotheses(found, one_dog, first).features
    assert [row.interval for row in itself] == [(0.5, np.inf), (0.0, 0.375)]


weights_of_two = st.tuples(*[st.integers(-8, 8)] * 2).filter(any)
values_of_three = st.lists(
    st.tuples(*[st.integers(-4, 4)] * 3), min_size=2, max_size=6, unique=True
)


@given(weights_of_two, values_of_three, st.integers(0, 5))
def test_intervals_are_where_the_hypothesis_wins(
    weights: tuple[int, int], rows: list[tuple[int, int, int]], place: int
) -> None:
    """Inside and outside of the interval, all model scores say the same."""
    place %= len(rows)
    values, weight = np.array(rows, dtype=np.float64), 0.5
    others = values[:, 1:] @ np.array(weights, dtype=np.float64)
    interval = find_interval(weight, values[:, 0], values[:, 0] * weight + others, place)
    low, high = interval or (np.inf, np.inf)
    for tried in (-1e6, *np.arange(-20.0, 20.0, 0.37), 1e6):
        models = values[:, 0] * tried + others
        if abs(tried - low) > 1e-6 < abs(tried - high):
            assert (models[place] >= models.max() - 1e-9) == (low < tried < high)


def test_sparse_features_decide_between_hypotheses(tmp_path: Path) -> None:
    lists = [
        [
            Hypothesis(0, b"the red house", (0.0, -1.0), (("T_a", 2.0),)),
            Hypothesis(0, b"a red house", (0.0, -1.0), (("T_b", 4.0),)),
        ]
    ]
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        weights = Weights((0.5, 0.5), {"T_a": 3.0, "T_b": 1.0})
        found = read_sentence(run, 0, weights=weights)
    rows = compare_hypotheses(found, found.find("1"), found.find("2")).features
    assert rows[:2] == (
        FeatureContrast("T_a", 2.0, 0.0, 3.0, 6.0, 2.0, (-np.inf, 2.0)),
        FeatureContrast("T_b", 0.0, 4.0, 1.0, -4.0, 1.5, (1.5, np.inf)),
    )


def test_of_one_iteration_by_metric_with_other_weights(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        found = read_sentence(run, 0, iteration=2, weights=Weights((2.0, 0.0)), by="metric")
        with pytest.raises(StoreError, match="iteration 3"):
            read_sentence(run, 0, iteration=3)
        with pytest.raises(DataError, match="no sentence 3"):
            read_sentence(run, 3)
    assert [each.text for each in found.hypotheses] == [
        "the red house is old",
        "the house is red old",
    ]
    assert [each.rank for each in found.hypotheses] == [2, 1]
    assert found.hypotheses[0].model == pytest.approx(-2.0)


def test_ties_between_oracles_are_broken_by_model_score(tmp_path: Path) -> None:
    lists = [
        [
            Hypothesis(0, b"the red house is old", (-9.0, 0.0)),
            Hypothesis(0, b"the red house is old", (-1.0, 0.0)),
        ]
    ]
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        assert read_sentence(run, 0).find("oracle").rank == 1


def test_sparse_features_add_to_the_score(tmp_path: Path) -> None:
    lists = [[h._replace(sparse=(("T_a", 2.0),)) for h in LISTS[0]]]
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        found = read_sentence(run, 2, weights=Weights((0.5, 0.5), {"T_a": 3.0}))
    (only,) = found.hypotheses
    assert only.sparse == {"T_a": 6.0}
    assert only.sparse_values == {"T_a": 2.0}
    assert only.model == pytest.approx(-1.0 + 6.0)


def test_matched_words_are_clipped() -> None:
    assert find_matched_orders(["a", "b", "c"], [["a", "b", "d"]]) == [2, 2, 0]
    # The reference has "the" once: the second is not matched.
    assert find_matched_orders(["the", "the", "cat"], [["the", "cat"]]) == [1, 2, 2]
    assert find_matched_orders(["x", "y"], [["x"], ["y"]]) == [1, 1]
    assert find_matched_orders([], [["a"]]) == []


words = st.lists(st.sampled_from("abc"), max_size=7)


@given(words, st.lists(words, min_size=1, max_size=2))
def test_some_word_is_in_an_ngram_of_each_order_that_bleu_counts(
    hypothesis: list[str], references: list[list[str]]
) -> None:
    bleu = metric("BLEU")
    prepared = bleu.prepare([[" ".join(each).encode()] for each in references])
    text = np.frombuffer(" ".join(hypothesis).encode(), dtype=np.uint8)
    ends = np.array([len(text)])
    (row,) = bleu.statistics(prepared, np.array([0]), text, np.array([0]), ends)
    found = find_matched_orders(hypothesis, references)
    for order in range(1, 5):
        assert (row[2 * order - 2] > 0) == any(longest >= order for longest in found)
    assert row[0] <= sum(longest >= 1 for longest in found)
