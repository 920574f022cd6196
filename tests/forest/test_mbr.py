"""Consensus decoding against the formulas, spelled out for each translation."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from mosesplug.forest.inside_outside import posterior
from mosesplug.forest.mbr import (
    best_linear_gain,
    consensus_bleu,
    expected_bleu,
    linear_gain,
    softmax,
)
from mosesplug.forest.ngrams.posteriors import expected_counts, occurrence_probabilities
from mosesplug.forest.ngrams.split import split
from mosesplug.forest.ngrams.table import count_bags, count_bags_in
from mosesplug.metrics.bleu.linear import LinearBleu
from tests.forest.every_derivation import WORDS, every, random_graph
from tests.forest.ngrams.test_split import ngrams

TRANSLATIONS = st.lists(st.lists(st.sampled_from(WORDS), max_size=7), min_size=1, max_size=6)
GAINS = LinearBleu(-0.9, np.array([0.3, 0.4, 0.5, 0.7]))
WEIGHTS = np.array([0.9, -0.7, 0.31])


def likely(n: int) -> NDArray[np.float64]:
    return softmax(np.random.default_rng(n).normal(size=n))


def sentence_bleu(words: list[bytes], reference: list[bytes]) -> float:
    """BLEU with one added to matches and totals of two words and more."""
    own, limits = ngrams(words, 4), ngrams(reference, 4)
    product = 1.0
    for order in range(1, 5):
        added = int(order > 1)
        matches = sum((own & limits)[ngram] for ngram in own if len(ngram) == order)
        total = max(len(words) - order + 1, 0)
        if matches + added == 0:
            return 0.0
        product *= (matches + added) / (total + added)
    return product**0.25 * min(1.0, math.exp(1 - len(reference) / len(words)))


def test_probabilities_of_large_scores() -> None:
    found = softmax(np.array([-1e4, -1e4 + math.log(3), -np.inf]))
    np.testing.assert_allclose(found, [0.25, 0.75, 0.0])


@given(TRANSLATIONS)
def test_counts_of_lists(translations: list[list[bytes]]) -> None:
    probabilities = likely(len(translations))
    made = count_bags(translations)
    counted = [ngrams(words, 4) for words in translations]
    assert len(made) == len(translations)
    sizes = sorted(Counter(ngram for words in counted for ngram in set(words)).values())
    assert sorted(np.bincount(made.ngrams)[1:].tolist()) == sizes
    for row, own in enumerate(counted):
        entries = slice(made.offsets[row], made.offsets[row + 1])
        assert sorted(made.counts[entries].tolist()) == sorted(own.values())
        assert made.lengths[row] == len(translations[row])
    expected, occurs = np.zeros(5), np.zeros(5)
    for probability, own in zip(probabilities, counted, strict=True):
        for ngram, count in own.items():
            expected[len(ngram)] += probability * count
            occurs[len(ngram)] += probability
    for values, sums in (
        (made.expected_counts(probabilities), expected),
        (made.occurrence_probabilities(probabilities), occurs),
    ):
        np.testing.assert_allclose(
            np.bincount(made.orders, weights=values, minlength=5), sums, atol=1e-12
        )


@given(TRANSLATIONS)
def test_gains_over_lists(translations: list[list[bytes]]) -> None:
    probabilities = likely(len(translations))
    made = count_bags(translations)
    counted = [ngrams(words, 4) for words in translations]
    found = expected_bleu(made, probabilities)
    expected = made.expected_counts(probabilities)
    length = float(probabilities @ made.lengths)
    consensus = consensus_bleu(made, expected, length)
    occurs = made.occurrence_probabilities(probabilities)
    linear = linear_gain(made, occurs, GAINS)
    for row, words in enumerate(translations):
        bleu = sum(
            p * sentence_bleu(words, other)
            for p, other in zip(probabilities, translations, strict=True)
        )
        assert found[row] == pytest.approx(bleu)
        matches, gain = np.zeros(5), GAINS.word * len(words)
        for ngram, count in counted[row].items():
            mean = probabilities @ np.array([other[ngram] for other in counted])
            some = probabilities @ np.array([ngram in other for other in counted])
            matches[len(ngram)] += min(count, mean)
            gain += GAINS.ngrams[len(ngram) - 1] * count * some
        assert linear[row] == pytest.approx(gain)
        if not words:
            assert consensus[row] == -math.inf
            continue
        logs = [
            math.log(matches[n] / (len(words) - n + 1)) for n in range(1, min(len(words), 4) + 1)
        ]
        brevity = min(0.0, 1 - length / len(words))
        assert consensus[row] == pytest.approx(sum(logs) / len(logs) + brevity)


@pytest.mark.parametrize("phrase_based", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_graphs_agree_with_lists_of_all_their_derivations(seed: int, phrase_based: bool) -> None:
    graph = random_graph(np.random.default_rng(seed), phrase_based=phrase_based)
    scores = graph.edge_scores(WEIGHTS)
    derivations = [np.array(edges) for edges in every(graph).edges]
    probabilities = every(graph).probabilities(scores)
    translations = [graph.translation(edges) for edges in derivations]
    listed = count_bags(translations)
    found = split(graph)
    distribution = posterior(found, scores[found.origins])
    expected = expected_counts(found, distribution)
    numbers = {word: number for number, word in enumerate(graph.words)}
    in_graph = count_bags_in(
        found.table, found.orders, [[numbers[word] for word in words] for words in translations]
    )
    length = float(distribution.edges @ found.totals[:, 0])
    np.testing.assert_allclose(
        consensus_bleu(in_graph, expected, length),
        consensus_bleu(
            listed, listed.expected_counts(probabilities), float(probabilities @ listed.lengths)
        ),
    )
    occurs = occurrence_probabilities(found, distribution)
    gains = linear_gain(listed, listed.occurrence_probabilities(probabilities), GAINS)
    np.testing.assert_allclose(linear_gain(in_graph, occurs, GAINS), gains)
    edges = best_linear_gain(found, occurs, GAINS)
    best = [row for row, words in enumerate(translations) if words == graph.translation(edges)]
    assert gains[best].max() == pytest.approx(gains.max())


def test_ngrams_that_a_graph_lacks_are_ignored() -> None:
    graph = random_graph(np.random.default_rng(1), phrase_based=True)
    found = split(graph)
    unknown = len(graph.words)
    made = count_bags_in(found.table, found.orders, [[0, unknown, 1], []])
    assert made.counts.tolist() == [1, 1]
    assert made.lengths.tolist() == [3, 0]
