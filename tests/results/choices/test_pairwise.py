"""A metric as the utility of pairs."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.metrics import metric, metric_names
from mosesplug.metrics.outside import OutsideMetric
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
