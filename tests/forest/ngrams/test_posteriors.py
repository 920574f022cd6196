"""Expected counts and probabilities of n-grams against every derivation."""

from __future__ import annotations

import numpy as np
import pytest

from formats.graphs.hypergraph import Edge
from mosesplug.forest import Hypergraph
from mosesplug.forest.inside_outside import posterior
from mosesplug.forest.ngrams.posteriors import (
    expected_counts,
    ngram_values,
    occurrence_probabilities,
)
from mosesplug.forest.ngrams.split import split
from tests.forest.every_derivation import every, made, random_graph
from tests.forest.ngrams.test_split import ngrams, spelled

WEIGHTS = np.array([1.0, -0.5, 0.3])


@pytest.mark.parametrize("phrase_based", [True, False])
@pytest.mark.parametrize("seed", range(5))
def test_counts_and_probabilities(seed: int, phrase_based: bool) -> None:
    check(random_graph(np.random.default_rng(seed), phrase_based=phrase_based), seed)


def test_more_ngrams_than_are_treated_at_a_time() -> None:
    """Blocks of 64 and of 16 leave nothing behind for the next."""
    vocabulary = [b"w%d" % number for number in range(25)]
    rng = np.random.default_rng(3)
    graph = random_graph(rng, phrase_based=True, n_nodes=8, vocabulary=vocabulary)
    check(graph, 3)
    assert split(graph).n_ngrams > 2 * 64


def check(graph: Hypergraph, seed: int) -> None:
    """Hold counts and probabilities against those of all derivations."""
    scores = graph.edge_scores(WEIGHTS)
    all_of_them = every(graph)
    probabilities = all_of_them.probabilities(scores)
    counted = [ngrams(graph.translation(np.array(edges)), 4) for edges in all_of_them.edges]
    found = split(graph)
    distribution = posterior(found, scores[found.origins])
    texts = spelled(found, graph.words)
    assert set().union(*counted) == set(texts[1:])
    counts = expected_counts(found, distribution)
    occurs = occurrence_probabilities(found, distribution)
    assert counts[0] == occurs[0] == 0.0
    for number, text in enumerate(texts[1:], start=1):
        own = np.array([counts[text] for counts in counted])
        assert counts[number] == pytest.approx(probabilities @ own)
        assert occurs[number] == pytest.approx(probabilities @ (own > 0))
    # Some n-gram occurs twice, and not always, so that the two differ.
    assert (counts - occurs > 1e-3).any()
    values = np.random.default_rng(seed).normal(size=found.n_ngrams)
    worth = distribution.edges @ ngram_values(found, values)
    assert worth == pytest.approx(counts @ values)


def test_words_that_every_derivation_has_twice_or_once() -> None:
    words = [b"w%d" % number for number in range(90)]
    first = [Edge(tuple(words), 1, (0.0,)), Edge(tuple(words[::-1]), 1, (0.0,))]
    graph = made([first, [Edge((0, 0), 1, (0.0,)), Edge((0, b"v"), 1, (0.0,))]])
    found = split(graph, 1)
    distribution = posterior(found, np.zeros(found.n_edges))
    occurs = occurrence_probabilities(found, distribution)
    texts = spelled(found, graph.words)
    # Four derivations say all words twice, two say them once, and v.
    for number, text in enumerate(texts[1:], start=1):
        assert occurs[number] == pytest.approx(1 / 3 if text == (b"v",) else 1.0)
    assert expected_counts(found, distribution)[1] == pytest.approx(5 / 3)
