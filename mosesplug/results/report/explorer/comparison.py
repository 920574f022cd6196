"""Test whether the results of runs on one page differ significantly."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mosesplug.arrays import SentenceValues
from mosesplug.results.report.explorer.run_data import ExplorerRun
from mosesplug.results.scores.comparison import compare_statistics


def compare_runs(runs: Sequence[ExplorerRun]) -> list[dict[str, Any]]:
    """Compare each run with the first, as ``mosesplug compare`` compares translations.

    The translations are the 1-best hypotheses of each run's merged lists with its result.

    Returns:
        One mapping for each run but the first. If it cannot be compared, ``reason`` says why.
        Otherwise it has the ``difference`` of the scores, ``low`` and ``high`` (95 % interval of
        the paired bootstrap), ``pBootstrap`` and ``pRandomization``; error rates are rates.
    """
    return [_compare(runs[0], run) for run in runs[1:]]


def _compare(baseline: ExplorerRun, run: ExplorerRun) -> dict[str, Any]:
    first, second = baseline.choices, run.choices
    if first is None or second is None:
        absent = baseline if first is None else run
        return {"reason": f"the lists of {absent.name} are {absent.document['whereListsAre']}"}
    if baseline.metric.signature() != run.metric.signature():
        return {"reason": "they were tuned by different metrics"}
    if baseline.n_sentences != run.n_sentences:
        return {"reason": "their tuning sets differ in the number of sentences"}
    if None not in (prints := {baseline.fingerprint, run.fingerprint}) and len(prints) > 1:
        return {"reason": "their references differ"}
    if not _are_equal(baseline.sentence_weights, run.sentence_weights):
        return {"reason": "their sentences have different weights"}
    _, tested = compare_statistics(
        [baseline.name, run.name], [[first], [second]], run.metric, run.metric.signature()
    )
    assert tested.difference_interval is not None
    low, high = tested.difference_interval
    return {
        "difference": tested.difference,
        "low": low,
        "high": high,
        "pBootstrap": tested.p_bootstrap,
        "pRandomization": tested.p_randomization,
    }


def _are_equal(one: SentenceValues | None, other: SentenceValues | None) -> bool:
    if one is None or other is None:
        return one is other
    return bool(np.array_equal(one, other))
