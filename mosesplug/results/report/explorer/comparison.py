"""Whether the results of runs in one page differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mosesplug.metrics.error_rates import display_difference, display_score
from mosesplug.results.report.explorer.run_data import SAMPLES, SEED, ExplorerRun
from mosesplug.results.scores.significance import approximate_randomization, paired_bootstrap

_TRIALS = 10_000
"""Trials of approximate randomization, as ``mosesplug compare`` makes by default."""


def compare_runs(runs: Sequence[ExplorerRun]) -> list[dict[str, Any]]:
    """Compare each run with the first, as ``mosesplug compare`` compares translations.

    The translations are those that the result of each run chooses in its merged lists.

    Returns:
        One document for each run but the first: ``reason`` says why it cannot be compared, or
        ``difference``, ``low``, ``high`` (95 % interval of the paired bootstrap), ``pBootstrap``
        and ``pRandomization`` are those of scores as people read them.
    """
    return [_compare(runs[0], run) for run in runs[1:]]


def _compare(baseline: ExplorerRun, run: ExplorerRun) -> dict[str, Any]:
    first, second = baseline.choices, run.choices
    if first is None or second is None:
        return {"reason": "the lists of one of them are in the stores of its shards"}
    if baseline.metric.signature() != run.metric.signature():
        return {"reason": "they were tuned by different metrics"}
    if baseline.n_sentences != run.n_sentences:
        return {"reason": "their tuning sets differ in the number of sentences"}
    if None not in (prints := {baseline.fingerprint, run.fingerprint}) and len(prints) > 1:
        return {"reason": "their references differ"}
    metric, signature = run.metric, run.metric.signature()
    tested = paired_bootstrap(metric, first, second, SAMPLES, np.random.default_rng(SEED))
    randomization = approximate_randomization(
        metric, [first], [second], _TRIALS, np.random.default_rng(SEED)
    )
    scores = [
        display_score(signature, float(metric.score(choice.sum(axis=0, dtype=np.float64))))
        for choice in (first, second)
    ]
    low, high = display_difference(signature, (tested.low, tested.high))
    return {
        "difference": scores[1] - scores[0],
        "low": low,
        "high": high,
        "pBootstrap": tested.p_value,
        "pRandomization": randomization,
    }
