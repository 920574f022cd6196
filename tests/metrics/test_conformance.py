"""Conformance tests of every registered metric: those of plug-ins, and stricter ones."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.metrics import Metric, PreparedReferences, metric, metric_names
from mosesplug.testing import METRIC_CHECKS
from mosesplug.testing.checks import run_checks
from mosesplug.testing.metrics import HYPOTHESES, REFERENCES, HypothesisTexts, as_text

ONE_REFERENCE = {"PER"}
"""Metrics that refuse several references."""


SUMS = (("BLEU,TER", "weights:0.6+0.4"), ("WER,CHRF,PER", ""), ("CHRF", "words:2"))
"""Weighted sums, which are metrics like any other, and chrF++."""


@pytest.fixture(params=(*((name, "") for name in metric_names()), *SUMS), ids=lambda pair: pair[0])
def scorer(request: pytest.FixtureRequest) -> Metric:
    return metric(*request.param)


@pytest.fixture
def references(scorer: Metric) -> tuple[tuple[bytes, ...], ...]:
    """As many references as the metric takes."""
    return REFERENCES[:1] if takes_one_reference(scorer) else REFERENCES


def takes_one_reference(scorer: Metric) -> bool:
    return not ONE_REFERENCE.isdisjoint(scorer.name.split(","))


def statistics(
    scorer: Metric, prepared: PreparedReferences, text: HypothesisTexts, threads: int = 1
) -> NDArray[np.int32]:
    return scorer.statistics(
        prepared, text.sentence_ids, text.buffer, text.starts, text.ends, threads=threads
    )


def test_conformance(scorer: Metric) -> None:
    run_checks(METRIC_CHECKS, scorer, scorer.name)


def test_signatures_name_the_version(scorer: Metric) -> None:
    assert "version:mosesplug-" in scorer.signature()


def test_fingerprints_depend_on_the_order_of_references() -> None:
    assert (
        metric("BLEU").prepare(REFERENCES).fingerprint
        != metric("BLEU").prepare(REFERENCES[::-1]).fingerprint
    )


def test_other_references_are_rejected(scorer: Metric) -> None:
    """What one metric prepared is of no use to another, nor to the same with other settings."""
    text = as_text(HYPOTHESES)
    for other in (*map(metric, metric_names()), metric(scorer.name, "case:false")):
        if other.signature() == scorer.signature():
            continue
        prepared = other.prepare(REFERENCES[:1])
        with pytest.raises(ValueError, match="cannot serve"):
            statistics(scorer, prepared, text)


def test_case_can_be_ignored(scorer: Metric) -> None:
    folded = metric(scorer.name, "case:false")
    mixed = folded.prepare([[b"The CAT sat on the Mat"]])
    lower = folded.prepare([[b"the cat sat on the mat"]])
    assert folded.signature() != scorer.signature()
    for output in (b"the cat sat on the mat", b"THE cat SAT on the mat", b"A mat"):
        text = as_text([(0, output)])
        row = statistics(folded, mixed, text)
        np.testing.assert_array_equal(row, statistics(folded, lower, text))
    same = as_text([(0, b"THE cat SAT on the mat")])
    assert folded.score(statistics(folded, lower, same)[0]) == pytest.approx(1.0)
    assert (
        scorer.score(statistics(scorer, scorer.prepare([[b"the cat sat on the mat"]]), same)[0]) < 1
    )


def test_larger_is_better_and_scores_lie_in_0_to_1(scorer: Metric) -> None:
    reference = [b"a b c d e f g h", b"the cat sat on the mat ."]
    prepared = scorer.prepare([reference])
    outputs = [
        reference,
        [b"a b c d e f g x", b"the cat sat on the mat ."],
        [b"a b c d x f g y", b"the cat sat on a mat ."],
        [b"a b c d", b"the x"],
        [b"q r s", b"t"],
    ]
    values = [
        float(scorer.score(statistics(scorer, prepared, as_text(list(enumerate(out)))).sum(axis=0)))
        for out in outputs
    ]
    assert values == sorted(values, reverse=True)
    assert len(set(values[:4])) == 4
    assert all(0 <= value <= 1 for value in values)


def test_empty_output_scores_nothing(scorer: Metric) -> None:
    prepared = scorer.prepare(REFERENCES[1:])
    rows = statistics(scorer, prepared, as_text([(sentence, b"") for sentence in range(4)]))
    assert float(scorer.score(rows.sum(axis=0))) == 0.0
    np.testing.assert_array_equal(scorer.score(rows), 0.0)


def test_wrong_numbers_of_statistics_are_named(scorer: Metric) -> None:
    with pytest.raises(ValueError, match=rf"{scorer.n_statistics} statistics, not an array"):
        scorer.score(np.zeros((2, scorer.n_statistics + 1)))


@pytest.mark.parametrize("sentence", [-1, 4, 2**40])
def test_sentences_without_reference_are_named(
    scorer: Metric, references: tuple[tuple[bytes, ...], ...], sentence: int
) -> None:
    prepared = scorer.prepare(references)
    with pytest.raises(DataError, match=rf"sentence {sentence} has no reference.* 4 lines"):
        statistics(scorer, prepared, as_text([(0, b"a"), (sentence, b"a")]))


def test_unusable_references_are_rejected(scorer: Metric) -> None:
    with pytest.raises(DataError, match="no reference translation"):
        scorer.prepare([])
    differing: tuple[tuple[bytes, ...], ...] = (REFERENCES[0], (b"a",))
    refusal = "reference 1 has 1 lines and reference 0 has 4"
    if takes_one_reference(scorer):
        differing, refusal = REFERENCES, "PER supports one reference, .* are 2"
    with pytest.raises(DataError, match=refusal):
        scorer.prepare(differing)
