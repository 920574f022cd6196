"""Smoothed BLEU variants for single sentences, each named after its authors.

A sentence rarely has a match of every order, and unsmoothed BLEU is then 0. Each variant takes
the statistics of ``Bleu`` row by row. Their small differences change results, so a
learner must name its variant. With match ``m_n``, total ``t_n``, output length ``c`` and reference
length ``r`` of one sentence:

- Lin and Och (2004): ``(m_n + 1) / (t_n + 1)`` for ``n > 1``, and ``m_1 / t_1``.
- Moses: ``(m_n + s) / (t_n + s)`` for every ``n``, by default ``s`` = 1.
- Nakov et al. (2012): like Moses, but the brevity penalty compares ``c`` with ``r + 1``.
- Chiang et al. (2008), as Moses' ``kbmira`` has it: no constant; a background of recent output is
  added to the statistics, and the score (``single_bleu``) is multiplied by the reference length of
  both (by the paper: of the source), so that long sentences weigh more.

``single_bleu`` and ``smoothed_row`` are kernels and can be called from other kernels.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import inlined_kernel, lean_kernel, read_only
from mosesplug.metrics.plain import ORDER, exponentials

LIN_OCH = (0.0, 1.0, 0.0)
"""Counts that BLEU+1 adds: of words, of longer n-grams, and to the reference length."""

_ADDED = {"lin-och": LIN_OCH, "moses": (1.0, 1.0, 0.0), "nakov": (1.0, 1.0, 1.0)}
"""The counts that each variant adds."""


@inlined_kernel
def smoothed_row(row: NDArray[np.float64], words: float, longer: float, reference: float) -> float:
    """Return BLEU of one row with constants added.

    Args:
        row: ``[9]``, the statistics of a sentence.
        words: added to match and total of order 1.
        longer: added to match and total of the orders above 1.
    """
    product = 1.0
    for order in range(ORDER):
        added = words if order == 0 else longer
        match = row[2 * order] + added
        if not match > 0.0:
            return 0.0
        product *= match / (row[2 * order + 1] + added)
    score = math.sqrt(math.sqrt(product))
    length = row[1]
    reference_length = row[2 * ORDER] + reference
    if reference_length <= length:
        return score
    if length == 0.0:
        return 0.0
    return score * math.exp(1.0 - reference_length / length)


_AT_ONCE = 1 << 16
"""Rows that are converted at once: statistics of many hypotheses are never copied as a whole."""


def _score_rows(
    statistics: NDArray[Any], words: float, longer: float, reference: float
) -> NDArray[np.float64]:
    """Return ``smoothed_row`` of each row of ``statistics [m, 9]``, float64 ``[m]``."""
    scores = np.empty(len(statistics), dtype=np.float64)
    for first in range(0, len(statistics), _AT_ONCE):
        rows = slice(first, first + _AT_ONCE)
        part = read_only(statistics[rows], np.float64)
        _fill_scores(part, words, longer, reference, scores[rows])
    return scores


@lean_kernel
def _fill_scores(
    statistics: NDArray[np.float64],
    words: float,
    longer: float,
    reference: float,
    scores: NDArray[np.float64],
) -> None:
    """Write ``smoothed_row`` of each row into ``scores``."""
    for row in range(len(statistics)):
        scores[row] = smoothed_row(statistics[row], words, longer, reference)


def smoothed_rows(statistics: NDArray[Any], smoothing: str) -> NDArray[np.float64]:
    """Return ``smoothed_row`` of each row ``[m, 9]``, without compiling it."""
    words, longer, added = _ADDED[smoothing]
    columns = np.asarray(statistics, dtype=np.float64).T
    product = np.ones(len(statistics))
    some = np.ones(len(statistics), dtype=np.bool_)
    for order in range(ORDER):
        constant = words if order == 0 else longer
        match = columns[2 * order] + constant
        some &= match > 0.0
        total = np.where(some, columns[2 * order + 1] + constant, 1.0)
        product *= match / total
    length, reference = columns[1], columns[2 * ORDER] + added
    scores = np.zeros(len(statistics))
    scores[some] = np.sqrt(np.sqrt(product[some]))
    short = some & ~(reference <= length)
    scores[short & (length == 0.0)] = 0.0
    short &= length != 0.0
    scores[short] *= exponentials(1.0 - reference[short] / length[short])
    return scores


def sentence_bleu_lin_och(statistics: NDArray[Any]) -> NDArray[np.float64]:
    """Return BLEU+1 of each row of ``statistics [m, 9]``, float64 ``[m]``, in 0 to 1.

    Lin and Och (2004), "ORANGE: a method for evaluating automatic evaluation metrics for machine
    translation": one is added to match and total of the orders above 1. A sentence
    without a single matching word scores 0.
    """
    return _score_rows(statistics, *LIN_OCH)


def sentence_bleu_moses(statistics: NDArray[Any], smoothing: float = 1.0) -> NDArray[np.float64]:
    """Return Moses' sentence BLEU of each row ``[m, 9]``: float64 ``[m]``, in 0 to 1.

    Moses' ``sentence-bleu`` prints this score, and its ``pro`` ranks by it: ``smoothing`` is
    added to match and total of every order. An empty hypothesis scores 0, unless the reference
    is empty too.
    """
    return _score_rows(statistics, smoothing, smoothing, 0.0)


def sentence_bleu_nakov(statistics: NDArray[Any]) -> NDArray[np.float64]:
    """Return BLEU+1 with smoothed brevity of each row of ``statistics [m, 9]``.

    The result is float64 ``[m]``. Nakov, Guzmán and Vogel (2012), "Optimizing for sentence-level
    BLEU+1 yields short translations": smoothing the precisions alone favors short output, so one
    is also added to the reference length. Moses' ``pro --smooth-brevity-penalty`` ranks by it. A
    perfect translation scores below 1.
    """
    return _score_rows(statistics, *_ADDED["nakov"])


@lean_kernel
def single_bleu(totals: NDArray[np.float32]) -> float:
    """Return BLEU of statistics of ``metrics.Bleu``, ``[9]``, in single precision.

    With a background of thousands of words, the scores of hypotheses become so large that some tie
    in single precision but not in double precision. Only the arithmetic of Moses' ``kbmira``, in
    its order of operations, makes the same choices.
    """
    log_bleu = np.float32(0.0)
    for column in range(0, 8, 2):
        if totals[column] == 0.0:
            return 0.0
        log_bleu += math.log(totals[column]) - math.log(totals[column + 1])
    log_bleu /= np.float32(4.0)
    brevity = np.float32(1.0) - totals[8] / totals[1]
    if brevity < 0.0:
        log_bleu += brevity
    return math.exp(log_bleu)
