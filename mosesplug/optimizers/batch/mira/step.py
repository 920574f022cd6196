"""The updates of k-best MIRA: hope and fear, the margin, the step.

Cherry & Foster (2012). Everything is computed in single precision and in the order of Moses'
``kbmira``. A background of thousands of words makes the worths so large that single precision ties
hypotheses which double precision separates; ties go to the first, so only the same arithmetic makes
the same choices.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import finite_kernel, kernel
from mosesplug.metrics.sentence_bleu import single_bleu
from mosesplug.optimizers.lists.arrangement import add_scores, longest_sentence
from mosesplug.optimizers.lists.single_precision import MiraLists

__all__ = [
    "MiraDecisions",
    "MiraSettings",
    "MiraState",
    "average_weights",
    "background_bleu",
    "first_best",
    "model_scores",
    "update_background",
    "update_weights",
    "visit_sentence",
    "visit_sentences",
]

MODEL_SHARE = 5.0
"""With ``safe_hope``, the model score is at most this many times the worth."""

NEGLIGIBLE = 1e-6
"""Largest difference of a sparse feature of both hope and fear that counts as 0."""


class MiraSettings(NamedTuple):
    """Settings of a step.

    Attributes:
        step_cap: the largest step, ``C``.
        decay: of the background, each time it grows.
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
        hope_worth, fear_worth: float32 ``[n]``.
        loss: float32 ``[n]``; 0 without ``occasion``, negative where the margin is large enough.
        occasion: bool ``[n]``; whether hope and fear differ, and the hope is worth more.
    """

    hope: NDArray[np.int64]
    fear: NDArray[np.int64]
    hope_worth: NDArray[np.float32]
    fear_worth: NDArray[np.float32]
    loss: NDArray[np.float32]
    occasion: NDArray[np.bool_]


@kernel
def model_scores(
    lists: MiraLists, sentence: int, weights: NDArray[np.float32], scores: NDArray[np.float32]
) -> None:
    """Write ``weights . h`` of a sentence's hypotheses, summed in feature order.

    Args:
        lists: the hypotheses.
        sentence: its number.
        weights: float32 ``[n_features]``.
        scores: output, float32 ``[hypotheses of the sentence]``.
    """
    start = lists.offsets[sentence]
    size = lists.offsets[sentence + 1] - start
    scores[:] = 0.0
    add_scores(lists.dense, start, weights, lists.n_dense, scores)
    if len(lists.values):
        for row in range(size):
            total = scores[row]
            for entry in range(lists.indptr[start + row], lists.indptr[start + row + 1]):
                total += weights[lists.columns[entry]] * lists.values[entry]
            scores[row] = total


@kernel
def background_bleu(
    rows: NDArray[np.float32], background: NDArray[np.float32], worths: NDArray[np.float32]
) -> None:
    """Write BLEU of each row with the background, times the reference length of both.

    It is ``metrics.sentence_bleu.background_bleu_moses`` in single precision.

    Args:
        rows: float32 ``[n, 9]``, statistics of ``metrics.Bleu``.
        background: float32 ``[9]``.
        worths: output, float32 ``[n]``.
    """
    totals = np.empty(len(background), dtype=np.float32)
    for row in range(len(rows)):
        for column in range(len(background)):
            totals[column] = rows[row, column] + background[column]
        worths[row] = single_bleu(totals) * totals[8]


@kernel
def visit_sentence(
    lists: MiraLists,
    settings: MiraSettings,
    state: MiraState,
    sentence: int,
    scores: NDArray[np.float32],
    worths: NDArray[np.float32],
    decisions: MiraDecisions,
    visit: int,
) -> None:
    """Choose hope and fear of one sentence, and update the weights.

    Args:
        lists: the hypotheses.
        settings: of the algorithm.
        state: output.
        sentence: its number.
        scores: float32 ``[hypotheses of the sentence]``, by the model.
        worths: float32 ``[statistics rows of the sentence]``, by the metric.
        decisions: output, at ``visit``.
        visit: place in ``decisions``.
    """
    start = lists.offsets[sentence]
    first_row = lists.row_offsets[sentence]
    worth_of = np.empty_like(scores)
    for row in range(len(scores)):
        worth_of[row] = worths[lists.row_of[start + row] - first_row]
    hope, fear, model = _choose(scores, worth_of, settings.safe_hope)
    hope, fear, model = start + hope, start + fear, start + model
    hope_worth = worths[lists.row_of[hope] - first_row]
    fear_worth = worths[lists.row_of[fear] - first_row]
    decisions.hope[visit], decisions.fear[visit] = hope, fear
    decisions.hope_worth[visit], decisions.fear_worth[visit] = hope_worth, fear_worth
    decisions.loss[visit] = 0.0
    decisions.occasion[visit] = hope != fear and hope_worth > fear_worth
    if not decisions.occasion[visit]:
        return
    columns, values = _difference(lists, sentence, hope, fear)
    margin = hope_worth - fear_worth
    decisions.loss[visit] = update_weights(settings, state, columns, values, margin)
    chosen = lists.row_of[model if settings.model_background else hope]
    update_background(settings, state, lists.rows[chosen])


@kernel
def update_weights(
    settings: MiraSettings,
    state: MiraState,
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    margin: np.float32,
) -> np.float32:
    """Move the weights until hope scores ``margin`` above fear, at most ``step_cap``.

    Args:
        settings: of the algorithm.
        state: output; the background stays as it is.
        columns, values: features of hope minus those of fear, ascending columns.
        margin: difference in worth between hope and fear.

    Returns:
        The missing margin before the step; without a step it is not above 0.
    """
    score, norm = np.float32(0.0), np.float32(0.0)
    for entry in range(len(columns)):
        score += state.weights[columns[entry]] * values[entry]
    for entry in range(len(columns)):
        if settings.active[columns[entry]]:
            norm += values[entry] * values[entry]
    loss = margin - score
    if loss > 0.0:
        rate = settings.step_cap
        if norm > 0.0:
            rate = min(rate, loss / norm)
        _update(state, settings, columns, values, rate)
    return loss


@kernel
def update_background(
    settings: MiraSettings, state: MiraState, statistics: NDArray[np.float32]
) -> None:
    """Add statistics, float32 ``[n_statistics]``, to the background of ``state``."""
    for column in range(len(state.background)):
        state.background[column] *= settings.decay
        state.background[column] += statistics[column]


@kernel
def _choose(
    scores: NDArray[np.float32], worths: NDArray[np.float32], safe_hope: bool
) -> tuple[int, int, int]:
    """Return hypotheses of the highest hope, fear and model score, in a tie the first.

    Args:
        scores, worths: float32 ``[hypotheses of the sentence]``.
        safe_hope: limit the model score in the hope.
    """
    one = np.float32(1.0)
    hope = _first_largest(one, scores, one, worths)
    fear = _first_largest(one, scores, -one, worths)
    model = _first_largest(one, scores, np.float32(0.0), worths)
    size = abs(scores[hope])
    if safe_hope and size > np.float32(1e-8):
        scale = abs(worths[hope] * np.float32(MODEL_SHARE)) / size
        if scale < one:
            hope = _first_largest(scale, scores, one, worths)
    return hope, fear, model


@finite_kernel
def _first_largest(
    scale: np.float32, scores: NDArray[np.float32], sign: np.float32, worths: NDArray[np.float32]
) -> int:
    """Return the first row with the largest ``scale * score + sign * worth``."""
    sums = np.empty_like(scores)
    largest = -np.float32(np.inf)
    for row in range(len(scores)):
        sums[row] = scale * scores[row] + sign * worths[row]
        largest = max(largest, sums[row])
    for row in range(len(sums)):
        if sums[row] == largest:
            return row
    return 0


@kernel
def _difference(
    lists: MiraLists, sentence: int, hope: int, fear: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return features of hope minus fear: dense columns, and sparse ones that differ."""
    start = lists.offsets[sentence]
    size = lists.offsets[sentence + 1] - start
    a, a_end = lists.indptr[hope], lists.indptr[hope + 1]
    b, b_end = lists.indptr[fear], lists.indptr[fear + 1]
    columns = np.empty(lists.n_dense + (a_end - a) + (b_end - b), dtype=np.int32)
    values = np.empty(len(columns), dtype=np.float32)
    for feature in range(lists.n_dense):
        place = start * lists.n_dense + feature * size - start
        columns[feature] = feature
        values[feature] = lists.dense[place + hope] - lists.dense[place + fear]
    n = lists.n_dense
    while a < a_end or b < b_end:
        if b == b_end or (a < a_end and lists.columns[a] < lists.columns[b]):
            columns[n], values[n] = lists.columns[a], lists.values[a]
            a += 1
        elif a == a_end or lists.columns[b] < lists.columns[a]:
            columns[n], values[n] = lists.columns[b], -lists.values[b]
            b += 1
        else:
            columns[n], values[n] = lists.columns[a], lists.values[a] - lists.values[b]
            a += 1
            b += 1
            if not abs(values[n]) > NEGLIGIBLE:
                continue
        n += 1
    return columns[:n], values[:n]


