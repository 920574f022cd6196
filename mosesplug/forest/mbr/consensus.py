"""Decoding for the least expected loss, or for consensus, instead of the highest score.

Translations are compared with all that the model thinks likely, by BLEU:

- ``expected_bleu``: with each translation of an n-best list (Kumar & Byrne 2004);
- ``consensus_bleu``: with the n-grams to be expected of a graph or a list (DeNero et al. 2009);
- ``linear_gain``: by n-grams that probably occur (Tromble et al. 2008), for which
  ``best_linear_gain`` searches all translations of a graph.

Each is the gain of every candidate; the best is wanted, of equal ones the first.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.ngrams.bags import Bags
from mosesplug.forest.ngrams.posteriors import ngram_values
from mosesplug.forest.ngrams.reference_ngrams import ORDER
from mosesplug.forest.ngrams.split import SplitGraph
from mosesplug.forest.oracles.linear_bleu import LinearBleu
from mosesplug.forest.viterbi import viterbi
from mosesplug.kernels import kernel
from mosesplug.metrics import sentence_bleu_lin_och

__all__ = [
    "best_linear_gain",
    "consensus_bleu",
    "expected_bleu",
    "first_of_best",
    "linear_gain",
    "normalised",
]


_ROUNDING = 1e-12
"""Gains that differ by less, of 1 or of the gain itself if that is more, are equal."""


def normalised(scores: NDArray[np.float64]) -> NDArray[np.float64]:
    """Probabilities in proportion to ``exp`` of scores, float64 ``[n]``; one at least is finite."""
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def first_of_best(gains: NDArray[np.float64]) -> int:
    """The place of the largest gain, the first of equal ones, which rounding does not tell apart.

    Gains are sums over translations or n-grams, each in its own order: what is equal comes out
    equal up to the last digits only.

    Args:
        gains: float64 ``[n]``, one at least; they may be -inf.
    """
    best = gains.max()
    return int(np.argmax(gains >= best - _ROUNDING * max(1.0, abs(best))))


def expected_bleu(candidates: Bags, probabilities: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the BLEU+1 to be expected of each translation if another one is the reference.

    Minimum Bayes risk over a list (Kumar & Byrne 2004) with the loss of 1 minus BLEU
    of the sentence, as Moses' ``-mbr`` has it: one is added to matches and totals of the orders
    above 1 (``metrics.sentence_bleu_lin_och``). It takes time in the square of the list's length.

    Args:
        candidates: the translations.
        probabilities: float64 ``[n]``.

    Returns:
        float64 ``[n]``, in 0 to 1.
    """
    return _pairwise(
        candidates.lengths,
        candidates.offsets,
        candidates.ngrams,
        candidates.counts,
        candidates.orders,
        probabilities,
    )


def consensus_bleu(
    candidates: Bags, expected: NDArray[np.float64], expected_length: float
) -> NDArray[np.float64]:
    """Return the logarithm of BLEU of each translation against expected counts of n-grams.

    As a count is clipped by that of a reference, so it is by its expectation (DeNero et al. 2009,
    section 2); the length to be expected is that of the reference. Orders of which a translation
    is too short to have an n-gram are left out of its mean.

    Args:
        candidates: the translations.
        expected: float64 ``[n_ngrams]``; how often each n-gram is to be expected.
        expected_length: how many words are.

    Returns:
        float64 ``[n]``, 0 at most; -inf for one that is empty or shares nothing.
    """
    return _clipped(
        candidates.lengths,
        candidates.offsets,
        candidates.ngrams,
        candidates.counts,
        candidates.orders,
        expected,
        expected_length,
    )


