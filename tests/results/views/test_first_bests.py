"""Two iterations side by side, by hand and with sparse features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.metrics import metric
from mosesplug.results.render.render import render
from mosesplug.results.views.differences import FeatureChange, IterationDifference
from mosesplug.results.views.first_bests import compare_first_bests, compare_iterations
from mosesplug.results.views.run import open_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.store import NBestStore
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import IterationStart
from tests.results.runs import GROUPS, LISTS, REFERENCE, make_run
from tests.store.toys import Hypothesis, make_list


def compared(path: Path, a: int, b: int) -> IterationDifference:
    with open_run(path) as run:
        return compare_iterations(run, a, b)


def test_by_hand(tmp_path: Path) -> None:
    found = compared(make_run(tmp_path / "work"), 1, 2)
    assert found.features == (
        FeatureChange("LM0_0", 0.5, 0.25, -4.0, -2.0, -1.0, sentences=2, better=2, worse=0),
        FeatureChange("TM0_0", 0.5, 0.75, 1.0, 0.5, 0.75),
    )
    assert [row.swing for row in found.features] == [1.0, 0.25]
    red, dog, home = found.sentences
    assert (red.changed, dog.changed, home.changed) == (True, True, False)
    assert [home.same_hypothesis, dog.same_hypothesis] == [True, False]
    assert [(row.feature, row.swing) for row in dog.causes] == [("LM0_0", 0.75), ("TM0_0", 0.25)]
    assert home.causes == ()
    assert (dog.text_a, dog.text_b) == ("she sees one dog", "she sees a small dog today")
    assert [red.metric_b, dog.metric_b, home.gain] == [1.0, 1.0, 0.0]
    assert red.gain > 0.0 < dog.gain
    assert (dog.model_a, dog.model_b) == (-1.0, -1.0)
    assert (dog.lead_a, dog.lead_b) == (-2.0 + 1.0, -1.0 + 1.0)
    assert [(each.hypotheses_a, each.hypotheses_b, each.shared) for each in found.sentences] == [
        (2, 2, 2), (2, 1, 0), (1, 1, 1),
    ]  # fmt: skip
    assert [each.was_there for each in found.sentences] == [True, False, True]
    assert [each.overlap for each in found.sentences] == [1.0, 0.0, 1.0]
    assert found.score_a < found.score_b == 1.0
    assert found.weights_known
    # The other way round, what one gains the other loses.
    back = compared(tmp_path / "work", 2, 1)
    assert [each.gain for each in back.sentences] == [-each.gain for each in found.sentences]
    assert [(each.lead_a, each.lead_b) for each in back.features] == [(1.0, 2.0), (-0.75, -0.5)]


def make_store(path: Path, weights: Sequence[Weights]) -> Path:
    """Two iterations with sparse features; the second lacks a list of the first sentence."""
    lists = (
        [
            Hypothesis(0, b"the house", (1, 1), (), -1.0),
            Hypothesis(1, b"a dog", (0, 2), (("s_a", 1.0), ("s_b", 2.0)), -1.0),
            Hypothesis(1, b"a dog", (0, 2), (("s_a", 1.0), ("s_b", 2.0)), -1.0),
            Hypothesis(2, b"home", (1, 1), (("s_a", 3.0),), -1.0),
        ],
        [
            Hypothesis(1, b"the dog", (1, 2), (("s_c", 4.0),), -1.0),
            Hypothesis(1, b"a dog", (0, 2), (("s_a", 1.0), ("s_b", 2.0)), -2.0),
            Hypothesis(2, b"home", (2, 1), (("s_a", 3.0),), -1.0),
        ],
    )
    bleu = metric("BLEU")
    references = bleu.prepare([REFERENCE])
    with NBestStore.open(path, writable=True) as store:
        for number, lines in enumerate(lists, start=1):
            store.add_iteration(
                number,
                [make_list(lines, GROUPS)],
                metric=bleu,
                references=references,
                n_sentences=3,
                record=IterationStart(weights[number - 1], 1, {}, (), 0.0).as_record(),
            )
    return path


def test_sparse_features_and_repeated_hypotheses(tmp_path: Path) -> None:
    weights = (Weights((0.5, 0.5), {"s_a": 1.0}), Weights((0.5, 0.5), {"s_c": 0.25}))
    found = compared(make_store(tmp_path / "store", weights), 1, 2)
    dog, home = found.sentences
    assert (dog.sentence, home.sentence) == (1, 2)
    assert (dog.hypotheses_a, dog.hypotheses_b, dog.shared) == (1, 2, 1)
    assert (dog.lead_a, dog.lead_b) == (0.5 - 1.0, 0.5 + 1.0)
    assert (home.changed, home.same_hypothesis) == (False, False)
    # Of the sentence that changed; no weight ever was given to s_b.
    assert found.features == (
        FeatureChange("LM0_0", 0.5, 0.5, 1.0, 0.5, 0.5),
        FeatureChange("TM0_0", 0.5, 0.5, 0.0, 0.0, 0.0),
        FeatureChange("s_a", 1.0, 0.0, -1.0, -1.0, 0.0, sentences=1, better=0, worse=1),
        FeatureChange("s_c", 0.0, 0.25, 4.0, 0.0, 1.0),
    )
    # Of equal swings, that of the first feature counts.
    assert [(row.feature, row.swing) for row in dog.causes] == [("s_a", 1.0), ("s_c", 1.0)]
    assert sum(each.lead_b for each in found.features) == dog.lead_b


def test_unknown_weights(tmp_path: Path) -> None:
    found = compared(make_store(tmp_path / "store", [Weights((0.0, 0.0))] * 2), 1, 2)
    assert not found.weights_known
    assert [each.lead_b for each in found.features] == [0.0, 0.0]


def test_invalid_comparisons_are_rejected(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work")
    with pytest.raises(UsageError, match="two different iterations"):
        compared(work, 2, 2)
    with pytest.raises(StoreError, match="iteration 3 is not in"):
        compared(work, 1, 3)
    with (
        open_run(work) as run,
        pytest.raises(DataError, match="the source has 1 lines"),
    ):
        ParallelText(source=(b"x",)).check_length(run.n_sentences)


def test_two_weight_vectors_by_hand(tmp_path: Path) -> None:
    """At B only the first feature counts, so other hypotheses of the merged lists win."""
    weights = [("tuned", Weights((0.5, 1.5))), ("LM only", Weights((2.0, 0.0)))]
    with open_run(make_run(tmp_path / "work")) as run:
        effect = compare_first_bests(run, weights)
        one = compare_first_bests(run, weights, sentence=1)
        with pytest.raises(DataError, match="no sentence 3"):
            compare_first_bests(run, weights, sentence=3)
        with pytest.raises(StoreError, match="iteration 3 is not in"):
            compare_first_bests(run, weights, iteration=3)
        # The list of iteration 2 has one hypothesis of this sentence.
        (listed,) = compare_first_bests(run, weights, sentence=1, iteration=2).sentences
        # The scores are those of the chosen hypotheses together.
        rows = run.store.tuning_set()
        for score, (_, vector) in zip((effect.score_a, effect.score_b), weights, strict=True):
            first = rows.first_best(np.array(vector.dense))
            assert score == run.metric.score(rows.stats[first].sum(axis=0))
    red, dog, home = effect.sentences
    # "the house is red old" wins at both: -1 against -2, and the second feature is equal.
    assert (red.changed, red.same_hypothesis, red.gain, red.causes) == (False, True, 0.0, ())
    assert (home.changed, home.same_hypothesis) == (False, True)
    assert (dog.text_a, dog.text_b) == ("she sees a small dog", "she sees one dog")
    assert (dog.model_a, dog.model_b) == (-0.75, -1.0)
    assert (dog.lead_a, dog.lead_b) == (-1.0 + 0.75, -1.0 + 3.0)
    assert dog.gain < 0.0
    assert [(row.feature, row.swing) for row in dog.causes] == [("LM0_0", 1.5), ("TM0_0", 0.75)]
    assert sum(row.swing for row in effect.features) == dog.lead_b - dog.lead_a
    assert effect.features == (
        FeatureChange("LM0_0", 0.25, 1.0, 2.0, 0.5, 2.0, sentences=1, better=0, worse=1),
        FeatureChange("TM0_0", 0.75, 0.0, -1.0, -0.75, 0.0),
    )
    assert effect.score_b < effect.score_a
    assert (one.sentences, one.features) == ((dog,), effect.features)
    assert listed.text_a == listed.text_b == "she sees a small dog today"


def test_other_words_with_the_same_score_are_shown(tmp_path: Path) -> None:
    """Neither hypothesis has a word of the reference."""
    lists = [[Hypothesis(0, b"a dog", (0, 2)), Hypothesis(0, b"dogs bark", (2, 0))]]
    work = make_run(tmp_path / "work", lists=lists)
    sides = [("a", Weights((0.0, 1.0))), ("b", Weights((1.0, 0.0)))]
    with open_run(work) as run:
        shown = render(compare_first_bests(run, sides, sentence=0, top=1))
    assert "\nother words, the same score:\nsentence 0: BLEU+1 " in shown
    assert "  A          a dog\n  B          dogs bark\n" in shown


def test_sparse_features_change_first_bests(tmp_path: Path) -> None:
    """The second sentence has "a dog" (s_a, s_b) and, in the second list, "the dog" (s_c)."""
    store = make_store(tmp_path / "store", [Weights((0.5, 0.5))] * 2)
    sides = [("a", Weights((0.5, 0.5), {"s_b": 1.0})), ("b", Weights((0.5, 0.5), {"s_c": 1.0}))]
    with open_run(store) as run:
        effect = compare_first_bests(run, sides, sentence=1)
    (dog,) = effect.sentences
    assert (dog.text_a, dog.text_b) == ("a dog", "the dog")
    assert [(row.feature, row.swing) for row in dog.causes] == [("s_c", 4.0), ("s_b", 2.0)]
    assert dog.lead_b - dog.lead_a == 6.0


def test_a_sentence_without_hypotheses(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work", lists=(LISTS[0][:2],))
    sides = [("a", Weights((1.0, 0.0))), ("b", Weights((0.0, 1.0)))]
    with open_run(work) as run:
        assert [row.sentence for row in compare_first_bests(run, sides).sentences] == [0]
        with pytest.raises(DataError, match="sentence 2 has no hypotheses"):
            compare_first_bests(run, sides, sentence=2)