@kernel
def _update(
    state: MiraState,
    settings: MiraSettings,
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    rate: np.float32,
) -> None:
    state.updates[0] += 1
    for entry in range(len(columns)):
        column, change = columns[entry], values[entry] * rate
        if settings.active[column]:
            if not settings.low[column] <= state.weights[column] + change <= settings.high[column]:
                limit = settings.low[column] if change < 0.0 else settings.high[column]
                change = limit - state.weights[column]
            _add(state, column, change)


@kernel
def _add(state: MiraState, column: int, change: np.float32) -> None:
    """Add to one weight, after its total has caught up with earlier updates."""
    missed = np.float32(state.updates[0] - state.updated[column])
    state.totals[column] += missed * state.weights[column] + change
    state.weights[column] += change
    state.updated[column] = state.updates[0]


@kernel
def average_weights(state: MiraState) -> NDArray[np.float32]:
    """Return the averaged weights, float32 ``[n_features]``; every total catches up.

    The sum of the initial weights and those after each update, divided by the number of updates, as
    in Moses: ``(n + 1) / n`` times the average, which ranks alike.
    """
    if state.updates[0] == 0:
        return state.weights.copy()
    for column in range(len(state.weights)):
        _add(state, column, np.float32(0.0))
    return state.totals / np.float32(state.updates[0])


