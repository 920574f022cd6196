"""Test words, sentences, n-grams and examples by hand and against plain loops."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.results.analysis.buckets import integer_buckets
from mosesplug.results.analysis.corpus import NumberedCorpus
from mosesplug.results.analysis.examples import find_examples
from mosesplug.results.analysis.ngrams import compare_ngrams, count_ngrams
from mosesplug.results.analysis.sentences import (
    SystemStatistics,
    bucket_by_difference,
    bucket_by_length,
    bucket_by_score,
)
from mosesplug.results.analysis.words import measure_words

Lines = list[bytes]

# Frequencies: the 3, a 2, cat 1, dog 1, sees 2, sleeps 1.
REFERENCE = [b"the cat sees the dog", b"a dog sees a cat", b"the  cat sleeps "]
BASE = [b"the cat sees a dog", b"a dog sees the the cat", b"the mouse"]
NEW = [b"the cat sees the dog", b"dog sees a cat", b""]

_texts = st.lists(
    st.lists(st.sampled_from([b"a", b"b", b"c", b"\xff"]), max_size=5).map(b" ".join),
    min_size=3,
    max_size=3,
)


def describe(each: object, *names: str) -> tuple[Any, ...]:
    return tuple(getattr(each, name) for name in names)


def test_words_by_hand() -> None:
    corpus = NumberedCorpus.of_lines([REFERENCE], {"base": [BASE], "new": [NEW]})
    # Frequencies in the reference: the 3, a 2, cat 3, dog 2, sees 2, sleeps 1; mouse 0.
    found = measure_words(corpus)
    counts = {
        (each.bucket, each.system): describe(each, "expected", "produced", "correct")
        for each in found
    }
    assert counts == {
        ("0", "base"): (0, 1, 0),  # mouse
        ("0", "new"): (0, 0, 0),
        ("1", "base"): (1, 0, 0),  # sleeps
        ("1", "new"): (1, 0, 0),
        ("2", "base"): (6, 6, 5),  # base has one "a" in excess, and lacks another one
        ("2", "new"): (6, 5, 5),
        ("3", "base"): (6, 6, 4),  # base lacks "the" and "cat", and has "the" twice in excess
        ("3", "new"): (6, 4, 4),
        ("all", "base"): (13, 13, 9),
        ("all", "new"): (13, 9, 9),
    }
    ratios = {(each.bucket, each.system): each for each in found}
    assert ratios["2", "base"].precision == ratios["2", "base"].recall == pytest.approx(5 / 6)
    assert ratios["2", "new"].precision == 1.0
    assert ratios["2", "new"].f1 == pytest.approx(10 / 11)
    assert ratios["0", "base"].precision == 0.0
    assert math.isnan(ratios["0", "base"].recall)
    assert math.isnan(ratios["0", "new"].f1)


def test_words_by_frequency_in_another_text() -> None:
    corpus = NumberedCorpus.of_lines([REFERENCE], {"base": [BASE]})
    found = measure_words(corpus, {b"the": 20, b"dog": 3}, integer_buckets((1, 10), least=0))
    assert [(each.bucket, each.expected, each.correct) for each in found] == [
        ("0", 8, 5),
        ("1 to 9", 2, 2),
        ("10 or more", 3, 2),
        ("all", 13, 9),
    ]


def test_words_are_compared_with_the_closest_reference() -> None:
    references = [[b"a b c d", b"x"], [b"a b", b"y y"]]
    corpus = NumberedCorpus.of_lines(
        references, {"one": [[b"a b", b"y"]], "two": [[b"a b c", b"x z"]]}
    )
    *_, one, two = measure_words(corpus)
    assert describe(one, "expected", "produced", "correct") == (4, 3, 3)
    assert describe(two, "expected", "produced", "correct") == (5, 5, 4)


def test_counts_of_several_runs_are_means() -> None:
    corpus = NumberedCorpus.of_lines(
        [[b"a b"]], {"base": [[b"a b"], [b"a"]], "new": [[b"a b"]] * 3}
    )
    *_, base, new = measure_words(corpus)
    assert describe(base, "expected", "produced", "correct") == (2.0, 1.5, 1.5)
    assert describe(new, "expected", "produced", "correct") == (2.0, 2.0, 2.0)
    differences = {each.ngram: each for each in compare_ngrams(corpus, count_ngrams(corpus))}
    assert differences.keys() == {b"b", b"a b"}
    assert describe(differences[b"b"], "baseline_count", "system_count") == (0.5, 1.0)
    assert differences[b"b"].ratio == pytest.approx(2.0 / 3.5)


def test_ngrams_by_hand() -> None:
    references = [[b"a b c", b"b c", b"a a"]]
    systems = {"base": [[b"a c c", b"c", b"a a a"]], "new": [[b"a b c", b"b c", b"b"]]}
    corpus = NumberedCorpus.of_lines(references, systems)
    found = {
        (each.kind, each.more, each.ngram): describe(each, "baseline_count", "system_count")
        for each in compare_ngrams(corpus, count_ngrams(corpus), 100)
    }
    assert found == {
        ("right", "new", b"b c"): (0, 2),
        ("right", "new", b"b"): (0, 2),
        ("right", "new", b"a b c"): (0, 1),
        ("right", "new", b"a b"): (0, 1),
        ("right", "base", b"a a"): (1, 0),
        ("right", "base", b"a"): (3, 1),
        ("wrong", "new", b"b"): (0, 1),
        ("wrong", "base", b"c c"): (1, 0),
        ("wrong", "base", b"c"): (1, 0),
        ("wrong", "base", b"a c c"): (1, 0),
        ("wrong", "base", b"a c"): (1, 0),
        ("wrong", "base", b"a a"): (1, 0),
        ("wrong", "base", b"a a a"): (1, 0),
        ("wrong", "base", b"a"): (1, 0),
    }
    first = compare_ngrams(corpus, count_ngrams(corpus), 2)[:2]
    assert [describe(each, "ngram", "ratio") for each in first] == [(b"b c", 0.75), (b"b", 0.75)]


def list_ngrams(line: bytes) -> list[bytes]:
    words = line.split()
    return [
        b" ".join(words[start : start + n])
        for n in range(1, 5)
        for start in range(len(words) - n + 1)
    ]


def count_plainly(
    references: Sequence[Lines], runs: Sequence[Lines]
) -> tuple[Counter[bytes], Counter[bytes]]:
    """Count the n-grams that runs have right, and wrong."""
    right: Counter[bytes] = Counter()
    wrong: Counter[bytes] = Counter()
    for run in runs:
        for place, line in enumerate(run):
            known = [Counter(list_ngrams(lines[place])) for lines in references]
            own = Counter(list_ngrams(line))
            for ngram, count in own.items():
                matched = min(count, max(each[ngram] for each in known))
                right[ngram] += matched
                wrong[ngram] += count - matched
    return +right, +wrong


@given(st.lists(_texts, min_size=1, max_size=3), st.lists(_texts, min_size=1, max_size=2), _texts)
def test_ngrams_against_plain_loops(references: list[Lines], base: list[Lines], new: Lines) -> None:
    systems = {"base": base, "new": [new]}
    corpus = NumberedCorpus.of_lines(references, systems)
    counts = count_ngrams(corpus)
    ngrams = [
        b" ".join(corpus.vocabulary[word] for word in counts.words[place : place + order])
        for place, order in zip(counts.places, counts.orders, strict=True)
    ]
    assert len(set(ngrams)) == len(ngrams)
    for system, runs in enumerate(systems.values()):
        expected = count_plainly(references, runs)
        for found, plain in zip(
            (counts.right[system], counts.wrong[system]), expected, strict=True
        ):
            assert {
                ngram: count * len(runs)
                for ngram, count in zip(ngrams, found.tolist(), strict=True)
                if count
            } == plain
    tables = {"right": counts.right, "wrong": counts.wrong}
    for each in compare_ngrams(corpus, counts, 3):
        place = ngrams.index(each.ngram)
        both = tables[each.kind][:, place].tolist()
        assert [each.baseline_count, each.system_count] == both
        more, less = max(both), min(both)
        assert each.more == ("base" if both[0] == more else "new")
        assert each.ratio == (more + 1) / (more + less + 2) > 0.5


@given(st.lists(_texts, min_size=1, max_size=3), _texts)
def test_words_against_plain_loops(references: list[Lines], new: Lines) -> None:
    corpus = NumberedCorpus.of_lines(references, {"new": [new]})
    total = measure_words(corpus)[-1]
    expected = produced = correct = 0
    for place, line in enumerate(new):
        own = Counter(line.split())
        choices = []
        for lines in references:
            known = Counter(lines[place].split())
            shared = (own & known).total()
            choices.append((shared / max(1, known.total() + own.total()), known.total(), shared))
        best = max(choices, key=lambda choice: choice[0])
        expected += best[1]
        produced += own.total()
        correct += best[2]
    assert describe(total, "expected", "produced", "correct") == (expected, produced, correct)


def make_statistics(*systems: list[list[float]], is_error_rate: bool = False) -> SystemStatistics:
    """Return a metric whose corpus score is the mean of its sentence scores."""
    scores = tuple(tuple(np.array(run) for run in runs) for runs in systems)
    return SystemStatistics(
        metric="M",
        sentence_metric="m",
        is_error_rate=is_error_rate,
        statistics=tuple(
            tuple(np.stack([run, np.ones_like(run)], axis=1) for run in runs) for runs in scores
        ),
        sentence_scores=scores,
        score=lambda statistics: float(np.divide(*statistics.sum(axis=0))),
    )


def test_sentence_buckets_by_hand() -> None:
    references = [[b"w " * 9, b"w " * 12, b"w " * 10], [b"w " * 10, b"w " * 8, b"w " * 10]]
    base = [b"w " * 9, b"w " * 10, b"w " * 30]
    new = [b"", b"w " * 14, b"w " * 10]
    corpus = NumberedCorpus.of_lines(references, {"base": [base], "new": [new]})
    metric = make_statistics([[0.25, 0.5, 0.75]], [[0.0, 0.5, 1.0]])
    keys = ("bucket", "system", "sentences", "score")
    by_length = bucket_by_length(corpus, [metric])
    # Mean lengths: 9.5, 10, 10.
    assert [describe(each, *keys) for each in by_length] == [
        ("0 to 9", "base", 1, 0.25),
        ("0 to 9", "new", 1, 0.0),
        ("10 to 19", "base", 2, 0.625),
        ("10 to 19", "new", 2, 0.75),
        ("all", "base", 3, 0.5),
        ("all", "new", 3, 0.5),
    ]
    by_difference = bucket_by_difference(corpus, [metric])
    # base: 0, 2 (8 and 12 are as close: the shorter), 20; new: -9, 2, 0
    found = {
        (each.bucket, each.system): (each.sentences, each.score)
        for each in by_difference
        if each.sentences
    }
    assert found == {
        ("0", "base"): (1, 0.25),
        ("2", "base"): (1, 0.5),
        ("11 to 20", "base"): (1, 0.75),
        ("-10 to -6", "new"): (1, 0.0),
        ("2", "new"): (1, 0.5),
        ("0", "new"): (1, 1.0),
    }
    empty = [each for each in by_difference if not each.sentences]
    assert len(empty) == 2
    assert all(math.isnan(each.score) for each in empty)
    by_score = bucket_by_score(list(corpus.systems), [metric], metric)
    assert [describe(each, *keys) for each in by_score if each.sentences] == [
        ("below 0.1", "new", 1, 0.0),
        ("0.2 to 0.3", "base", 1, 0.25),
        ("0.5 to 0.6", "base", 1, 0.5),
        ("0.5 to 0.6", "new", 1, 0.5),
        ("0.7 to 0.8", "base", 1, 0.75),
        ("0.9 or more", "new", 1, 1.0),
    ]


def test_sentence_buckets_of_several_runs() -> None:
    corpus = NumberedCorpus.of_lines([[b"a", b"b"]], {"base": [[b"a", b"b"]] * 2})
    metric = make_statistics([[0.0, 0.5], [0.5, 0.5]])
    found = bucket_by_score(list(corpus.systems), [metric], metric)
    assert [describe(each, "bucket", "sentences", "score") for each in found] == [
        ("below 0.1", 0.5, 0.0),
        ("0.5 to 0.6", 1.5, 0.5),
    ]
    assert bucket_by_length(corpus, [metric])[-1].score == pytest.approx(0.375)


@pytest.mark.parametrize("is_error_rate", [False, True])
def test_examples_by_hand(is_error_rate: bool) -> None:
    references = [[b"r0", b"r1", b"r1", b"r3", b"r4"]]
    systems = {
        "base": [[b"b0", b"b1", b"b1", b"b3", b"same"]],
        "new": [
            [b"x0", b"n1", b"n1", b"n3", b"same"],
            [b"y0", b"n1", b"n1", b"n3", b"same"],
            [b"z0", b"n1", b"n1", b"n3", b"same"],
        ],
    }
    runs = [
        [0.25, 0.75, 0.75, 0.625, 0.5],
        [0.5, 0.75, 0.75, 0.625, 0.5],
        [0.0, 0.75, 0.75, 0.625, 0.5],
    ]
    metric = make_statistics([[0.5] * 5], runs, is_error_rate=is_error_rate)
    better, worse = ("base", "new") if is_error_rate else ("new", "base")
    found = find_examples(references, systems, metric, source=[b"s%d" % n for n in range(5)])
    keys = ("sentence", "better", "baseline_text", "system_text", "difference", "source")
    rows = [
        (1, better, b"b1", b"n1", 0.25, b"s1"),  # sentence 2 repeats it
        (3, better, b"b3", b"n3", 0.125, b"s3"),
        (0, worse, b"b0", b"x0", -0.25, b"s0"),
    ]
    expected = [rows[2], *rows[:2]] if is_error_rate else rows
    assert [describe(each, *keys) for each in found] == expected
    assert len(find_examples(references, systems, metric, most=1)) == 2
    assert find_examples(references, systems, metric, most=0) == ()


@pytest.mark.parametrize("lines", [[b""], [b"a b c"], [b"", b"a", b"\xff\xfe a"]])
def test_identical_systems(lines: Lines) -> None:
    corpus = NumberedCorpus.of_lines([lines], {"base": [lines], "new": [lines]})
    assert compare_ngrams(corpus, count_ngrams(corpus)) == ()
    scores = [1.0] * len(lines)
    metric = make_statistics([scores], [scores])
    assert find_examples([lines], {"base": [lines], "new": [lines]}, metric) == ()
    for each in measure_words(corpus):
        assert each.correct == each.produced == each.expected
    assert {each.bucket for each in bucket_by_difference(corpus, [metric])} == {"0"}


def test_empty_hypotheses_and_references() -> None:
    corpus = NumberedCorpus.of_lines([[b"", b"a b"]], {"base": [[b"", b""]], "new": [[b"a", b""]]})
    (found,) = compare_ngrams(corpus, count_ngrams(corpus))
    assert describe(found, "kind", "more", "ngram") == ("wrong", "new", b"a")
    base, new = measure_words(corpus)[-2:]
    assert describe(base, "expected", "produced", "correct") == (2, 0, 0)
    assert (base.recall, base.f1, new.precision) == (0.0, 0.0, 0.0)
    assert math.isnan(base.precision)
