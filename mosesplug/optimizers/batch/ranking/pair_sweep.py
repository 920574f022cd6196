"""Sums over all close pairs of a list's hypotheses, without visiting each pair.

A list of ``n`` hypotheses has up to ``n (n - 1) / 2`` pairs of a better and a worse one. A ranking
loss and its derivatives require sums, for each hypothesis, over the partners whose model score is
within a margin. Hypotheses are visited in the order of their scores, and those within the margin
are entered into a tree of counts by their rank in the metric (Fenwick 1994): a sum over all better
or all worse ones takes ``log n`` steps (Joachims 2006; Airola et al. 2011; Lee & Lin 2014).
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.lists.arrangement import longest_sentence

__all__ = ["close_pairs", "sort_lists"]


def sort_lists(offsets: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows of every sentence by ascending score, int64 ``[n_hyps]``."""
    order = np.empty(len(scores), dtype=np.int64)
    # Sorting each list with NumPy is faster than sorting all by two keys; a kernel compiles slowly.
    for start, end in itertools.pairwise(offsets.tolist()):
        order[start:end] = start + np.argsort(scores[start:end], kind="stable")
    return order


@kernel
def close_pairs(
    offsets: NDArray[np.int64],
    order: NDArray[np.int64],
    scores: NDArray[np.float64],
    gains: NDArray[np.float64],
    levels: NDArray[np.int64],
    above: NDArray[np.int64],
    below: NDArray[np.int64],
    margin: float,
    by_gap: bool,
    values: NDArray[np.float64],
    sums: NDArray[np.float64],
) -> None:
    """Sum over the pairs whose better hypothesis does not lead by ``margin``.

    With the partners ``j`` of hypothesis ``i``, and ``c`` the pair's weight (1, or its difference
    of gains), the columns of ``sums`` are: ``sum c`` and ``sum c values[j]`` over worse partners,
    then the same over better partners. A pair counts if ``s_better < s_worse + margin``.

    Args:
        offsets: int64 ``[n_sentences + 1]``.
        order: int64 ``[n_hyps]``, of ``sort_lists``.
        scores: float64 ``[n_hyps]``, the model's.
        gains: float64 ``[n_hyps]``.
        levels: int64 ``[n_hyps]``, rank of the gain in its sentence from 0; ties share it.
        above: int64 ``[n_hyps]``, the least level that is better than this one.
        below: int64 ``[n_hyps]``, number of levels, from 0 on, that are worse than this one.
        margin: required lead of the better one.
        by_gap: whether a pair's weight is its difference of gains, or 1.
        values: float64 ``[n_hyps]``.
        sums: output, float64 ``[n_hyps, 4]``.
    """
    tree = np.zeros((longest_sentence(offsets) + 1, 4))
    for sentence in range(len(offsets) - 1):
        start, end = offsets[sentence], offsets[sentence + 1]
        if start == end:
            continue
        n_levels = 1 + levels[start:end].max()
        for side in range(2):
            worse_side = side == 0
            tree[: n_levels + 1] = 0.0
            entered = 0
            for place in range(end - start):
                # Worse partners come in as scores fall, better ones as they rise.
                row = order[end - 1 - place] if worse_side else order[start + place]
                while entered < end - start:
                    other = order[end - 1 - entered] if worse_side else order[start + entered]
                    if worse_side:
                        if not scores[row] < scores[other] + margin:
                            break
                        level = levels[other]
                    else:
                        if not scores[other] < scores[row] + margin:
                            break
                        level = n_levels - 1 - levels[other]
                    _enter(tree, n_levels, level, values[other], gains[other], by_gap)
                    entered += 1
                reach = below[row] if worse_side else n_levels - above[row]
                count, total = _total(tree, reach, gains[row], by_gap)
                sign = 1.0 if worse_side or not by_gap else -1.0
                sums[row, 2 * side] = sign * count
                sums[row, 2 * side + 1] = sign * total


@kernel
def _enter(
    tree: NDArray[np.float64], n_levels: int, level: int, value: float, gain: float, by_gap: bool
) -> None:
    """Count a hypothesis of that level; columns: 1, value, gain, gain times value."""
    node = level + 1
    while node <= n_levels:
        tree[node, 0] += 1.0
        tree[node, 1] += value
        if by_gap:
            tree[node, 2] += gain
            tree[node, 3] += gain * value
        node += node & -node


@kernel
def _total(tree: NDArray[np.float64], reach: int, gain: float, by_gap: bool) -> tuple[float, float]:
    """Return sums of weights and of weighted values over the first ``reach`` levels."""
    count = total = gains = weighted = 0.0
    node = reach
    while node > 0:
        count += tree[node, 0]
        total += tree[node, 1]
        if by_gap:
            gains += tree[node, 2]
            weighted += tree[node, 3]
        node -= node & -node
    if by_gap:
        return gain * count - gains, gain * total - weighted
    return count, total
