"""What learning weights has gained, as a table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mosesplug.reporting.tables import format_table

if TYPE_CHECKING:
    from mosesplug.evaluation.gains import Gain, MetricGain

__all__ = ["GAIN_HEAD", "describe_sentences", "list_gain_rows", "tabulate_gain"]

GAIN_HEAD = ("metric", "start", "end", "difference", "p(boot)", "p(AR)", "")


def tabulate_gain(gain: Gain) -> list[str]:
    """Return the lines of a table, with a heading that says which sentences it is about."""
    rows = list_gain_rows(gain.metrics)
    return [describe_sentences(gain), *format_table([GAIN_HEAD, *rows], left=1, last=1)]


def describe_sentences(gain: Gain) -> str:
    """Return the heading of a table."""
    which = {
        "learned from": f"on the {gain.sentences} sentences learned from",
        "held out": f"on {gain.sentences} held-out sentences",
        "folds": f"on {gain.sentences} sentences, each with weights of the other folds",
    }[gain.data]
    return f"gain {which}:"


def list_gain_rows(metrics: Sequence[MetricGain]) -> list[tuple[str, ...]]:
    """Return the cells of each metric; the first and the last column hold text."""
    return [
        (
            each.metric,
            f"{each.start:.4f}",
            f"{each.end:.4f}",
            f"{each.difference:+.4f}",
            _format_p(each.p_bootstrap),
            _format_p(each.p_randomisation),
            _judge(each),
        )
        for each in metrics
    ]


def _format_p(value: float) -> str:
    return "" if math.isnan(value) else f"{value:.3f}"


def _judge(gain: MetricGain) -> str:
    change = "better" if gain.improvement > 0 else "worse" if gain.improvement < 0 else "same"
    return f"{change}, optimised" if gain.is_objective else change