@kernel
def visit_sentences(
    lists: MiraLists,
    settings: MiraSettings,
    state: MiraState,
    order: NDArray[np.int64],
    decisions: MiraDecisions,
) -> None:
    """Visit sentences in the given order, with BLEU in the background as worth.

    Args:
        lists: the hypotheses.
        settings: of the algorithm.
        state: output.
        order: int64 ``[n]``; sentences.
        decisions: output, ``[n]``.
    """
    buffer = np.empty(longest_sentence(lists.offsets), dtype=np.float32)
    worths = np.empty(longest_sentence(lists.row_offsets), dtype=np.float32)
    for visit in range(len(order)):
        sentence = order[visit]
        scores = buffer[: lists.offsets[sentence + 1] - lists.offsets[sentence]]
        model_scores(lists, sentence, state.weights, scores)
        rows = lists.rows[lists.row_offsets[sentence] : lists.row_offsets[sentence + 1]]
        background_bleu(rows, state.background, worths[: len(rows)])
        visit_sentence(
            lists, settings, state, sentence, scores, worths[: len(rows)], decisions, visit
        )


@kernel
def first_best(lists: MiraLists, weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the 1-best hypothesis of each sentence, the first in a tie: int64."""
    best = np.empty(len(lists.offsets) - 1, dtype=np.int64)
    buffer = np.empty(longest_sentence(lists.offsets), dtype=np.float32)
    for sentence in range(len(best)):
        scores = buffer[: lists.offsets[sentence + 1] - lists.offsets[sentence]]
        model_scores(lists, sentence, weights, scores)
        best[sentence] = lists.offsets[sentence] + np.argmax(scores)
    return best
