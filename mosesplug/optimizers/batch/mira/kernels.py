"""Kernels of k-best MIRA: choose hope and fear, and move the weights.

Cherry & Foster (2012). Everything is computed in single precision and in the order of Moses'
``kbmira``. A background of thousands of words makes the gains so large that single precision ties
hypotheses which double precision separates; ties go to the first, so only the same arithmetic makes
the same choices.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import finite_kernel, kernel
from mosesplug.metrics.bleu.sentence import single_bleu
from mosesplug.optimizers.batch.mira.state import MiraDecisions, MiraSettings, MiraState
from mosesplug.optimizers.lists.arrangement import add_scores
from mosesplug.optimizers.lists.single_precision import MiraLists

MODEL_SHARE = 5.0
"""With ``safe_hope``, the model score is at most this many times the gain."""


@kernel
def score_rows(
    start: int,
    n_dense: int,
    dense: NDArray[np.float32],
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    weights: NDArray[np.float32],
    scores: NDArray[np.float32],
) -> None:
    """Write ``weights . h`` of the rows from ``start`` on, summed in feature order."""
    for row in range(len(scores)):
        scores[row] = 0.0
    add_scores(dense, start, weights, n_dense, scores)
    if len(values):
        for row in range(len(scores)):
            total = scores[row]
            for entry in range(indptr[start + row], indptr[start + row + 1]):
                total += weights[columns[entry]] * values[entry]
            scores[row] = total


@kernel
def background_bleu(
    rows: NDArray[np.float32], background: NDArray[np.float32], gains: NDArray[np.float32]
) -> None:
    """Write BLEU of each row with the background, times the reference length of both.

    This follows Chiang et al. (2008), see ``metrics.bleu.sentence``, in single precision.
    """
    totals = np.empty(len(background), dtype=np.float32)
    for row in range(len(rows)):
        for column in range(len(background)):
            totals[column] = rows[row, column] + background[column]
        gains[row] = single_bleu(totals) * totals[8]


@kernel
def choose_hypotheses(
    scores: NDArray[np.float32],
    gains: NDArray[np.float32],
    sums: NDArray[np.float32],
    safe_hope: bool,
) -> tuple[int, int, int]:
    """Return the rows of hope, fear and 1-best; in a tie, the first.

    ``sums`` is a buffer.
    """
    one = np.float32(1.0)
    hope = _first_largest(one, scores, one, gains, sums)
    fear = _first_largest(one, scores, -one, gains, sums)
    model = _first_largest(one, scores, np.float32(0.0), gains, sums)
    size = abs(scores[hope])
    if safe_hope and size > np.float32(1e-8):
        scale = abs(gains[hope] * np.float32(MODEL_SHARE)) / size
        if scale < one:
            hope = _first_largest(scale, scores, one, gains, sums)
    return hope, fear, model


@finite_kernel
def _first_largest(
    scale: np.float32,
    scores: NDArray[np.float32],
    sign: np.float32,
    gains: NDArray[np.float32],
    sums: NDArray[np.float32],
) -> int:
    """Return the first row of largest ``scale * score + sign * gain``; fill ``sums``."""
    largest = -np.float32(np.inf)
    for row in range(len(scores)):
        # Two passes: a maximum without its place uses vector instructions.
        sums[row] = scale * scores[row] + sign * gains[row]
        largest = max(largest, sums[row])
    for row in range(len(sums)):
        if sums[row] == largest:
            return row
    return 0


def first_best(lists: MiraLists, weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the 1-best hypothesis of each sentence, the first in a tie."""
    best = np.empty(len(lists.offsets) - 1, dtype=np.int64)
    scores = np.empty(int(np.diff(lists.offsets).max(initial=0)), dtype=np.float32)
    _find_first_best(*lists[:6], weights, scores, best)
    return best


