"""Ranking losses over all pairs of different gains, in ``O(n log n)`` a list.

With ``d = s_better - s_worse`` of a pair and its weight ``c``, the losses follow from sums

    P1(m) = sum c max(0, m - d)        P2(m) = sum c max(0, m - d)^2

over all pairs: the hinge loss is ``P1(1)``, the squared hinge loss ``P2(1)``, and the hinge loss
with its corner rounded over a width ``h`` is ``(P2(1) - P2(1 - h)) / 2h``. The squared one is that
of Lee and Lin's (2014) linear rankSVM.

A list of ``n`` hypotheses has up to ``n (n - 1) / 2`` pairs of a better and a worse one. A ranking
loss and its derivatives require sums, for each hypothesis, over the partners whose model score is
within a margin. Hypotheses are visited in the order of their scores, and those within the margin
are entered into a tree of counts by their rank in the metric (Fenwick 1994): a sum over all better
or all worse ones takes ``log n`` steps (Joachims 2006; Airola et al. 2011; Lee & Lin 2014).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Offsets, Scores, SentenceValues
from mosesplug.kernels import kernel
from mosesplug.optimizers.batch.ranking.hinge import HingeLosses
from mosesplug.optimizers.batch.ranking.linear import LossCurve, ScoreLoss
from mosesplug.optimizers.lists.arrangement import longest_sentence


def sort_lists(offsets: NDArray[np.int64], scores: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return the rows of every sentence by ascending score, int64 ``[n_hyps]``."""
    order = np.empty(len(scores), dtype=np.int64)
    # Sorting each list with NumPy is faster than sorting all by two keys; a kernel compiles slowly.
    for start, end in itertools.pairwise(offsets.tolist()):
        order[start:end] = start + np.argsort(scores[start:end], kind="stable")
    return order


