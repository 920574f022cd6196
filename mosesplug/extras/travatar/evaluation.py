"""Travatar's evaluation measures by the names and settings of ``-eval``."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from mosesplug.errors import UsageError, suggest
from mosesplug.extras.travatar.bleu import bleu
from mosesplug.extras.travatar.combined import ainterp, interp
from mosesplug.extras.travatar.measure import Measure
from mosesplug.extras.travatar.ribes import ribes
from mosesplug.extras.travatar.word_measures import ter, wer, zeroone

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
