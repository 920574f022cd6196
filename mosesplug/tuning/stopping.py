"""When a run ends."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import count_noun
from mosesplug.metrics import Metric
from mosesplug.tuning.context import Context
from mosesplug.tuning.heldout import count_since_best
from mosesplug.tuning.workdir.records import is_finished, read_evaluations, read_result


def find_reason_to_stop(context: Context) -> str:
    """Return why the newest iteration is the last, or an empty string.

    It depends on the current settings, so a finished run can be continued with others.
    """
    configuration = context.configuration
    iterations = context.store.iterations()
    if not iterations or not is_finished(iterations[-1]):
        return ""
    change = read_result(iterations[-1]).largest_change
    if change < configuration.minimum_change and context.is_decoded(iterations[-1]):
        return f"no weight changed by {configuration.minimum_change:g} or more"
    held_out = configuration.held_out
    if held_out is not None and held_out.patience:
        stale = count_since_best(read_evaluations(iterations))
        if stale >= held_out.patience == 1:
            return "the last translation of the held-out text was no better"
        if stale >= held_out.patience:
            return f"{stale} translations of the held-out text in a row were no better"
    if reason := _find_stale_decodings(context):
        return reason
    epochs = context.optimizer.online.epochs if configuration.online else 0
    if epochs and len(iterations) >= epochs:
        return "the epoch is done" if epochs == 1 else f"all {epochs} epochs are done"
    if configuration.maximum_iterations and len(iterations) >= configuration.maximum_iterations:
        limit = count_noun(configuration.maximum_iterations, "iteration")
        return f"the maximum of {limit} is reached"
    return ""


def _find_stale_decodings(context: Context) -> str:
    """Return a reason to stop if the last decodings scored no higher than before."""
    configuration, store = context.configuration, context.store
    limit = configuration.stop_after
    records = [candidate for candidate in store.iterations() if context.is_decoded(candidate)]
    if not limit or configuration.online is not None or len(records) <= limit:
        return ""

    def read(position: int) -> NDArray[Any]:
        rows = store.first_best_statistics(
            records[position].iteration,
            metric=configuration.metric,
            references=context.references,
        )
        weights = store.sentence_weights
        return rows if weights is None else weights[:, None] * rows

    scores = [record.first_best_score for record in records]
    best = find_last_gain(configuration.metric, scores, read)
    if len(records) - 1 - best < limit:
        return ""
    last = "the last decoding" if limit == 1 else f"the last {limit} decodings"
    return (
        f"{last} scored no higher than that of iteration {records[best].iteration}, beyond"
        " the noise"
    )


def find_last_gain(
    metric: Metric, scores: Sequence[float], read: Callable[[int], NDArray[Any]]
) -> int:
    """Return the position of the last decoding that beat the last gain before it.

    A score is higher if it exceeds the other one by more than the noise of their difference, so a
    slow rise counts as soon as it has added up to that much. The first decoding counts as a gain.

    Args:
        read: returns statistics of the translations of a position, ``[n_sentences, n_stats]``.
    """
    best = 0
    for position, score in enumerate(scores):
        gain = score - scores[best]
        if gain > 0.0 and gain > estimate_noise(metric, read(best), read(position)):
            best = position
    return best


def estimate_noise(metric: Metric, first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return the standard error of the difference of two corpus scores.

    Both are scores of the same sentences. The standard error is the jackknife's: each score is
    computed again without one sentence, for all sentences.

    Args:
        first, second: statistics of translations, ``[n_sentences, n_stats]`` each.
    """
    without = [metric.score(rows.sum(axis=0, dtype=np.float64) - rows) for rows in (first, second)]
    differences = without[1] - without[0]
    count = len(differences)
    return math.sqrt((count - 1) * float(differences.var()))
