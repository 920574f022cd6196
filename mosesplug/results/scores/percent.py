"""Scores from 0 to 100, as sacrebleu prints them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, TypeVar

from mosesplug.results.scores.comparison import SystemScore
from mosesplug.results.scores.scoring import MetricScore

_Score = TypeVar("_Score", MetricScore, SystemScore)

_SCALED = ("score", "interval", "sentences", "s_sel", "s_opt", "difference", "difference_interval")
"""Fields that are scores, or differences of scores."""


def to_percent(scores: Iterable[_Score]) -> list[_Score]:
    """Return scores times 100; those of other programs keep their own scale."""
    found = []
    for score in scores:
        if "|outside:" not in score.signature:
            known = [field.name for field in fields(score) if field.name in _SCALED]
            score = replace(score, **{name: _scale(getattr(score, name)) for name in known})
        found.append(score)
    return found


def _scale(value: Any) -> Any:
    if value is None:
        return None
    return tuple(map(_scale, value)) if isinstance(value, tuple) else 100.0 * value