@kernel
def close_pairs(
    offsets: Offsets,
    order: NDArray[np.int64],
    scores: Scores,
    gains: Scores,
    levels: NDArray[np.int64],
    above: NDArray[np.int64],
    below: NDArray[np.int64],
    margin: float,
    by_gap: bool,
    values: Scores,
    sums: NDArray[np.float64],
) -> None:
    """Sum over the pairs whose better hypothesis does not lead by ``margin``.

    With the partners ``j`` of hypothesis ``i``, and ``c`` the pair's weight (1, or its difference
    of gains), the columns of ``sums`` are: ``sum c`` and ``sum c values[j]`` over worse partners,
    then the same over better partners. A pair counts if ``s_better < s_worse + margin``.

    Args:
        order: int64 ``[n_hyps]``, of ``sort_lists``.
        scores: the model's.
        levels: int64 ``[n_hyps]``, rank of the gain in its sentence from 0; ties share it.
        above: int64 ``[n_hyps]``, the least level that is better than this one.
        below: int64 ``[n_hyps]``, number of levels, from 0 on, that are worse than this one.
        margin: required lead of the better one.
        by_gap: whether a pair's weight is its difference of gains, or 1.
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


@dataclass(frozen=True)
class AllPairs:
    """The pairs of all lists, by gain.

    Attributes:
        levels: int64 ``[n_hyps]``, rank of the gain in its sentence, from 0.
        above: int64 ``[n_hyps]``, the least level that makes a pair with this one as the worse.
        below: int64 ``[n_hyps]``, levels from 0 on that make a pair with this one as the better.
        by_gap: whether a pair's weight is its difference of gains, or 1.
        shares: factor of the pairs of its sentence.
        total: sum of the weights of all pairs, shares included.
        n_pairs: number of pairs.
    """

    offsets: Offsets
    gains: Scores
    levels: NDArray[np.int64]
    above: NDArray[np.int64]
    below: NDArray[np.int64]
    by_gap: bool
    shares: Scores
    total: float
    n_pairs: int

    def sums(
        self, order: NDArray[np.int64], scores: Floats, margin: float, values: Floats
    ) -> Floats:
        """Return ``close_pairs`` sums over pairs closer than ``margin``, times shares."""
        sums = np.empty((len(scores), 4))
        close_pairs(
            self.offsets, order, scores, self.gains, self.levels, self.above, self.below,
            margin, self.by_gap, values, sums,
        )  # fmt: skip
        sums *= self.shares[:, None]
        return sums


def all_pairs(
    offsets: Offsets,
    gains: Scores,
    *,
    minimum_difference: float = 0.0,
    by_gap: bool = False,
    sentence_weights: SentenceValues | None = None,
) -> AllPairs:
    """Return the pairs of hypotheses of a sentence with different gains.

    The weights of a sentence's pairs add up to the weight of the sentence.

    Args:
        minimum_difference: the minimum difference of the gains of a pair; equal ones are never a
            pair.
        by_gap: whether a pair's weight is proportional to its difference of gains.
        sentence_weights: None: 1 each.
    """
    offsets = np.array(offsets, dtype=np.int64)
    gains = np.array(gains, dtype=np.float64)
    # A difference of exactly the minimum must count, however it is rounded.
    least = minimum_difference * (1.0 - 1e-9)
    levels, above, below = np.zeros((3, len(gains)), dtype=np.int64)
    for start, end in itertools.pairwise(offsets.tolist()):
        distinct, own = np.unique(gains[start:end], return_inverse=True)
        levels[start:end] = own
        higher = np.searchsorted(distinct, distinct + least, side="left")
        lower = np.searchsorted(distinct, distinct - least, side="right")
        above[start:end] = np.maximum(higher[own], own + 1)
        below[start:end] = np.minimum(lower[own], own)
    order, zeros = np.arange(len(gains)), np.zeros(len(gains))
    pairs = AllPairs(offsets, gains, levels, above, below, False, zeros + 1.0, 0.0, 0)
    counts = pairs.sums(order, zeros, 1.0, zeros)[:, 0]
    pairs = AllPairs(offsets, gains, levels, above, below, by_gap, zeros + 1.0, 0.0, 0)
    weights = pairs.sums(order, zeros, 1.0, zeros)[:, 0]
    sentences = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    of_sentence = np.bincount(sentences, weights, len(offsets) - 1)
    weight = 1.0 if sentence_weights is None else sentence_weights
    shares = (weight / np.where(of_sentence > 0.0, of_sentence, 1.0))[sentences]
    return AllPairs(
        offsets, gains, levels, above, below, by_gap, shares,
        float(weights @ shares), int(counts.sum()),
    )  # fmt: skip


def all_pairs_hinge(pairs: AllPairs) -> HingeLosses:
    """Return ``sum c max(0, 1 - d)``."""

    def exact(scores: Floats) -> float:
        scores = _center(pairs.offsets, scores)
        return _first(pairs, sort_lists(pairs.offsets, scores), scores, 1.0)

    def rounded(width: float) -> ScoreLoss:
        def loss(scores: Floats) -> LossCurve:
            scores = _center(pairs.offsets, scores)
            order = sort_lists(pairs.offsets, scores)
            far = _second(pairs, order, scores, 1.0)
            near = _second(pairs, order, scores, 1.0 - width)
            share = 0.5 / width
            return LossCurve(
                share * (far.value - near.value),
                share * (far.derivatives - near.derivatives),
                lambda vector: share * (far.product(vector) - near.product(vector)),
            )

        return loss

    def pulled(width: float, scores: Floats) -> float:
        scores = _center(pairs.offsets, scores)
        order = sort_lists(pairs.offsets, scores)
        far, near = (_first(pairs, order, scores, margin) for margin in (1.0, 1.0 - width))
        return (far - near) / width

    return HingeLosses(exact, rounded, pulled)


def squared_hinge(pairs: AllPairs) -> ScoreLoss:
    """Return ``sum c max(0, 1 - d)^2`` (Lee & Lin 2014)."""

    def loss(scores: Floats) -> LossCurve:
        scores = _center(pairs.offsets, scores)
        order = sort_lists(pairs.offsets, scores)
        return _second(pairs, order, scores, 1.0)

    return loss


def _first(pairs: AllPairs, order: NDArray[np.int64], scores: Floats, margin: float) -> float:
    """Return ``P1`` at a margin; each pair counts once, with its better hypothesis."""
    sums = pairs.sums(order, scores, margin, scores)
    return margin * float(sums[:, 0].sum()) + float(scores @ (sums[:, 2] - sums[:, 0]))


def _second(pairs: AllPairs, order: NDArray[np.int64], scores: Floats, margin: float) -> LossCurve:
    """Return ``P2`` at a margin.

    As a sum of squares of ``m - d``, with ``d`` linear in the scores, ``P2 = m P1 + scores .
    gradient / 2``.
    """
    sums = pairs.sums(order, scores, margin, scores)
    count, total, count_better, total_better = sums.T
    pull = count_better - count
    first = margin * float(count.sum()) + float(scores @ pull)
    derivatives = 2.0 * (margin * pull + scores * (count + count_better) - (total + total_better))
    value = margin * first + 0.5 * float(scores @ derivatives)

    def product(vector: Floats) -> Floats:
        vector = _center(pairs.offsets, vector)
        own = pairs.sums(order, scores, margin, vector)
        return np.asarray(2.0 * (vector * (own[:, 0] + own[:, 2]) - own[:, 1] - own[:, 3]))

    return LossCurve(value, derivatives, product)


def _center(offsets: NDArray[np.int64], scores: Floats) -> Floats:
    """Return scores minus their mean in each sentence; losses of pairs ignore it."""
    widths = np.diff(offsets)
    filled = widths > 0
    means = np.add.reduceat(scores, offsets[:-1][filled]) / widths[filled]
    return np.asarray(scores - np.repeat(means, widths[filled]))
