"""All pairs of an oracle and another hypothesis, in the sentences of a batch (Watanabe 2012).

The pairs are a product, and far more numerous than the hypotheses. So they are visited by number:
their differences ``phi = h(oracle) - h(other)`` are never stored, and whatever is summed over
pairs comes out as coefficients of the hypotheses. Of the multipliers of the simplex (see
``oro_dual.py``) few are not 0: the pairs that a solution violates most are collected, one a
sentence, and solved for, until none is violated more than the shared slack allows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.online.oro_dual import (
    EXACT,
    projected,
    shuffle,
    simplex_multipliers,
)

__all__ = ["Features", "Pairs", "pairs_in_box", "pairs_in_simplex", "violated"]

_ROUNDS = 1000
"""Times that pairs are collected at most."""


class Features(NamedTuple):
    """Active features of the hypotheses of a batch, on the columns of the batch.

    Attributes:
        dense: float64 ``[n_hyps, n_dense]``; 0 where a feature is not active.
        indptr: int64 ``[n_hyps + 1]``; further features by hypothesis (CSR).
        indices: int32; their columns, of which the dense ones are the first.
        data: float64.
    """

    dense: NDArray[np.float64]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float64]


class Pairs(NamedTuple):
    """The hypotheses of a batch, and which of them are oracles.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``; hypotheses of each sentence.
        oracles: int64; rows of the oracles, sentence by sentence.
        oracle_offsets: int64 ``[n_sentences + 1]``.
        is_oracle: bool ``[n_hyps]``.
        base: float64 ``[n_hyps]``; the share of features that are not active in the model score.
        features: the active ones.
    """

    offsets: NDArray[np.int64]
    oracles: NDArray[np.int64]
    oracle_offsets: NDArray[np.int64]
    is_oracle: NDArray[np.bool_]
    base: NDArray[np.float64]
    features: Features


@kernel
def violated(
    pairs: Pairs, scores: NDArray[np.float64], coefficients: NDArray[np.float64]
) -> tuple[int, int, float]:
    """The pairs of a margin below 1 (equation 9), counted by hypothesis.

    Args:
        pairs: the hypotheses.
        scores: float64 ``[n_hyps]``, by the model.
        coefficients: output, float64 ``[n_hyps]``: ``sum phi`` over the violated pairs is the
            combination of the hypotheses with them.

    Returns:
        Violated pairs, all pairs, and the sum of the hinge losses ``max(0, 1 - margin)``.
    """
    coefficients[:] = 0.0
    count = total = 0
    loss = 0.0
    for sentence in range(len(pairs.offsets) - 1):
        start, end = pairs.offsets[sentence], pairs.offsets[sentence + 1]
        for place in range(pairs.oracle_offsets[sentence], pairs.oracle_offsets[sentence + 1]):
            oracle = pairs.oracles[place]
            for other in range(start, end):
                if pairs.is_oracle[other]:
                    continue
                total += 1
                missing = 1.0 - (scores[oracle] - scores[other])
                if missing > 0.0:
                    count += 1
                    loss += missing
                    coefficients[oracle] += 1.0
                    coefficients[other] -= 1.0
    return count, total, loss


def pairs_in_box(
    pairs: Pairs,
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    bound: float,
    tolerance: float,
    sweeps: int,
    rng: np.random.Generator,
) -> tuple[NDArray[np.float64], float]:
    """Multipliers ``0 <= tau <= bound`` of pairs, for margins of 1, summed by hypothesis.

    Pairs that have the margin by ``scores`` do not take part, nor do pairs without a difference:
    no weights tell them apart.

    Args:
        pairs: the hypotheses.
        scores: float64 ``[n_hyps]``; all 0: every pair takes part.
        weights: float64 ``[n_columns]``, 0 where a feature is not active.
        bound: of each multiplier.
        tolerance: largest spread of the projected gradient at the end.
        sweeps: visits of each pair at most.
        rng: of the order of visits.

    Returns:
        ``(coefficients, total)``: float64 ``[n_hyps]``, so that ``sum tau phi`` is the
        combination of the hypotheses with them, and ``sum tau``.
    """
    coefficients = np.zeros(len(pairs.base))
    seed = np.uint64(rng.integers(1, 2**63))
    total = _descend(pairs, scores, weights.copy(), bound, tolerance, sweeps, seed, coefficients)
    return coefficients, float(total)


def pairs_in_simplex(
    pairs: Pairs, weights: NDArray[np.float64], bound: float
) -> NDArray[np.float64]:
    """Multipliers of all pairs with ``sum tau <= bound``, for margins of 1, exact.

    Args:
        pairs: the hypotheses.
        weights: float64 ``[n_columns]``, 0 where a feature is not active.
        bound: of the sum.

    Returns:
        float64 ``[n_hyps]``: ``sum tau phi`` is the combination of the hypotheses with them.
    """
    better = worse = np.zeros(0, dtype=np.int64)
    gains = multipliers = np.zeros(0)
    gram = np.zeros((0, 0))
    moved = weights
    for _ in range(_ROUNDS):
        slack = max(0.0, float((gains - gram @ multipliers).max(initial=0.0)))
        limit = slack + EXACT * max(1.0, np.abs(gains).max(initial=1.0))
        found = np.empty((2, len(pairs.offsets) - 1), dtype=np.int64)
        count = _most_violated(pairs, moved, limit, found)
        if not count:
            break
        better = np.append(better, found[0, :count])
        worse = np.append(worse, found[1, :count])
        gram = _grown(pairs, gram, better, worse, len(weights))
        gains = np.append(gains, 1.0 - _margins(pairs, better[-count:], worse[-count:], weights))
        start = np.append(multipliers, np.zeros(count))
        multipliers = simplex_multipliers(gram, gains, bound, start)
        moved = weights.copy()
        _add(pairs, better, worse, multipliers, moved)
    coefficients = np.zeros(len(pairs.base))
    np.add.at(coefficients, better, multipliers)
    np.subtract.at(coefficients, worse, multipliers)
    return coefficients


def _margins(
    pairs: Pairs, better: NDArray[np.int64], worse: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Margins of some pairs, fixed features included, float64 ``[n]``."""
    fixed = pairs.base[better] - pairs.base[worse]
    return np.asarray(fixed + _products(pairs, better, worse, weights))


