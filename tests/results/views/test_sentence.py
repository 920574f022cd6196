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
from mosesplug.results.views.sentence import find_matched_orders, read_sentence
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
