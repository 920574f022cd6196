"""Explanations of the scores of error rates."""

from __future__ import annotations

import pytest

from mosesplug.metrics import metric
from mosesplug.metrics.error_rates import explain_shown_scores


@pytest.mark.parametrize("name", ["BLEU", "CHRF"])
def test_scores_match_their_signature(name: str) -> None:
    signature = metric(name, "").signature()
    assert explain_shown_scores(signature) == signature


@pytest.mark.parametrize("name", ["CDER", "PER", "TER", "TER-SACREBLEU", "WER"])
def test_of_error_rates_the_number_is_explained(name: str) -> None:
    signature = metric(name, "").signature()
    assert explain_shown_scores(signature) == f"{signature} (an error rate: less is better)"


def test_of_sums_each_part_is() -> None:
    said = explain_shown_scores(metric("BLEU,TER", "").signature())
    assert said.endswith("(scores are a weighted sum of BLEU and 1 - TER: larger is better)")