@kernel
def _find_first_best(
    n_dense: int,
    offsets: NDArray[np.int64],
    dense: NDArray[np.float32],
    indptr: NDArray[np.int64],
    columns: NDArray[np.int32],
    values: NDArray[np.float32],
    weights: NDArray[np.float32],
    buffer: NDArray[np.float32],
    best: NDArray[np.int64],
) -> None:
    for sentence in range(len(best)):
        start = offsets[sentence]
        scores = buffer[: offsets[sentence + 1] - start]
        score_rows(start, n_dense, dense, indptr, columns, values, weights, scores)
        first = 0
        for row in range(1, len(scores)):
            # Strictly, so that the first wins a tie, as in Moses.
            if scores[row] > scores[first]:
                first = row
        best[sentence] = start + first


NEGLIGIBLE = 1e-6
"""Largest difference of a sparse feature of both hope and fear that counts as 0."""


def visit_sentences(
    lists: MiraLists,
    settings: MiraSettings,
    state: MiraState,
    order: NDArray[np.int64],
    decisions: MiraDecisions,
    gains: NDArray[np.float32] | None = None,
) -> None:
    """Visit sentences in order: choose hope and fear, and update ``state``.

    Args:
        decisions: output, ``[n]``.
        gains: ``[statistics rows of the sentence]``, if ``order`` is one sentence; None: BLEU in
            the background.
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
    tuples: tuple[Any, ...] = (*lists, *settings, *state[:5], *decisions)
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
    sentence_weights: NDArray[np.float32],
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
    spreads: NDArray[np.float32],
    order: NDArray[np.int64],
    gains: NDArray[np.float32],
    is_bleu: bool,
    buffers: NDArray[np.float32],
    changed: NDArray[np.int32],
    changes: NDArray[np.float32],
) -> None:
    """Run ``visit_sentences``; it computes ``gains`` itself if ``is_bleu``.

    ``buffers``, ``changed`` and ``changes`` are working space for the longest sentence and for the
    most features that hope and fear can have.
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
        lowest = scores[0]
        for row in range(size):
            gain_of[row] = gains[row_of[start + row] - first_row]
            lowest = min(lowest, scores[row])
        hope, fear, model = choose_hypotheses(scores, gain_of, sums, safe_hope)
        spreads[visit] = scores[hope] - lowest
        hopes[visit], fears[visit] = start + hope, start + fear
        hope_gains[visit], fear_gains[visit] = gain_of[hope], gain_of[fear]
        margin = gain_of[hope] - gain_of[fear]
        losses[visit] = 0.0
        # With equal gains, nothing tells which of the two should win.
        occasions[visit] = hope != fear and gain_of[hope] > gain_of[fear]
        if not occasions[visit]:
            continue
        n = _subtract(
            start, size, hope, fear, n_dense, dense, indptr, columns, values, changed, changes
        )
        # As many steps as the sentence has weight, each at most the cap, move the weights as far.
        count = sentence_weights[sentence]
        losses[visit] = _move_weights(
            count * step_cap, active, low, high, weights, totals, updated, updates,
            changed, changes, n, margin,
        )  # fmt: skip
        # As in Moses, sentences without an update leave the background as it is.
        chosen = row_of[start + (model if model_background else hope)]
        for column in range(len(background)):
            background[column] *= decay
            background[column] += count * rows[chosen, column]


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

    Rows of ``hope`` and ``fear`` count from ``start``. Return the number of features.
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
            # As in Moses, a difference is negligible only where both have the feature.
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
    """Move the weights until hope scores ``margin`` above fear.

    The step is at most ``step_cap``.

    Args:
        columns, values: features of hope minus those of fear, ascending columns.
        margin: the gain of hope minus that of fear.

    Returns:
        The missing margin before the step; without a step it is not above 0.
    """
    step_cap, _, _, _, active, low, high = settings
    return _move_weights(
        step_cap, active, low, high, *state[:4], columns, values, len(values), margin
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
        # All features count in the score; only active ones can be moved, so only they count in the
        # norm.
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
            # Each weight stops at its limit; the step itself is that of the problem without bounds.
            if not low[column] <= weight + change <= high[column]:
                limit = low[column] if change < 0.0 else high[column]
                change = limit - weight
            # The total catches up with earlier updates.
            totals[column] += np.float32(updates[0] - updated[column]) * weight + change
            weights[column] = weight + change
            updated[column] = updates[0]
    return loss
