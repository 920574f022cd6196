"""Travatar's measures against values computed by hand and against plain Python."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.errors import FormatError
from mosesplug.errors import DataError, UsageError
from mosesplug.extras.travatar.combined import parse_formula
from mosesplug.extras.travatar.evaluation import find_measure
from mosesplug.extras.travatar.measure import Texts
from mosesplug.metrics.bleu.corpus import Bleu

REFERENCE, OUTPUT = b"taro met hanako", b"the taro met the hanako"


def one(hypothesis: bytes, reference: bytes) -> Texts:
    return Texts(np.zeros(1, dtype=np.int64), [hypothesis], [reference])


def f_measure(precision: float, recall: float) -> float:
    return 2 * precision * recall / (precision + recall)


# RIBES: taro, met, hanako are aligned in order: tau 1, 3 of 5 words, no brevity penalty.
RIBES = 0.6**0.25
BLEU1 = (3 / 5 * 2 / 5 * 1 / 4 * 1 / 3) ** 0.25


@pytest.mark.parametrize(
    ("text", "stats", "score"),
    [
        ("zeroone", "0 1", 0.0),
        ("bleu", "3 5 3 1 4 2 0 3 1 0 2 0", 0.0),
        ("bleu:order=1", "3 5 3", 3 / 5),
        ("bleu:smooth=1", "3 5 3 1 4 2 0 3 1 0 2 0", BLEU1),
        ("bleu:smooth=1,prec=0", "3 5 3 1 4 2 0 3 1 0 2 0", (2 / 3 * 1 / 2) ** 0.25),
        (
            "bleu:smooth=1,prec=0.5",
            "3 5 3 1 4 2 0 3 1 0 2 0",
            (
                f_measure(3 / 5, 1)
                * f_measure(2 / 5, 2 / 3)
                * f_measure(1 / 4, 1 / 2)
                * f_measure(1 / 3, 1)
            )
            ** 0.25,
        ),
        (
            "bleu:smooth=1,mean=arith",
            "3 5 3 1 4 2 0 3 1 0 2 0",
            (3 / 5 + 2 / 5 + 1 / 4 + 1 / 3) / 4,
        ),
        ("bleu:scope=sentence,smooth=1", "0.37606 1", BLEU1),
        ("ribes", "0.880112 1", RIBES),
        ("ribes:alpha=1", "0.6 1", 0.6),
        ("wer", "2 3", 2 / 3),
        ("wer:reverse=true", "2 3", 1 / 3),
        ("ter:inverse=true", "2 3", 1 / 3),
        (
            "interp:0.4|bleu:smooth=1|0.6|ribes",
            "3 5 3 1 4 2 0 3 1 0 2 0\t0.880112 1",
            0.4 * BLEU1 + 0.6 * RIBES,
        ),
        ("interp:1|bleu:order=1|3|ribes", "3 5 3\t0.880112 1", 0.25 * 0.6 + 0.75 * RIBES),
        (
            "ainterp:A|bleu:smooth=1|B|ribes|2*A*B/(A+B)",
            "3 5 3 1 4 2 0 3 1 0 2 0\t0.880112 1",
            f_measure(BLEU1, RIBES),
        ),
        ("ainterp:A|bleu|B|zeroone|2*A*B/(A+B)", "3 5 3 1 4 2 0 3 1 0 2 0\t0 1", 0.0),
    ],
)
def test_values(text: str, stats: str, score: float) -> None:
    measure = find_measure(text)
    found = measure.count(one(OUTPUT, REFERENCE))
    assert measure.format(found[0].tolist()) == stats
    assert len(measure.statistics_names) == measure.n_statistics == found.shape[1]
    assert float(measure.score(found.sum(axis=0))) == pytest.approx(score)
    read = measure.parse(stats.encode(), "stats", 1)
    assert read == pytest.approx(found[0].tolist(), rel=1e-5)


@pytest.mark.parametrize(
    ("hypothesis", "reference", "edits"),
    [
        (b"w10 w8 w0 w7 w4 w11 w5 w5 w11 w11 w3", b"w4 w11 w5 w11 w11 w10 w8 w0 w7 w3", 2),
        (
            b"u w7 w5 w3 w6 w10 w6 w2 w1 w5 w11 w9 w2 w11 w2",
            b"w7 w5 w3 w2 w11 w9 w2 w10 w6 w1 w2 w6 w5",
            6,
        ),
        (
            b"w7 w5 w2 w10 w6 w6 w3 w2 w11 w9 w1 w2",
            b"w7 w5 w3 w2 w11 w9 w2 w10 w6 w1 w2 w6 w5",
            3,
        ),
    ],
)
def test_edits_with_moves(hypothesis: bytes, reference: bytes, edits: int) -> None:
    """Counts that Travatar's own program wrote; those of Moses are higher."""
    found = find_measure("ter").count(one(hypothesis, reference))
    assert found.tolist() == [[edits, len(reference.split())]]


