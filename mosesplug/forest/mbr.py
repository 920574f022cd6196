"""Gains of minimum Bayes risk and consensus decoding.

These criteria choose the translation with the highest expected BLEU under the model distribution
instead of the highest model score:

- ``expected_bleu``: BLEU+1 against each translation of an n-best list (Kumar & Byrne 2004);
- ``consensus_bleu``: BLEU against the expected n-gram counts of a graph or a list (DeNero et al.
  2009);
- ``linear_gain``: linear BLEU by the occurrence probabilities of n-grams (Tromble et al. 2008);
  ``best_linear_gain`` searches all translations of a graph.

Each function returns the gain of every candidate. The highest gain wins, and the first one in a
tie.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.forest.inside_outside import posterior
from mosesplug.forest.k_best import k_best, translations
from mosesplug.forest.ngrams.posteriors import (
    expected_counts,
    ngram_values,
    occurrence_probabilities,
)
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, ORDER
from mosesplug.forest.ngrams.split import SplitGraph, split
from mosesplug.forest.ngrams.table import Bags, count_bags, count_bags_in
from mosesplug.forest.pruning import prune_to_beam
from mosesplug.forest.viterbi import viterbi
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel, read_only
from mosesplug.metrics.bleu.linear import LinearBleu
from mosesplug.metrics.bleu.sentence import LIN_OCH, smoothed_row

_ROUNDING = 1e-12
"""Gains are tied if they differ by less than this, relative to max(1, gain)."""


def softmax(scores: Floats) -> Floats:
    """Return the softmax of scores, float64 ``[n]``; at least one score is finite."""
    weights = np.exp(scores - scores.max())
    return np.asarray(weights / weights.sum())


def find_best(gains: Floats) -> int:
    """Return the index of the largest gain; the first one wins ties up to rounding.

    Gains are sums in different orders, so that tied gains can differ in their last digits.

    Args:
        gains: float64 ``[n]``, at least one; may be -inf.
    """
    best = gains.max()
    return int(np.argmax(gains >= best - _ROUNDING * max(1.0, abs(best))))


def expected_bleu(candidates: Bags, probabilities: Floats) -> Floats:
    """Return the expected BLEU+1 of each translation with the others as references.

    This is minimum Bayes risk over a list (Kumar & Byrne 2004). The loss is 1 minus sentence BLEU
    as in Moses' ``-mbr``: one is added to matches and totals of the orders above 1
    (``metrics.sentence_bleu_lin_och``). The time is quadratic in the length of the list.

    Args:
        probabilities: float64 ``[n]``; probability of each translation.

    Returns:
        float64 ``[n]``, in 0 to 1.
    """
    return _pairwise(
        candidates.lengths,
        candidates.offsets,
        candidates.ngrams,
        candidates.counts,
        read_only(candidates.orders),
        probabilities,
    )


def consensus_bleu(candidates: Bags, expected: Floats, expected_length: float) -> Floats:
    """Return the logarithm of BLEU of each translation against expected n-gram counts.

    The expected counts and the expected length replace those of a reference; n-gram counts are
    clipped by expected counts (DeNero et al. 2009, section 2). If a translation is too short for
    n-grams of some order, its mean omits that order.

    Args:
        expected: float64 ``[n_ngrams]``; expected count of each n-gram.

    Returns:
        float64 ``[n]``, at most 0; -inf for a translation that is empty or has no match.
    """
    return _clip(
        candidates.lengths,
        candidates.offsets,
        candidates.ngrams,
        candidates.counts,
        read_only(candidates.orders),
        expected,
        expected_length,
    )


def linear_gain(candidates: Bags, occurs: Floats, gains: LinearBleu) -> Floats:
    """Return the expected linear BLEU of each translation (Tromble et al. 2008).

    Args:
        occurs: float64 ``[n_ngrams]``; probability that each n-gram occurs in a reference.

    Returns:
        float64 ``[n]``.
    """
    by_ngram = (
        (_ngram_gains(candidates.orders, occurs, gains)[candidates.ngrams]) * candidates.counts
    )
    rows = np.repeat(np.arange(len(candidates)), np.diff(candidates.offsets))
    sums = np.bincount(rows, weights=by_ngram, minlength=len(candidates))
    return (gains.word * candidates.lengths + sums).astype(np.float64, copy=False)


def best_linear_gain(graph: SplitGraph, occurs: Floats, gains: LinearBleu) -> Ints:
    """Return the derivation with the highest linear gain; see ``linear_gain``.

    Args:
        graph: a graph split by ``split``, in which all n-grams have numbers.
        occurs: float64 ``[n_ngrams]``; probability that each n-gram occurs.

    Returns:
        int64; edges of the original graph, each before those of its tails.
    """
    values = ngram_values(graph, _ngram_gains(graph.orders, occurs, gains))
    values += gains.word * graph.totals[:, 0]
    return graph.origins[viterbi(graph, values).edges]


def _ngram_gains(orders: Ints32, occurs: Floats, gains: LinearBleu) -> Floats:
    """Return the gain of each n-gram, float64 ``[n_ngrams]``."""
    return np.concatenate([[0.0], gains.ngrams])[orders] * occurs


@kernel
def _pairwise(
    lengths: Ints,
    offsets: Ints,
    ngrams: Ints32,
    counts: Ints32,
    orders: Ints32,
    probabilities: Floats,
) -> Floats:
    n = len(lengths)
    expected = np.zeros(n)
    limits = np.zeros(len(orders), dtype=np.int32)
    statistics = np.empty((n, 2 * ORDER + 1))
    words, longer, added = LIN_OCH
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
        for row in range(n):
            bleu = smoothed_row(statistics[row], words, longer, added)
            expected[row] += probabilities[reference] * bleu
        for entry in range(offsets[reference], offsets[reference + 1]):
            limits[ngrams[entry]] = 0
    return expected


@kernel
def _clip(
    lengths: Ints,
    offsets: Ints,
    ngrams: Ints32,
    counts: Ints32,
    orders: Ints32,
    expected: Floats,
    expected_length: float,
) -> Floats:
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


@dataclass(frozen=True)
class Criterion:
    """The criterion by which a translation is chosen.

    Attributes:
        kind: ``consensus`` (BLEU of expected counts), ``list`` (expected BLEU over a list) or
            ``lattice`` (linear BLEU); see the module.
        scale: factor of the model scores; 0 gives all derivations the same probability.
        size: number of best translations of a graph to choose from; ``lattice`` chooses from all.
        beam: prune graphs by max-marginals with this beam of log-probabilities; None disables
            pruning.
        gains: gains of words and n-grams for ``lattice``.
    """

    kind: Literal["consensus", "list", "lattice"]
    scale: float
    size: int
    beam: float | None
    gains: LinearBleu


@dataclass(frozen=True)
class Decision:
    """The chosen translation.

    Attributes:
        words: words of the translation, without ``<s>`` and ``</s>``.
        is_best: whether the model's best derivation has the same words.
    """

    words: tuple[bytes, ...]
    is_best: bool


def decide_in_graph(graph: Hypergraph, weights: Floats, criterion: Criterion) -> Decision:
    """Choose a translation of a graph.

    Args:
        weights: float64 ``[n_columns]``.

    Raises:
        DataError: no derivation has a finite score, or the graph is too large to be split.
    """
    best = _strip_boundaries(graph.translation(viterbi(graph, graph.edge_scores(weights)).edges))
    if criterion.kind == "list":
        chosen = _choose_from_list(graph, weights, criterion)
    else:
        chosen = _choose_by_ngrams(graph, weights, criterion)
    return Decision(chosen, chosen == best)


def expected_gains(
    listed: Sequence[Sequence[bytes]], scores: Floats, criterion: Criterion
) -> Floats:
    """Return the criterion of each translation of an n-best list, float64 ``[n]``.

    Args:
        listed: the words of each translation, at least one.
        scores: float64 ``[n]``, finite; model scores.
        criterion: the criterion of the choice; ``size`` and ``beam`` are ignored.
    """
    probabilities = softmax(criterion.scale * scores)
    bags = count_bags(listed)
    if criterion.kind == "list":
        return expected_bleu(bags, probabilities)
    if criterion.kind == "consensus":
        length = float((probabilities * bags.lengths).sum())
        return consensus_bleu(bags, bags.expected_counts(probabilities), length)
    return linear_gain(bags, bags.occurrence_probabilities(probabilities), criterion.gains)


def expected_utilities(utilities: Floats, scores: Floats, scale: float) -> Floats:
    """Return the expected utility of each hypothesis, float64 ``[n]``.

    With one utility for each hypothesis, that is the utility. With a matrix, it is the mean over
    the hypotheses that may be right, weighted by their probabilities (Kumar & Byrne 2004,
    equation 2; Fernandes et al. 2022 with learned metrics).

    Args:
        utilities: float64 ``[n]``, or ``[n, n]`` with the hypotheses that may be right as columns.
        scores: float64 ``[n]``, finite; model scores.
        scale: factor of the model scores; 0 gives all hypotheses the same probability.
    """
    return utilities if utilities.ndim == 1 else utilities @ softmax(scale * scores)


def _choose_from_list(
    graph: Hypergraph, weights: Floats, criterion: Criterion
) -> tuple[bytes, ...]:
    """Choose from a graph's best translations by their best derivations' probability."""
    derivations = k_best(graph, graph.edge_scores(weights), criterion.size, distinct=True)
    listed = [_strip_boundaries(words) for words in translations(graph, derivations)]
    return listed[find_best(expected_gains(listed, derivations.scores, criterion))]


def _choose_by_ngrams(
    graph: Hypergraph, weights: Floats, criterion: Criterion
) -> tuple[bytes, ...]:
    """Choose by all n-grams of a graph."""
    if criterion.beam is not None:
        scaled = criterion.scale * graph.edge_scores(weights)
        graph = prune_to_beam(graph, scaled, criterion.beam)
    scores = graph.edge_scores(weights)
    split_graph = split(graph)
    distribution = posterior(split_graph, criterion.scale * scores[split_graph.origins])
    if criterion.kind == "lattice":
        occurs = occurrence_probabilities(split_graph, distribution)
        return _strip_boundaries(
            graph.translation(best_linear_gain(split_graph, occurs, criterion.gains))
        )
    listed = [
        _strip_boundaries(words)
        for words in translations(graph, k_best(graph, scores, criterion.size, distinct=True))
    ]
    numbers = {word: number for number, word in enumerate(graph.words)}
    candidates = count_bags_in(
        split_graph.table, split_graph.orders, [[numbers[w] for w in own] for own in listed]
    )
    length = float((distribution.edges * split_graph.totals[:, 0]).sum())
    gains = consensus_bleu(candidates, expected_counts(split_graph, distribution), length)
    return listed[find_best(gains)]


def _strip_boundaries(words: Sequence[bytes]) -> tuple[bytes, ...]:
    return tuple(word for word in words if word not in BOUNDARIES)
