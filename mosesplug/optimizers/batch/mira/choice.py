"""Choices of k-best MIRA: hope, fear and 1-best of a sentence's hypotheses.

Cherry & Foster (2012). Everything is computed in single precision and in the order of Moses'
``kbmira``. A background of thousands of words makes the gains so large that single precision ties
hypotheses which double precision separates; ties go to the first, so only the same arithmetic makes
the same choices.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import finite_kernel, kernel
from mosesplug.metrics.sentence_bleu import single_bleu
from mosesplug.optimizers.lists.arrangement import add_scores
from mosesplug.optimizers.lists.single_precision import MiraLists

__all__ = ["background_bleu", "choose_hypotheses", "first_best", "score_rows"]

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
    """Write ``weights . h`` of a sentence's hypotheses, summed in feature order.

    Args:
        start: row of the sentence's first hypothesis.
        n_dense, dense, indptr, columns, values: those of ``MiraLists``.
        weights: float32 ``[n_features]``.
        scores: output, float32 ``[hypotheses of the sentence]``.
    """
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

    This follows Chiang et al. (2008), see ``metrics.sentence_bleu``, in single precision.

    Args:
        rows: float32 ``[n, 9]``, statistics of ``metrics.Bleu``.
        background: float32 ``[9]``.
        gains: output, float32 ``[n]``.
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
    """Return hypotheses of the highest hope, fear and model score, in a tie the first.

    Args:
        scores, gains: float32 ``[hypotheses of the sentence]``.
        sums: float32, a buffer of the same size.
        safe_hope: limit the model score in the hope.
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
        sums[row] = scale * scores[row] + sign * gains[row]
        largest = max(largest, sums[row])
    for row in range(len(sums)):
        if sums[row] == largest:
            return row
    return 0


def first_best(lists: MiraLists, weights: NDArray[np.float32]) -> NDArray[np.int64]:
    """Return the 1-best hypothesis of each sentence, the first in a tie: int64."""
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
    """Write ``best`` for the caller; ``buffer`` is as long as the longest sentence."""
    for sentence in range(len(best)):
        start = offsets[sentence]
        scores = buffer[: offsets[sentence + 1] - start]
        score_rows(start, n_dense, dense, indptr, columns, values, weights, scores)
        first = 0
        for row in range(1, len(scores)):
            if scores[row] > scores[first]:
                first = row
        best[sentence] = start + first