def test_factors() -> None:
    """A mixture of BLEU of one factor and PINC of another."""
    measure = find_measure(
        "interp:0.5|bleu:smooth=1|0.5|"
        "bleu:inverse=true,brev=false,factor=1,scope=sentence,mean=arith"
    )
    texts = one(OUTPUT + b" |COL| " + OUTPUT, REFERENCE + b" |COL| taro went to hanako 's house")
    pinc = 1.0 - 0.25 * 2 / 5
    found = measure.score(measure.count(texts).sum(axis=0))
    assert float(found) == pytest.approx(0.5 * BLEU1 + 0.5 * pinc)
    with pytest.raises(DataError, match="hypothesis 0 has 1 factors"):
        find_measure("wer:factor=1").count(one(OUTPUT, texts.references[0]))


SENTENCES = st.lists(st.sampled_from("abcd"), max_size=9).map(" ".join).map(str.encode)


def plain_bleu(hypothesis: list[bytes], reference: list[bytes], order: int) -> list[int]:
    counts = []
    for n in range(1, order + 1):
        grams = [
            Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))
            for words in (hypothesis, reference)
        ]
        counts += [sum((grams[0] & grams[1]).values()), *(sum(each.values()) for each in grams)]
    return counts


@given(SENTENCES, SENTENCES, st.integers(1, 6))
def test_bleu_counts(hypothesis: bytes, reference: bytes, order: int) -> None:
    measure = find_measure(f"bleu:order={order}")
    found = measure.count(one(hypothesis, reference))[0].tolist()
    assert found == plain_bleu(hypothesis.split(), reference.split(), order)
    assert 0.0 <= float(measure.score(np.array(found))) <= 1.0


@given(SENTENCES, SENTENCES)
def test_bleu_is_that_of_mosesplug(hypothesis: bytes, reference: bytes) -> None:
    measure = find_measure("bleu")
    stats = measure.count(one(hypothesis, reference))
    metric, columns = measure.convert(stats)
    assert metric == Bleu()
    prepared = metric.prepare([[reference]])
    texts = one(hypothesis, reference)
    own = metric.statistics(prepared, *texts.ranges)
    assert columns.tolist() == own.tolist()
    assert metric.score(columns)[0] == pytest.approx(measure.score(stats)[0], abs=1e-12)


def plain_ribes(hypothesis: list[bytes], reference: list[bytes]) -> float:
    """RIBES with the contexts as lists of positions, one after the other."""
    if not reference:
        return float(not hypothesis)
    if not hypothesis:
        return 0.0
    brevity = min(1.0, math.exp(1.0 - len(reference) / len(hypothesis)))
    aligned: list[int] = []
    for place, word in enumerate(hypothesis):
        both = [[i for i, w in enumerate(side) if w == word] for side in (reference, hypothesis)]
        if not both[0]:
            continue
        if len(both[0]) == len(both[1]) == 1:
            aligned.append(both[0][0])
            continue
        sides = {-1: both, 1: both}
        for window in range(1, max(place, len(hypothesis) - place)):
            done = False
            for side in (-1, 1):
                step = side * window
                if not 0 <= place + step < len(hypothesis):
                    continue
                wanted = hypothesis[place + step]
                sides[side] = [
                    [i for i in found if 0 <= i + step < len(words) and words[i + step] == wanted]
                    for found, words in zip(sides[side], (reference, hypothesis), strict=True)
                ]
                if [len(found) for found in sides[side]] == [1, 1]:
                    aligned.append(sides[side][0][0])
                    done = True
                    break
            if done:
                break
    n = len(aligned)
    if n == 1 and len(reference) == 1:
        return (1.0 / len(hypothesis)) ** 0.25 * brevity**0.1
    if n < 2:
        return 0.0
    ascending = sum(a < b for i, a in enumerate(aligned) for b in aligned[i + 1 :])
    tau = ascending / (n * (n - 1) / 2)
    return float(tau * (n / len(hypothesis)) ** 0.25 * brevity**0.1)


