"""Metrics by Moses' names and settings."""

from __future__ import annotations

import pytest

from mosesplug.errors import UsageError
from mosesplug.metrics import (
    Bleu,
    Cder,
    Cer,
    Chrf,
    InterpolatedMetric,
    Mer,
    Metric,
    Per,
    Ter,
    TerSacrebleu,
    Wer,
    metric,
    metric_names,
)
from mosesplug.metrics.normalization import Normalization
from mosesplug.metrics.registry import metric_of_signature, parse_settings


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
        ("CER", "blanks:remove,case:false", Cer(lowercase=True, blanks="remove")),
        ("MER", "", Mer()),
        ("MER", "normalize:punct+lower", Mer(normalization=Normalization(("lower", "punct")))),
        ("TER", "case:false", Ter(lowercase=True)),
        ("TER-SACREBLEU", "case:false", TerSacrebleu(lowercase=True)),
        ("CHRF", "", Chrf(beta=3)),
        ("CHRF", "beta:2,smooth:1,case:false", Chrf(lowercase=True, beta=2, smooth=1)),
        ("BLEU,TER", "weights:0.6+0.4", InterpolatedMetric((Bleu(), Ter()), (0.6, 0.4))),
        ("WER,PER", "case:true", InterpolatedMetric((Wer(), Per()), (0.5, 0.5))),
        (
            "BLEU,CHRF",
            "reflen:shortest,beta:1,case:false",
            InterpolatedMetric((Bleu("shortest", lowercase=True), Chrf(lowercase=True, beta=1))),
        ),
    ],
)
def test_others_by_their_settings(name: str, settings: str, expected: Metric) -> None:
    assert metric(name, settings) == expected


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        (
            "bleu",
            "",
            r"unknown metric 'bleu'; known metrics: BLEU.*bleu=FILE;.*\. Did you mean BLEU\?",
        ),
        ("ter_sacrebleu", "", r"Did you mean TER-SACREBLEU\?"),
        ("NIST", "", r"unknown metric 'NIST'; known metrics: BLEU.*--score-command NIST=COMMAND"),
        ("TESLA", "", r"TESLA is not supported: it needs .*; known metrics: BLEU.*--scores TESLA="),
        ("SEMPOS", "", r"SEMPOS is not supported: it needs deep syntactic analyses"),
        ("HWCM", "", r"HWCM is not supported: it needs parse trees"),
        ("M2", "", r"M2 is not supported: .* annotated corrections"),
        ("M2SCORER", "", r"M2SCORER is not supported: .* annotated corrections"),
        ("LRSCORE", "", r"LRSCORE is not supported: it compares word alignments"),
        ("BLEU,KENDALL", "", r"KENDALL is not supported: it compares word alignments"),
        ("", "", r"unknown metric ''"),
        ("BLEU,", "", r"unknown metric ''; known metrics: BLEU"),
        ("BLEU,bleu", "", r"unknown metric 'bleu'.* Did you mean BLEU\?"),
        ("BLEU,BLEU", "", r"BLEU,BLEU names a metric twice"),
        ("BLEU,TER", "weights:0.6", r"BLEU,TER has 2 metrics and 1 weights"),
        ("BLEU,TER", "weights:1+0", r"weight of TER must be a number above 0, not 0"),
        ("BLEU,TER", "weights:-1+2", r"weight of BLEU must be a number above 0, not -1"),
        ("BLEU,TER", "weights:1+nan", r"weight of TER must be a number above 0, not nan"),
        ("BLEU,TER", "weights:1+", r"a weight of weights:1\+ is not a number: ''"),
        (
            "BLEU,TER",
            "beta:2",
            r"'beta' of BLEU,TER; known settings: case, normalize, reflen, tokenize, weights",
        ),
        ("BLEU", "weights:1", r"unknown setting 'weights' of BLEU"),
        ("BLEU", "cas:false", r"unknown setting 'cas' of BLEU; .* Did you mean case\?"),
        ("CHRF", "beta:0", r"beta of CHRF must be a number above 0, not 0"),
        ("CHRF", "beta:inf", r"beta of CHRF must be a number above 0, not inf"),
        ("CHRF", "beta:two", r"beta of CHRF is not a number: 'two'"),
        ("CHRF", "smooth:-1", r"smooth of CHRF must be a number of at least 0, not -1"),
        (
            "PER",
            "reflen:shortest",
            r"unknown setting 'reflen' of PER; known settings: case, normalize, tokenize",
        ),
        ("WER", "refs:all", r"refs:all is invalid for WER: refs must be one of moses, best"),
        ("CER", "blanks:drop", r"blanks:drop is invalid for CER: .* one of keep, remove"),
        ("CER", "tokenize:13a", r"unknown setting 'tokenize' of CER; known settings: blanks"),
        ("WER", "normalize:upper", r"unknown normalization 'upper': use lower, nfkc, punct, or"),
        ("WER", "normalize:lower+lower", r"normalization lower is given twice"),
        ("BLEU", "normalize:lower", r"unknown setting 'normalize' of BLEU"),
        ("TER", "case:lower", r"case:lower is invalid for TER"),
        ("CHRF beta:3", "", r"the metric CHRF has settings here: give them as .*'beta:3'"),
        ("BLEU", "case", r"'case' is not of the form name:value"),
        ("BLEU", "case:", r"'case:' is not of the form name:value"),
        ("BLEU", ":true", r"':true' is not of the form name:value"),
        ("BLEU", "case:no", r"case:no .* one of true, false"),
        ("BLEU", "reflen:longest", r"reflen:longest .* one of closest, shortest, average"),
        ("BLEU", "tokenize:14a", r"tokenize:14a .* one of none, 13a, intl, zh, char, flores101"),
        ("CHRF", "tokenize:13a", r"unknown setting 'tokenize' of CHRF; known settings: beta"),
        ("BLEU", "order:4", r"unknown setting 'order' of BLEU; known settings: case, reflen"),
        ("BLEU", "regtype:average,regwin:3", r"regtype .* give it to the optimizer"),
        ("BLEU", "case:true,case:false", r"given twice: case:true and case:false"),
    ],
)
def test_unknown_names_are_rejected(name: str, settings: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        metric(name, settings)


def test_names_are_those_that_work() -> None:
    assert metric_names() == (
        *(
            "BLEU",
            "CDER",
            "CER",
            "CHRF",
            "GLEU",
            "MER",
            "METEOR",
            "PER",
            "TER",
            "TER-SACREBLEU",
            "WER",
        ),
    )
    assert [metric(name).name for name in metric_names()] == list(metric_names())


def test_values_may_hold_colons() -> None:
    assert parse_settings("a:b:c") == {"a": "b:c"}


@pytest.mark.parametrize("name", [*metric_names(), "BLEU,TER", "BLEU,CHRF"])
@pytest.mark.parametrize("settings", ["", "case:false"])
def test_metric_of_its_signature(name: str, settings: str) -> None:
    made = metric(name, settings)
    assert metric_of_signature(made.signature()) == made
    prepared = made.prepare([[b"a b c d"]])
    assert metric_of_signature(prepared.signature) == made


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("BLEU", "reflen:shortest"),
        ("CHRF", "beta:2,smooth:1"),
        ("WER", "refs:best"),
        ("BLEU,TER", "weights:0.6+0.4,reflen:average"),
        ("BLEU", "tokenize:13a"),
        ("BLEU,CHRF", "tokenize:zh,case:false"),
        ("TER-SACREBLEU", "tokenize:tercom-asian"),
        ("WER", "tokenize:intl,refs:best"),
        ("WER", "normalize:nfkc+punct+lower"),
        ("CER", "blanks:remove,normalize:lower"),
        ("CER,WER", "weights:0.5+0.5,blanks:remove,refs:best,normalize:punct"),
    ],
)
def test_metric_of_a_signature_with_settings(name: str, settings: str) -> None:
    made = metric(name, settings)
    assert metric_of_signature(made.signature()) == made


def test_invalid_signatures_are_rejected() -> None:
    with pytest.raises(UsageError, match="unknown metric"):
        metric_of_signature("NONE|case:mixed")
