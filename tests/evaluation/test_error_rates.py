"""Explanations of the scores of error rates."""

from __future__ import annotations

import pytest

from mosesplug.evaluation.error_rates import explain_signature
from mosesplug.metrics import metric


@pytest.mark.parametrize("name", ["BLEU", "CHRF"])
def test_scores_match_their_signature(name: str) -> None:
    signature = metric(name, "").signature()
    assert explain_signature(signature) == signature


@pytest.mark.parametrize("name", ["CDER", "PER", "TER", "TER-SACREBLEU", "WER"])
def test_of_error_rates_the_number_is_explained(name: str) -> None:
    signature = metric(name, "").signature()
    assert explain_signature(signature) == f"{signature} (scores are 1 - {name}: larger is better)"


def test_of_sums_each_part_is() -> None:
    said = explain_signature(metric("BLEU,TER", "").signature())
    assert said.endswith("(scores are a weighted sum of BLEU and 1 - TER: larger is better)")
