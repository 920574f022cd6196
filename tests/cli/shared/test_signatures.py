"""What is said of scores."""

from __future__ import annotations

import pytest

from mosesplug.cli.shared.signatures import explained
from mosesplug.metrics import metric


@pytest.mark.parametrize("name", ["BLEU", "CHRF"])
def test_a_score_is_what_its_signature_says(name: str) -> None:
    signature = metric(name, "").signature()
    assert explained(signature) == signature


@pytest.mark.parametrize("name", ["CDER", "PER", "TER", "TER-SACREBLEU", "WER"])
def test_of_error_rates_the_number_is_explained(name: str) -> None:
    signature = metric(name, "").signature()
    assert explained(signature) == f"{signature} (scores are 1 - {name}: larger is better)"


def test_of_sums_each_part_is() -> None:
    said = explained(metric("BLEU,TER", "").signature())
    assert said.endswith("(scores are a weighted sum of BLEU and 1 - TER: larger is better)")
