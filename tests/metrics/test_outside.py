"""Metrics of scores from outside, against sums computed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import metric as find_metric
from mosesplug.metrics.error_rates import display_score, explain_shown_scores, is_error_rate
from mosesplug.metrics.interpolated import InterpolatedMetric
from mosesplug.metrics.outside import MEAN, RATIO, Formula, OutsideMetric, compute_statistics
from mosesplug.metrics.registry import built_in_names, find_formula, metric_of_signature
from mosesplug.testing.metrics import HYPOTHESES, REFERENCES, as_text

NO_IDS = np.zeros(0, dtype=np.int64)
OUTSIDE = np.array([[0.25, 3.0, 4.0], [0.75, 0.0, 0.0], [0.5, 1.0, 6.0]])


def statistics(metric: Any, outside: Any = OUTSIDE) -> Any:
    prepared = metric.prepare([])
    return compute_statistics(
        metric, prepared, NO_IDS, np.zeros(0, np.uint8), NO_IDS, NO_IDS, outside
    )


@pytest.mark.parametrize("is_error", [False, True])
def test_mean_and_ratio_are_those_of_the_sums(is_error: bool) -> None:
    mean = OutsideMetric("COMET", MEAN, is_error, (0,))
    ratio = OutsideMetric("TERX", RATIO, is_error, (1, 2))
    for metric, value in ((mean, (0.25 + 0.75 + 0.5) / 3), (ratio, (3 + 0 + 1) / (4 + 0 + 6))):
        found = statistics(metric)
        assert found.dtype == np.float64
        assert found.shape == (3, metric.n_statistics == 2 and 2)
        expected = 1 - value if is_error else value
        assert float(metric.score(found.sum(axis=0))) == expected
    singles = [0.75, 0.0, 1 / 6]
    expected_singles = 1 - np.array(singles) if is_error else np.array(singles)
    # Errors of no words are insertions; a share of nothing is 0.
    assert ratio.score(np.array([3.0, 0.0])) == (-2.0 if is_error else 0.0)
    assert ratio.score(np.array([0.0, 0.0])) == (1.0 if is_error else 0.0)
    np.testing.assert_array_equal(ratio.sentence_scores(statistics(ratio)), expected_singles)


def test_a_sum_with_a_metric_of_texts() -> None:
    comet = OutsideMetric("COMET", columns=(0,))
    made = find_metric("COMET:0.7+WER:0.3", "", [comet])
    assert isinstance(made, InterpolatedMetric)
    assert made.needs_texts
    assert made.needs_outside
    prepared = made.prepare([[b"a b", b"c d"]])
    text = np.frombuffer(b"a x c d", np.uint8)
    found = compute_statistics(
        made, prepared, np.array([0, 1]), text, np.array([0, 4]), np.array([3, 7]), OUTSIDE[:2]
    )
    assert found.tolist() == [[0.25, 1, 1, 2], [0.75, 1, 0, 2]]
    assert float(made.score(found.sum(axis=0))) == pytest.approx(0.7 * 0.5 + 0.3 * 0.75)
    assert metric_of_signature(prepared.signature) == made


@pytest.mark.parametrize("name", ["COMET", "BLEU", "COMET+BLEU", "COMET,TERX", "TERX:2+COMET:1"])
def test_signatures_name_the_metric(name: str) -> None:
    known = [OutsideMetric("COMET"), OutsideMetric("TERX", RATIO, True, (1, 2))]
    made = find_metric(name, "", known)
    assert metric_of_signature(made.signature()) == made
    assert metric_of_signature(made.prepare([[b"a"]]).signature) == made


def test_names_of_scores_come_first() -> None:
    own = OutsideMetric("WER")
    assert find_metric("WER", "", [own]) is own
    assert not is_error_rate(own.signature())
    assert display_score(own.signature(), 0.25) == 0.25
    rate = OutsideMetric("BLEU", MEAN, True)
    assert is_error_rate(rate.signature())
    assert display_score(rate.signature(), 0.25) == 0.75
    assert explain_shown_scores(rate.signature()).endswith("(an error rate: less is better)")
    mixed = find_metric("BLEU:0.5+TER:0.5", "", [rate]).signature()
    assert explain_shown_scores(mixed).endswith(
        "(scores are a weighted sum of 1 - BLEU and 1 - TER: larger is better)"
    )


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("COMET:0.7+", "is not a weighted sum"),
        ("COMET:0.7+BLEU", "is not a weighted sum"),
        ("COMET:0.7", "is not a weighted sum"),
        ("COMET:x+BLEU:1", "the weight of COMET is not a number: 'x'"),
        ("COMET:0+BLEU:1", "must be a number above 0"),
        ("COMET+COMET", "names a metric twice"),
        ("COMET,BLEU:1", "is not a weighted sum"),
        ("X+BLEU", "unknown metric 'X'; known metrics: COMET, BLEU,"),
    ],
)
def test_sums_that_cannot_be_read(name: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        find_metric(name, "", [OutsideMetric("COMET")])


def test_weights_are_given_once() -> None:
    with pytest.raises(UsageError, match="has weights already"):
        find_metric("BLEU:1+TER:2", "weights:0.5+0.5")
    one, other = find_metric("BLEU:1+TER:3"), find_metric("BLEU,TER", "weights:1+3")
    assert one == other


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("5",), "the name '5' of scores is invalid"),
        (("A|B",), "is invalid"),
        (("A", RATIO), "ratio of A takes 2 numbers for each hypothesis, not 1"),
    ],
)
def test_invalid_metrics(arguments: tuple[str, Formula], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        OutsideMetric(*arguments)


@pytest.mark.parametrize("outside", [None, np.zeros((2, 1))])
def test_hypotheses_without_scores(outside: Any) -> None:
    with pytest.raises(DataError, match="these hypotheses have no scores of TERX: give --scores"):
        statistics(OutsideMetric("TERX", RATIO, False, (1, 2)), outside)


COUNTED = [*((name, "") for name in built_in_names()), ("CHRF", "words:2,beta:2")]


@pytest.mark.parametrize(("name", "settings"), COUNTED)
def test_statistics_of_a_metric_have_its_score(name: str, settings: str) -> None:
    counted = find_metric(name, settings)
    formula = find_formula(f"{name}[{settings}]" if settings else name)
    assert formula.width == counted.n_statistics
    hypotheses = as_text(HYPOTHESES)
    counts = hypotheses.statistics(counted, counted.prepare(REFERENCES[:1]))
    assert formula.find_fault(counts.astype(np.float64)) is None
    own = OutsideMetric(
        "OWN", formula, is_error_rate(counted.signature()), (*range(formula.width),)
    )
    rows = statistics(own, counts.astype(np.float64))
    assert rows.dtype == counts.dtype
    for make in (lambda made: made.score(rows), lambda made: made.sentence_scores(1.0 * rows)):
        assert make(own).tobytes() == make(counted).tobytes()
    assert own.floor_matches(1.0 * rows).tobytes() == counted.floor_matches(1.0 * rows).tobytes()
    assert (own.has_bleu_statistics, own.has_smoothing) == (name == "BLEU", name == "BLEU")
    assert own.sentence_metric == counted.sentence_metric.replace(name, "OWN")
    assert metric_of_signature(own.signature()) == own
    in_sum = find_metric("OWN:0.5+WER:0.5", "", [own])
    assert metric_of_signature(in_sum.prepare(REFERENCES[:1]).signature) == in_sum


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({0: 0.5}, "match1 is not a whole number"),
        ({8: -1}, "reference_length is below 0"),
        ({8: 2**31}, "reference_length is above 2147483647"),
        ({0: 7}, "match1 is above total1"),
        ({3: 7}, "total2 is above total1"),
    ],
)
def test_numbers_that_bleu_cannot_have(changes: dict[int, float], message: str) -> None:
    row = np.array([4, 6, 3, 5, 2, 4, 1, 3, 7], dtype=np.float64)
    formula = find_formula("BLEU")
    assert formula.find_fault(row[None]) is None
    wrong = row.copy()
    wrong[list(changes)] = list(changes.values())
    assert formula.find_fault(np.stack([row, wrong])) == (1, message)
    own = OutsideMetric("OWN", formula, columns=(*range(9),))
    with pytest.raises(DataError, match=rf"OWN of hypothesis 1 .*{message}. BLEU takes 9 numbers"):
        compute_statistics(
            own, own.prepare([]), np.zeros(2, np.int64), *[np.zeros(0, np.uint8), NO_IDS, NO_IDS],
            np.stack([row, wrong]),
        )  # fmt: skip


def test_settings_of_formulas_are_those_of_scores() -> None:
    with pytest.raises(UsageError, match=r"CHRF\[case:false\]: case does not change the formula"):
        find_formula("CHRF[case:false]")
    with pytest.raises(UsageError, match="'beta' of the formula of BLEU; known settings: none"):
        find_formula("BLEU[beta:2]")
    with pytest.raises(UsageError, match=r"known settings: beta, smooth, words. Did you mean beta"):
        find_formula("CHRF[bta:2]")
