"""A metric as the utility of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import metric, metric_names
from mosesplug.metrics.outside import OutsideMetric, Question
from mosesplug.results.choices.mbr import check_utility, pairwise_scores
from mosesplug.testing.metrics import as_text

TEXTS = [b"a b c d e", b"", b"a b x d e f", b"a b c d e", b"q"]


@pytest.mark.parametrize("name", [*metric_names(), "CER,WER"])
def test_pairs_are_scored_as_single_sentences_are(name: str) -> None:
    scorer = metric(name)
    found = pairwise_scores(scorer, TEXTS)
    for row, hypothesis in enumerate(TEXTS):
        for column, reference in enumerate(TEXTS):
            text = as_text([(0, hypothesis)])
            stats = text.statistics(scorer, scorer.prepare([[reference]])).astype(np.float64)
            assert found[row, column] == scorer.sentence_scores(stats)[0]


def test_scores_from_outside_compare_no_pairs() -> None:
    check_utility(metric("WER"))
    with pytest.raises(UsageError, match="COMET needs scores from outside, which compare no two"):
        check_utility(OutsideMetric("COMET"))


class Program:
    """Stands for a command: WER of a hypothesis, and keeps what it was asked."""

    n_asked = n_known = 0
    reads_references = True

    def __init__(self) -> None:
        self.questions: list[Question] = []

    def score(self, questions: Sequence[Question]) -> NDArray[np.float64]:
        self.questions += questions
        scorer, rates = metric("WER"), []
        for question in questions:
            text = as_text([(0, question.hypothesis)])
            stats = text.statistics(scorer, scorer.prepare([question.references]))
            rates.append(1.0 - scorer.sentence_scores(stats.astype(np.float64)))
        return np.array(rates)


def test_a_program_gets_every_pair_once() -> None:
    program, source = Program(), (b"eins", b"zwei", b"drei")
    scorer = OutsideMetric("RATE", is_error_rate=True, scorer=program, source=source)
    check_utility(scorer)
    found = pairwise_scores(scorer, TEXTS, 1)
    assert found == pytest.approx(pairwise_scores(metric("WER"), TEXTS), abs=1e-15)
    distinct = list(dict.fromkeys(TEXTS))
    assert sorted(program.questions) == sorted(
        Question(1, b"zwei", one, (other,)) for one in distinct for other in distinct
    )
    both = metric("RATE:0.5+CHRF:0.5", "", [scorer])
    expected = 0.5 * found + 0.5 * pairwise_scores(metric("CHRF"), TEXTS)
    assert pairwise_scores(both, TEXTS, 2) == pytest.approx(expected)
    assert {question.sentence for question in program.questions} == {1, 2}
    with pytest.raises(DataError, match="sentence 3 has no source: there are 3, counted from 0"):
        pairwise_scores(scorer, TEXTS, 3)
    program.reads_references = False
    with pytest.raises(UsageError, match=r"RATE reads hypotheses without references.*json"):
        check_utility(both)
