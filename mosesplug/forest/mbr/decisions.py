"""The choice of a sentence's translation from a graph or an n-best list."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest.inside_outside import posterior
from mosesplug.forest.k_best import k_best, translations
from mosesplug.forest.mbr.consensus import (
    best_linear_gain,
    consensus_bleu,
    expected_bleu,
    first_of_best,
    linear_gain,
    normalised,
)
from mosesplug.forest.ngrams.bags import bags, bags_in
from mosesplug.forest.ngrams.posteriors import expected_counts, occurrence_probabilities
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES
from mosesplug.forest.ngrams.split import split
from mosesplug.forest.oracles.linear_bleu import LinearBleu
from mosesplug.forest.pruning import within_beam
from mosesplug.forest.viterbi import viterbi
from mosesplug.hypergraph import Hypergraph

__all__ = ["Criterion", "Decision", "decide_in_graph", "decide_in_list"]


@dataclass(frozen=True)
class Criterion:
    """The criterion by which a translation is chosen.

    Attributes:
        kind: ``consensus`` (BLEU of expected counts), ``list`` (expected BLEU over a list) or
            ``lattice`` (linear BLEU); see ``forest.mbr.consensus``.
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


def decide_in_graph(
    graph: Hypergraph, weights: NDArray[np.float64], criterion: Criterion
) -> Decision:
    """Choose a translation of a graph.

    Args:
        graph: the graph of the sentence.
        weights: float64 ``[n_columns]``.
        criterion: the criterion of the choice.

    Raises:
        DataError: no derivation has a finite score, or the graph is too large to be split.
    """
    best = _spoken(graph.translation(viterbi(graph, graph.edge_scores(weights)).edges))
    if criterion.kind == "list":
        chosen = _in_listed(graph, weights, criterion)
    else:
        chosen = _in_split(graph, weights, criterion)
    return Decision(chosen, chosen == best)


def decide_in_list(
    listed: Sequence[Sequence[bytes]], scores: NDArray[np.float64], criterion: Criterion
) -> int:
    """Choose a translation of an n-best list and return its index.

    Args:
        listed: the words of each translation, at least one; the first one wins ties.
        scores: float64 ``[n]``, finite; model scores.
        criterion: the criterion of the choice; ``size`` and ``beam`` are ignored.
    """
    probabilities = normalised(criterion.scale * scores)
    found = bags(listed)
    if criterion.kind == "list":
        gains = expected_bleu(found, probabilities)
    elif criterion.kind == "consensus":
        length = float((probabilities * found.lengths).sum())
        gains = consensus_bleu(found, found.expected_counts(probabilities), length)
    else:
        occurs = found.occurrence_probabilities(probabilities)
        gains = linear_gain(found, occurs, criterion.gains)
    return first_of_best(gains)


def _in_listed(
    graph: Hypergraph, weights: NDArray[np.float64], criterion: Criterion
) -> tuple[bytes, ...]:
    """Choose from a graph's best translations by the probabilities of their best derivations."""
    derivations = k_best(graph, graph.edge_scores(weights), criterion.size, distinct=True)
    listed = [_spoken(words) for words in translations(graph, derivations)]
    return listed[decide_in_list(listed, derivations.scores, criterion)]


def _in_split(
    graph: Hypergraph, weights: NDArray[np.float64], criterion: Criterion
) -> tuple[bytes, ...]:
    """Choose by all n-grams of a graph."""
    if criterion.beam is not None:
        scaled = criterion.scale * graph.edge_scores(weights)
        graph = within_beam(graph, scaled, criterion.beam)
    scores = graph.edge_scores(weights)
    found = split(graph)
    distribution = posterior(found, criterion.scale * scores[found.origins])
    if criterion.kind == "lattice":
        occurs = occurrence_probabilities(found, distribution)
        return _spoken(graph.translation(best_linear_gain(found, occurs, criterion.gains)))
    listed = [
        _spoken(words)
        for words in translations(graph, k_best(graph, scores, criterion.size, distinct=True))
    ]
    numbers = {word: number for number, word in enumerate(graph.words)}
    candidates = bags_in(found.table, found.orders, [[numbers[w] for w in own] for own in listed])
    length = float((distribution.edges * found.totals[:, 0]).sum())
    gains = consensus_bleu(candidates, expected_counts(found, distribution), length)
    return listed[first_of_best(gains)]


def _spoken(words: Sequence[bytes]) -> tuple[bytes, ...]:
    """Return the words of a translation, without ``<s>`` and ``</s>``."""
    return tuple(word for word in words if word not in BOUNDARIES)