def _grown(
    pairs: Pairs,
    gram: NDArray[np.float64],
    better: NDArray[np.int64],
    worse: NDArray[np.int64],
    n_columns: int,
) -> NDArray[np.float64]:
    """The products of the pairs' differences, of which ``gram`` has the first."""
    known, size = len(gram), len(better)
    grown = np.empty((size, size))
    grown[:known, :known] = gram
    for row in range(known, size):
        difference = np.zeros(n_columns)
        _add(pairs, better[row : row + 1], worse[row : row + 1], np.ones(1), difference)
        grown[row] = grown[:, row] = _products(pairs, better, worse, difference)
    return grown


@kernel
def _product(rows: Features, a: int, b: int, weights: NDArray[np.float64]) -> float:
    """``weights . (h_a - h_b)`` on active features.

    Every visit of a pair is one call. Four running sums, since each waits for its last addition.
    """
    dense, indptr, indices, data = rows
    n_dense = dense.shape[1]
    first = second = third = fourth = 0.0
    whole = n_dense - n_dense % 4
    for k in range(0, whole, 4):
        first += weights[k] * (dense[a, k] - dense[b, k])
        second += weights[k + 1] * (dense[a, k + 1] - dense[b, k + 1])
        third += weights[k + 2] * (dense[a, k + 2] - dense[b, k + 2])
        fourth += weights[k + 3] * (dense[a, k + 3] - dense[b, k + 3])
    for k in range(whole, n_dense):
        first += weights[k] * (dense[a, k] - dense[b, k])
    if len(data):
        for entry in range(indptr[a], indptr[a + 1]):
            second += weights[indices[entry]] * data[entry]
        for entry in range(indptr[b], indptr[b + 1]):
            third -= weights[indices[entry]] * data[entry]
    return (first + second) + (third + fourth)


@kernel
def _step(rows: Features, a: int, b: int, size: float, weights: NDArray[np.float64]) -> None:
    """Add ``size * (h_a - h_b)`` on active features to ``weights``, in place."""
    dense, indptr, indices, data = rows
    for k in range(dense.shape[1]):
        weights[k] += size * (dense[a, k] - dense[b, k])
    if len(data):
        for entry in range(indptr[a], indptr[a + 1]):
            weights[indices[entry]] += size * data[entry]
        for entry in range(indptr[b], indptr[b + 1]):
            weights[indices[entry]] -= size * data[entry]


@kernel
def _products(
    pairs: Pairs, better: NDArray[np.int64], worse: NDArray[np.int64], weights: NDArray[np.float64]
) -> NDArray[np.float64]:
    """``weights . phi`` of some pairs, float64 ``[n]``."""
    products = np.empty(len(better))
    for i in range(len(better)):
        products[i] = _product(pairs.features, better[i], worse[i], weights)
    return products


@kernel
def _add(
    pairs: Pairs,
    better: NDArray[np.int64],
    worse: NDArray[np.int64],
    multipliers: NDArray[np.float64],
    weights: NDArray[np.float64],
) -> None:
    """Add ``sum multipliers phi`` of some pairs to ``weights``, in place."""
    for i in range(len(better)):
        _step(pairs.features, better[i], worse[i], multipliers[i], weights)


@kernel
def _most_violated(
    pairs: Pairs, weights: NDArray[np.float64], limit: float, found: NDArray[np.int64]
) -> int:
    """Write each sentence's pair of the largest loss to ``found`` if that is above ``limit``.

    Args:
        pairs: the hypotheses.
        weights: float64 ``[n_columns]``.
        limit: of ``1 - margin``.
        found: output, int64 ``[2, n_sentences]``: oracles and others, from the left.

    Returns:
        How many there are.
    """
    dense, indptr, indices, data = pairs.features
    count = 0
    for sentence in range(len(pairs.offsets) - 1):
        start, end = pairs.offsets[sentence], pairs.offsets[sentence + 1]
        best = worst = -1
        highest, lowest = -np.inf, np.inf
        for row in range(start, end):
            score = pairs.base[row]
            for k in range(dense.shape[1]):
                score += weights[k] * dense[row, k]
            for entry in range(indptr[row], indptr[row + 1]):
                score += weights[indices[entry]] * data[entry]
            if pairs.is_oracle[row] and score < lowest:
                worst, lowest = row, score
            elif not pairs.is_oracle[row] and score > highest:
                best, highest = row, score
        if best >= 0 and worst >= 0 and 1.0 - (lowest - highest) > limit:
            found[0, count], found[1, count] = worst, best
            count += 1
    return count