def linear_gain(
    candidates: Bags, occurs: NDArray[np.float64], gains: LinearBleu
) -> NDArray[np.float64]:
    """Return the linear BLEU to be expected of each translation (Tromble et al. 2008).

    Args:
        candidates: the translations.
        occurs: float64 ``[n_ngrams]``; how likely each n-gram occurs in a reference.
        gains: what words and n-grams are worth.

    Returns:
        float64 ``[n]``.
    """
    worth = (_worth(candidates.orders, occurs, gains)[candidates.ngrams]) * candidates.counts
    rows = np.repeat(np.arange(len(candidates)), np.diff(candidates.offsets))
    sums = np.bincount(rows, weights=worth, minlength=len(candidates))
    return (gains.word * candidates.lengths + sums).astype(np.float64, copy=False)


def best_linear_gain(
    graph: SplitGraph, occurs: NDArray[np.float64], gains: LinearBleu
) -> NDArray[np.int64]:
    """Return the derivation of the highest linear gain in a graph, int64; see ``linear_gain``.

    Args:
        graph: split such that all n-grams have numbers.
        occurs: float64 ``[n_ngrams]``.
        gains: what words and n-grams are worth.

    Returns:
        Its edges, those of the graph that was split; each before those of its tails.

    Raises:
        DataError: the derivation has more than ten million edges.
    """
    values = ngram_values(graph, _worth(graph.orders, occurs, gains))
    values += gains.word * graph.totals[:, 0]
    return graph.origins[viterbi(graph, values).edges]


def _worth(
    orders: NDArray[np.int32], occurs: NDArray[np.float64], gains: LinearBleu
) -> NDArray[np.float64]:
    """Return what each n-gram is worth, float64 ``[n_ngrams]``."""
    return np.concatenate([[0.0], gains.ngrams])[orders] * occurs


@kernel
def _pairwise(
    lengths: NDArray[np.int64],
    offsets: NDArray[np.int64],
    ngrams: NDArray[np.int32],
    counts: NDArray[np.int32],
    orders: NDArray[np.int32],
    probabilities: NDArray[np.float64],
) -> NDArray[np.float64]:
    n = len(lengths)
    expected = np.zeros(n)
    limits = np.zeros(len(orders), dtype=np.int32)
    statistics = np.empty((n, 2 * ORDER + 1), dtype=np.int32)
    for reference in range(n):
        if probabilities[reference] == 0.0:
            continue
        for entry in range(offsets[reference], offsets[reference + 1]):
            limits[ngrams[entry]] = counts[entry]
        for row in range(n):
            statistics[row, 2 * ORDER] = lengths[reference]
            for order in range(ORDER):
                statistics[row, 2 * order] = 0
                statistics[row, 2 * order + 1] = max(lengths[row] - order, 0)
            for entry in range(offsets[row], offsets[row + 1]):
                limit = limits[ngrams[entry]]
                if limit > 0:
                    statistics[row, 2 * orders[ngrams[entry]] - 2] += min(limit, counts[entry])
        expected += probabilities[reference] * sentence_bleu_lin_och(statistics)
        for entry in range(offsets[reference], offsets[reference + 1]):
            limits[ngrams[entry]] = 0
    return expected


@kernel
def _clipped(
    lengths: NDArray[np.int64],
    offsets: NDArray[np.int64],
    ngrams: NDArray[np.int32],
    counts: NDArray[np.int32],
    orders: NDArray[np.int32],
    expected: NDArray[np.float64],
    expected_length: float,
) -> NDArray[np.float64]:
    scores = np.full(len(lengths), -np.inf)
    matches = np.empty(ORDER)
    for row in range(len(lengths)):
        length = lengths[row]
        matches[:] = 0.0
        for entry in range(offsets[row], offsets[row + 1]):
            ngram = ngrams[entry]
            matches[orders[ngram] - 1] += min(np.float64(counts[entry]), expected[ngram])
        longest = min(length, ORDER)
        if longest == 0 or matches[:longest].min() <= 0.0:
            continue
        score = 0.0
        for order in range(longest):
            score += math.log(matches[order] / (length - order))
        scores[row] = score / longest + min(0.0, 1.0 - expected_length / length)
    return scores
