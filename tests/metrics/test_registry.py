"""Metrics by Moses' names and settings."""

from __future__ import annotations

import pytest

from mosesplug.errors import UsageError
from mosesplug.metrics import Bleu, Cder, Metric, Per, Ter, Wer, metric, metric_names
from mosesplug.metrics.registry import parse_settings


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("", Bleu()),
        ("case:true", Bleu()),
        ("case:false", Bleu(lowercase=True)),
        ("case:true,reflen:closest", Bleu("closest")),
        ("reflen:shortest case:true", Bleu("shortest")),
        (" reflen:average, case:false,", Bleu("average", lowercase=True)),
        ("case:true,case:true", Bleu()),
    ],
)
def test_bleu_by_its_settings(settings: str, expected: Bleu) -> None:
    assert metric("BLEU", settings) == expected


@pytest.mark.parametrize(
    ("name", "settings", "expected"),
    [
        ("PER", "", Per()),
        ("PER", "case:false", Per(lowercase=True)),
        ("WER", "case:true", Wer()),
        ("WER", "case:false,refs:best", Wer(lowercase=True, reference_choice="best")),
        ("CDER", "refs:moses", Cder()),
        ("TER", "case:false", Ter(lowercase=True)),
    ],
)
def test_error_rates_by_their_settings(name: str, settings: str, expected: Metric) -> None:
    assert metric(name, settings) == expected


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("bleu", "", r"unknown metric 'bleu'; known metrics: BLEU"),
        ("METEOR", "", r"unknown metric 'METEOR'; known metrics: BLEU"),
        ("", "", r"unknown metric ''"),
        ("CHRF", "", r"CHRF is not supported yet; known metrics: BLEU"),
        ("PER", "reflen:shortest", r"unknown setting 'reflen' of PER; known settings: case"),
        ("WER", "refs:all", r"refs:all is not a setting of WER: refs is one of moses, best"),
        ("TER", "case:lower", r"case:lower is not a setting of TER"),
        ("BLEU,TER", "weights:0.6+0.4", r"interpolated.*not supported yet"),
        ("BLEU", "case", r"'case' is not of the form name:value"),
        ("BLEU", "case:", r"'case:' is not of the form name:value"),
        ("BLEU", ":true", r"':true' is not of the form name:value"),
        ("BLEU", "case:no", r"case:no .* one of true, false"),
        ("BLEU", "reflen:longest", r"reflen:longest .* one of closest, shortest, average"),
        ("BLEU", "order:4", r"unknown setting 'order' of BLEU; known settings: case, reflen"),
        ("BLEU", "regtype:average,regwin:3", r"regtype .* give it to the optimizer"),
        ("BLEU", "case:true,case:false", r"given twice: case:true and case:false"),
    ],
)
def test_what_is_unknown_is_refused(name: str, settings: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        metric(name, settings)


def test_names_are_those_that_work() -> None:
    assert metric_names() == ("BLEU", "CDER", "PER", "TER", "WER")
    assert [metric(name).name for name in metric_names()] == list(metric_names())


def test_values_may_hold_colons() -> None:
    assert parse_settings("a:b:c") == {"a": "b:c"}