@kernel
def _descend(
    pairs: Pairs,
    scores: NDArray[np.float64],
    weights: NDArray[np.float64],
    bound: float,
    tolerance: float,
    sweeps: int,
    seed: np.uint64,
    coefficients: NDArray[np.float64],
) -> float:
    """Dual coordinate descent with shrinking (Hsieh et al. 2008, algorithm 3).

    Pairs at a bound whose gradient holds them there are left out, until the others have
    converged; then all are visited again.

    Args:
        pairs, scores, bound, tolerance, sweeps: as ``pairs_in_box`` has them.
        weights: in and output, float64 ``[n_columns]``; ``sum tau phi`` is added.
        seed: of the order.
        coefficients: output, float64 ``[n_hyps]``, 0 before.

    Returns:
        The sum of the multipliers.
    """
    better, worse, squares = _violated_pairs(pairs, scores)
    base, features = pairs.base, pairs.features
    multipliers = np.zeros(len(squares))
    order = np.arange(len(squares))
    size = len(order)
    top, bottom = np.inf, -np.inf
    for _ in range(sweeps):
        least, greatest = np.inf, -np.inf
        seed = shuffle(order, size, seed)
        place = 0
        while place < size:
            pair = order[place]
            a, b = better[pair], worse[pair]
            slope = base[a] - base[b] - 1.0 + _product(features, a, b, weights)
            old = multipliers[pair]
            if (old <= 0.0 and slope > top) or (old >= bound and slope < bottom):
                size -= 1
                order[place], order[size] = order[size], pair
                continue
            place += 1
            inside = projected(slope, old, bound)
            least, greatest = min(least, inside), max(greatest, inside)
            if inside != 0.0:
                multipliers[pair] = min(max(old - slope / squares[pair], 0.0), bound)
                _step(features, a, b, multipliers[pair] - old, weights)
        if greatest - least <= tolerance:
            if size == len(order):
                break
            size = len(order)
            top, bottom = np.inf, -np.inf
        else:
            top = greatest if greatest > 0.0 else np.inf
            bottom = least if least < 0.0 else -np.inf
    total = 0.0
    for pair in range(len(multipliers)):
        total += multipliers[pair]
        coefficients[better[pair]] += multipliers[pair]
        coefficients[worse[pair]] -= multipliers[pair]
    return total


@kernel
def _violated_pairs(
    pairs: Pairs, scores: NDArray[np.float64]
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """Pairs that miss the margin and differ in an active feature, in rows.

    Returns:
        The oracles and the others, int64, and the squared norms of their differences, float64.
    """
    n_pairs = 0
    for sentence in range(len(pairs.offsets) - 1):
        n_oracles = pairs.oracle_offsets[sentence + 1] - pairs.oracle_offsets[sentence]
        width = pairs.offsets[sentence + 1] - pairs.offsets[sentence]
        n_pairs += n_oracles * (width - n_oracles)
    better = np.empty(n_pairs, dtype=np.int64)
    worse = np.empty(n_pairs, dtype=np.int64)
    squares = np.empty(n_pairs)
    count = 0
    used = pairs.features.indices
    scratch = np.zeros(used.max() + 1 if len(used) else 0)
    for sentence in range(len(pairs.offsets) - 1):
        for place in range(pairs.oracle_offsets[sentence], pairs.oracle_offsets[sentence + 1]):
            a = pairs.oracles[place]
            for b in range(pairs.offsets[sentence], pairs.offsets[sentence + 1]):
                if pairs.is_oracle[b] or scores[a] - scores[b] >= 1.0:
                    continue
                square = _square(pairs.features, a, b, scratch)
                if square > 0.0:
                    better[count], worse[count], squares[count] = a, b, square
                    count += 1
    return better[:count], worse[:count], squares[:count]


@kernel
def _square(rows: Features, a: int, b: int, scratch: NDArray[np.float64]) -> float:
    """``|h_a - h_b|^2`` on active features; ``scratch`` is all 0, before and after."""
    dense, indptr, indices, data = rows
    total = 0.0
    for k in range(dense.shape[1]):
        total += (dense[a, k] - dense[b, k]) ** 2
    for entry in range(indptr[a], indptr[a + 1]):
        scratch[indices[entry]] += data[entry]
    for entry in range(indptr[b], indptr[b + 1]):
        scratch[indices[entry]] -= data[entry]
    for row in (a, b):
        for entry in range(indptr[row], indptr[row + 1]):
            total += scratch[indices[entry]] ** 2
            scratch[indices[entry]] = 0.0
    return total
