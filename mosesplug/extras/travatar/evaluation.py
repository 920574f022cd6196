"""Travatar's evaluation measures by the names and settings of ``-eval``.

Those that count words, ``zeroone``, ``wer`` and ``ter``, are here, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.errors import UsageError, suggest
from mosesplug.extras.travatar.bleu import bleu
from mosesplug.extras.travatar.combined import ainterp, interp
from mosesplug.extras.travatar.measure import (
    Average,
    Measure,
    Texts,
    parse_choice,
    parse_integer,
    parse_settings,
    refuse_settings,
)
from mosesplug.extras.travatar.ribes import ribes
from mosesplug.metrics.edit.wer import Wer
from mosesplug.metrics.protocol import Metric
from mosesplug.metrics.ter.sacrebleu import TerSacrebleu


def find_measure(text: str) -> Measure:
    """Return the measure of ``-eval``, such as ``bleu:order=4,smooth=1``."""
    name, _, settings = text.partition(":")
    known = f"the measures are {', '.join(MEASURES)}"
    if name == "nist":
        raise UsageError(
            "-eval nist: NIST needs the counts of n-grams in all references, which batch-tune "
            f"does not collect; {known}"
        )
    if name not in MEASURES:
        raise UsageError(
            f"-eval {text}: unknown measure {name!r}; {known}{suggest(name, MEASURES)}"
        )
    return MEASURES[name](settings)


def zeroone(settings: str) -> Measure:
    """Return the share of hypotheses that are equal to the reference.

    Its file of statistics may hold any score of a hypothesis: ``0.83 1`` a line makes the score
    the mean of the chosen hypotheses. Settings are ignored, as in Travatar.
    """

    def count(texts: Texts, threads: int) -> Floats:
        words = [reference.split() for reference in texts.references]
        pairs = zip(texts.hypotheses, texts.sentence_ids.tolist(), strict=True)
        equal = [text.split() == words[sentence] for text, sentence in pairs]
        return np.column_stack([equal, np.ones(len(equal))]).astype(np.float64)

    return Average("zeroone", count)


def wer(settings: str) -> Measure:
    """Return the word error rate: Levenshtein distance by words of the reference."""
    return _rate("wer", settings, "reverse", Wer())


def ter(settings: str) -> Measure:
    """Return the translation edit rate with the shifts of sacrebleu and Tercom.

    Travatar's counts are the same, except in long sentences where much is moved: it moves blocks of
    up to 50 words and tries any number of shifts. Its tercpp is not the one in Moses.
    """
    return _rate("ter", settings, "inverse", TerSacrebleu())


def _rate(name: str, settings: str, reverse: str, metric: Metric) -> Measure:
    """Return an error rate with the settings ``factor`` and the one that reverses it."""
    parsed = parse_settings(name, settings)
    refuse_settings(name, parsed, (reverse, "factor"))
    factor = parse_integer(parsed, "factor", 0, 0)

    def count(texts: Texts, threads: int) -> Floats:
        texts = texts.factor(factor)
        references = metric.prepare([texts.references])
        return metric.statistics(references, *texts.ranges, threads=threads).astype(np.float64)

    return Average(
        f"{name}:{settings}" if settings else name,
        count,
        ("errors", "reference_length"),
        is_rate=True,
        is_reversed=parse_choice(parsed, reverse, ("false", "true")) == "true",
        reverse_setting=f"{reverse}=true",
    )


MEASURES: Mapping[str, Callable[[str], Measure]] = MappingProxyType(
    {
        "ainterp": lambda settings: ainterp(settings, find_measure),
        "bleu": bleu,
        "interp": lambda settings: interp(settings, find_measure),
        "ribes": ribes,
        "ter": ter,
        "wer": wer,
        "zeroone": zeroone,
    }
)
"""Makers of measures from the settings after the colon."""
