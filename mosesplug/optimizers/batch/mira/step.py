"""The updates of k-best MIRA: the margin between hope and fear, and the step.

Cherry & Foster (2012). As the choices (``choice``), all is computed in single precision and in the
order of Moses' ``kbmira``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.batch.mira.choice import (
    background_bleu,
    choose_hypotheses,
    score_rows,
)
from mosesplug.optimizers.lists.single_precision import MiraLists

__all__ = [
    "MiraDecisions",
    "MiraSettings",
    "MiraState",
    "average_weights",
    "update_background",
    "update_weights",
    "visit_sentences",
]

NEGLIGIBLE = 1e-6
"""Largest difference of a sparse feature of both hope and fear that counts as 0."""


class MiraSettings(NamedTuple):
    """Settings of a step.

    Attributes:
        step_cap: the largest step, ``C``.
        decay: the decay of the background, each time it grows.
        model_background: the model's best hypothesis joins the background, not the hope.
        safe_hope: limit the model score in the hope.
        active: bool ``[n_features]``; other weights never change.
        low: float32 ``[n_features]``, lower limits of the weights.
        high: float32 ``[n_features]``, upper limits.
    """

    step_cap: np.float32
    decay: np.float32
    model_background: bool
    safe_hope: bool
    active: NDArray[np.bool_]
    low: NDArray[np.float32]
    high: NDArray[np.float32]


class MiraState(NamedTuple):
    """State of the learner; the kernels write to its arrays.

    Attributes:
        weights: float32 ``[n_features]``.
        totals: float32 ``[n_features]``; sum of the initial weights and those after each update up
            to the one in ``updated``.
        updated: int64 ``[n_features]``; number of the update that ``totals`` includes.
        updates: int64 ``[1]``; updates so far.
        background: float32 ``[n_statistics]``; decayed sum of the statistics of earlier choices.
    """

    weights: NDArray[np.float32]
    totals: NDArray[np.float32]
    updated: NDArray[np.int64]
    updates: NDArray[np.int64]
    background: NDArray[np.float32]


class MiraDecisions(NamedTuple):
    """Choices at each visited sentence; the kernels write to its arrays.

    Attributes:
        hope, fear: int64 ``[n]``; hypotheses.
        hope_gain, fear_gain: float32 ``[n]``.
        loss: float32 ``[n]``; 0 without ``occasion``, negative where the margin is large enough.
        occasion: bool ``[n]``; whether hope and fear differ, and the hope has the larger gain.
    """

    hope: NDArray[np.int64]
    fear: NDArray[np.int64]
    hope_gain: NDArray[np.float32]
    fear_gain: NDArray[np.float32]
    loss: NDArray[np.float32]
    occasion: NDArray[np.bool_]


def visit_sentences(
    lists: MiraLists,
    settings: MiraSettings,
    state: MiraState,
    order: NDArray[np.int64],
    decisions: MiraDecisions,
    gains: NDArray[np.float32] | None = None,
) -> None:
    """Visit sentences in order: choose hope and fear, and update the weights.

    Args:
        lists: the hypotheses.
        settings: the settings of the algorithm.
        state: output.
        order: int64 ``[n]``; sentences.
        decisions: output, ``[n]``.
        gains: float32 ``[statistics rows of the sentence]``, by the metric, if it is one
            sentence; None: BLEU in the background.
    """
    longest = int(np.diff(lists.offsets).max(initial=0))
    widest = lists.n_dense + 2 * int(np.diff(lists.indptr).max(initial=0))
    if is_bleu := gains is None:
        gains = np.empty(int(np.diff(lists.row_offsets).max(initial=0)), dtype=np.float32)
    buffers = (
        np.empty((3, longest), dtype=np.float32),
        np.empty(widest, dtype=np.int32),
        np.empty(widest, dtype=np.float32),
    )
    tuples: tuple[Any, ...] = (*lists, *settings, *state, *decisions)
    _visit(*(*tuples, order, gains, is_bleu, *buffers))


# Kernels take arrays and not the tuples that hold them: a tuple takes long to compile.
@kernel
def _visit(
    n_dense: int,
    offsets: NDArray[np.int64],
    dense: NDArray[np.float32],
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    row_of: NDArray[np.int64],
    row_offsets: NDArray[np.int64],
    rows: NDArray[np.float32],
    step_cap: np.float32,
    decay: np.float32,
    model_background: bool,
    safe_hope: bool,
    active: NDArray[np.bool_],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    weights: NDArray[np.float32],
    totals: NDArray[np.float32],
    updated: NDArray[np.int64],
    updates: NDArray[np.int64],
    background: NDArray[np.float32],
    hopes: NDArray[np.int64],
    fears: NDArray[np.int64],
    hope_gains: NDArray[np.float32],
    fear_gains: NDArray[np.float32],
    losses: NDArray[np.float32],
    occasions: NDArray[np.bool_],
    order: NDArray[np.int64],
    gains: NDArray[np.float32],
    is_bleu: bool,
    buffers: NDArray[np.float32],
    changed: NDArray[np.int32],
    changes: NDArray[np.float32],
) -> None:
    """Run ``visit_sentences`` on the arrays of its arguments, in order, and buffers.

    Args:
        is_bleu: whether to compute ``gains``.
        buffers: float32 ``[3, hypotheses of the longest sentence]``.
        changed, changes: working space for the most features that hope and fear can have.
    """
    for visit in range(len(order)):
        sentence = order[visit]
        start = offsets[sentence]
        size = offsets[sentence + 1] - start
        scores, gain_of, sums = buffers[0, :size], buffers[1, :size], buffers[2, :size]
        score_rows(start, n_dense, dense, indptr, columns, values, weights, scores)
        first_row = row_offsets[sentence]
        if is_bleu:
            background_bleu(rows[first_row : row_offsets[sentence + 1]], background, gains)
        for row in range(size):
            gain_of[row] = gains[row_of[start + row] - first_row]
        hope, fear, model = choose_hypotheses(scores, gain_of, sums, safe_hope)
        hopes[visit], fears[visit] = start + hope, start + fear
        hope_gains[visit], fear_gains[visit] = gain_of[hope], gain_of[fear]
        margin = gain_of[hope] - gain_of[fear]
        losses[visit] = 0.0
        occasions[visit] = hope != fear and gain_of[hope] > gain_of[fear]
        if not occasions[visit]:
            continue
        n = _subtract(
            start, size, hope, fear, n_dense, dense, indptr, columns, values, changed, changes
        )
        losses[visit] = _move_weights(
            step_cap, active, low, high, weights, totals, updated, updates,
            changed, changes, n, margin,
        )  # fmt: skip
        chosen = row_of[start + (model if model_background else hope)]
        for column in range(len(background)):
            background[column] *= decay
            background[column] += rows[chosen, column]


@kernel
def _subtract(
    start: int,
    size: int,
    hope: int,
    fear: int,
    n_dense: int,
    dense: NDArray[np.float32],
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    changed: NDArray[np.int32],
    changes: NDArray[np.float32],
) -> int:
    """Write features of hope minus fear: dense columns, and sparse ones that differ.

    Args:
        start: row of the sentence's first hypothesis.
        size: number of its hypotheses.
        hope, fear: rows, counted from the first.
        n_dense, dense, indptr, columns, values: those of ``MiraLists``.
        changed, changes: outputs.

    Returns:
        The number of features.
    """
    place = start * n_dense
    for feature in range(n_dense):
        changed[feature] = feature
        changes[feature] = dense[place + hope] - dense[place + fear]
        place += size
    n = n_dense
    a, a_end = indptr[start + hope], indptr[start + hope + 1]
    b, b_end = indptr[start + fear], indptr[start + fear + 1]
    while a < a_end or b < b_end:
        if b == b_end or (a < a_end and columns[a] < columns[b]):
            changed[n], changes[n] = columns[a], values[a]
            a += 1
        elif a == a_end or columns[b] < columns[a]:
            changed[n], changes[n] = columns[b], -values[b]
            b += 1
        else:
            changed[n], changes[n] = columns[a], values[a] - values[b]
            a += 1
            b += 1
            if not abs(changes[n]) > NEGLIGIBLE:
                continue
        n += 1
    return n


def update_weights(
    settings: MiraSettings,
    state: MiraState,
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    margin: np.float32,
) -> np.float32:
    """Move the weights until hope scores ``margin`` above fear, at most ``step_cap``.

    Args:
        settings: the settings of the algorithm.
        state: output; the background stays as it is.
        columns, values: features of hope minus those of fear, ascending columns.
        margin: difference in gain between hope and fear.

    Returns:
        The missing margin before the step; without a step it is not above 0.
    """
    return _move_weights(
        settings.step_cap,
        settings.active,
        settings.low,
        settings.high,
        state.weights,
        state.totals,
        state.updated,
        state.updates,
        columns,
        values,
        len(values),
        margin,
    )


@kernel
def _move_weights(
    step_cap: np.float32,
    active: NDArray[np.bool_],
    low: NDArray[np.float32],
    high: NDArray[np.float32],
    weights: NDArray[np.float32],
    totals: NDArray[np.float32],
    updated: NDArray[np.int64],
    updates: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    n: int,
    margin: np.float32,
) -> np.float32:
    """Run ``update_weights`` on the first ``n`` of ``columns`` and ``values``."""
    score, norm = np.float32(0.0), np.float32(0.0)
    for entry in range(n):
        score += weights[columns[entry]] * values[entry]
    for entry in range(n):
        if active[columns[entry]]:
            norm += values[entry] * values[entry]
    loss = margin - score
    if not loss > 0.0:
        return loss
    rate = step_cap
    if norm > 0.0:
        rate = min(rate, loss / norm)
    updates[0] += 1
    for entry in range(n):
        column, change = columns[entry], values[entry] * rate
        if active[column]:
            weight = weights[column]
            if not low[column] <= weight + change <= high[column]:
                limit = low[column] if change < 0.0 else high[column]
                change = limit - weight
            # The total catches up with earlier updates.
            totals[column] += np.float32(updates[0] - updated[column]) * weight + change
            weights[column] = weight + change
            updated[column] = updates[0]
    return loss


def update_background(
    settings: MiraSettings, state: MiraState, statistics: NDArray[np.float32]
) -> None:
    """Add statistics, float32 ``[n_statistics]``, to the background of ``state``."""
    background = state.background
    background *= settings.decay
    background += statistics


def average_weights(state: MiraState) -> NDArray[np.float32]:
    """Return the averaged weights, float32 ``[n_features]``; every total catches up.

    The sum of the initial weights and those after each update, divided by the number of updates, as
    in Moses: ``(n + 1) / n`` times the average, which ranks alike.
    """
    weights, totals, updated, updates, _ = state
    if updates[0] == 0:
        return weights.copy()
    missed = (updates[0] - updated).astype(np.float32)
    totals += missed * weights + np.float32(0.0)
    weights += np.float32(0.0)  # an update by nothing: negative zero becomes zero
    updated[:] = updates[0]
    return np.asarray(totals / np.float32(updates[0]))