@given(SENTENCES, SENTENCES)
def test_ribes(hypothesis: bytes, reference: bytes) -> None:
    found = find_measure("ribes").count(one(hypothesis, reference))
    assert found[0, 0] == pytest.approx(plain_ribes(hypothesis.split(), reference.split()))
    assert found[0, 1] == 1.0


def test_expectation_of_a_ratio() -> None:
    """The mean of the linear statistics is the corpus score of each choice of hypotheses."""
    measure = find_measure("ter:inverse=true")
    stats = np.array([[1.0, 4.0], [0.0, 4.0], [3.0, 9.0], [2.0, 9.0]])
    linear, shares = measure.linear(stats)  # type: ignore[attr-defined]
    for first in (0, 1):
        for second in (2, 3):
            rows = [first, second]
            assert linear.score(shares[rows].sum(axis=0)) == pytest.approx(
                measure.score(stats[rows].sum(axis=0))
            )


@pytest.mark.parametrize(
    ("text", "minimized"),
    [
        ("bleu", None),
        ("ter", "ter:inverse=true"),
        ("wer", "wer:reverse=true"),
        ("wer:reverse=true", None),
        ("interp:1|bleu|1|ter", "ter:inverse=true"),
        ("interp:1|bleu|-0.5|ter", None),
        ("ainterp:A|bleu|T|ter|A-T", None),
    ],
)
def test_error_rates_are_not_maximized(text: str, minimized: str | None) -> None:
    assert find_measure(text).minimizing_spelling == minimized


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nist", "NIST needs the counts"),
        ("blue", "unknown measure 'blue'.*Did you mean bleu"),
        ("bleu:order", "'order' is not of the form name=value"),
        ("bleu:order=0", "order=0 must be an integer, at least 1"),
        ("bleu:smoth=1", "no setting smoth"),
        ("bleu:smooth=x", "smooth=x must be a number"),
        ("bleu:scope=line", "scope=line must be one of corpus, sentence"),
        ("ter:reverse=true", "no setting reverse: it has inverse, factor"),
        ("interp:0.4|bleu|0.6", "give weights and measures in turn"),
        ("interp:1|bleu|-1|ribes", "whose sum is not 0"),
        ("ainterp:A|bleu", "give letters and measures"),
        ("ainterp:A|bleu|A+C", "C is not a measure"),
        ("ainterp:A|bleu|A+", "it ends where"),
        ("ainterp:A|bleu|(A", "not closed"),
        ("ainterp:A|bleu|A A", "'A' follows"),
        ("ainterp:A|bleu|A^2", "'\\^' is not part"),
        ("ainterp:A|bleu|1.2.3*A", "'1.2.3' is there"),
    ],
)
def test_invalid_measures(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_measure(text)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("zeroone", b"0.5"),
        ("zeroone", b"nan 1"),
        ("zeroone", b"1 1 1"),
        ("zeroone", b""),
        ("interp:1|zeroone|1|ribes", b"1 1 1 1"),
        ("interp:1|zeroone|1|ribes", b"1 1\t1"),
    ],
)
def test_invalid_statistics(text: str, line: bytes) -> None:
    with pytest.raises(FormatError, match=r"^stats:7: .*(Statistics of|Separate)"):
        find_measure(text).parse(line, "stats", 7)


@given(st.integers(0, 10_000))
def test_formulas(seed: int) -> None:
    """Random formulas have the value that Python gives them."""
    rng = random.Random(seed)

    def make(depth: int) -> str:
        if depth == 0 or rng.random() < 0.2:
            return rng.choice(["A", "B", "2", "0.5", " 3.25 "])
        left, right = make(depth - 1), make(depth - 1)
        text = f"{left}{rng.choice('+-*/')}{right}"
        return f"( {text})" if rng.random() < 0.5 else text

    text = make(4)
    values = {"A": np.float64(0.3), "B": np.float64(0.7)}
    with np.errstate(all="ignore"):
        found = parse_formula(text, "AB")(values)
        try:
            expected = eval(text.strip(), {}, values)
        except ZeroDivisionError:
            return
    assert found == pytest.approx(float(expected), nan_ok=True)


@given(st.text("AB01.|+-*/() :=,bleuritz", max_size=30))
def test_any_measure_is_read_or_rejected(text: str) -> None:
    for name in ("bleu", "ribes", "zeroone", "interp", "ainterp"):
        try:
            measure = find_measure(f"{name}:{text}")
        except UsageError:
            continue
        stats = measure.count(one(b"a b c d e", b"a b c d f"))
        assert np.isfinite(measure.score(stats)).all()
