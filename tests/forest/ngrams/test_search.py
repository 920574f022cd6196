"""Searches with values of n-grams against all derivations."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, ngram_tree
from mosesplug.forest.ngrams.search import find_best_with_ngrams
from mosesplug.forest.ngrams.states import NgramStates, ngram_states, renumber_words
from tests.forest.graphs import derivations, graph_of, references, worded_graphs

WEIGHTS = np.array([1.0, -0.5])

Texts = Sequence[Sequence[bytes]]


def states_of(texts: Texts, order: int) -> tuple[NgramStates, dict[bytes, int]]:
    words = {word: 0 for text in texts for word in text}
    words = {word: number for number, word in enumerate(words)}
    numbers = np.array([words[word] for text in texts for word in text], dtype=np.int32)
    offsets = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    children, _, _ = ngram_tree(numbers, offsets, order, len(words))
    return ngram_states(children, order), words


def made(nodes: list[list[Edge]]) -> Hypergraph:
    with tempfile.TemporaryDirectory() as directory:
        return graph_of(nodes, Path(directory))


def worth(said: list[bytes], values: dict[tuple[bytes, ...], float], order: int) -> float:
    said = [word for word in said if word not in BOUNDARIES]
    return sum(
        values.get(tuple(said[start : start + size]), 0.0)
        for size in range(1, order + 1)
        for start in range(len(said) - size + 1)
    )


@given(worded_graphs(), references(), st.integers(1, 4), st.integers(0, 99))
def test_finds_the_best_of_all_derivations(
    nodes: list[list[Edge]], texts: Texts, order: int, seed: int
) -> None:
    states, words = states_of(texts, order)
    known = list(words)
    values = np.random.default_rng(seed).integers(-8, 9, len(states.depths)) / 4
    values[0] = 0.0
    by_ngram = {
        tuple(known[word] for word in states.texts[state, : states.depths[state]]): values[state]
        for state in range(1, len(values))
    }
    graph = made(nodes)
    text = renumber_words(graph, words)
    found = find_best_with_ngrams(text, graph.edge_scores(WEIGHTS), states, values)
    best = max(
        float(np.dot(features, WEIGHTS)) + worth(said, by_ngram, order)
        for features, said in derivations(nodes, len(nodes) - 1)
    )
    assert found.score == best
    own = float(WEIGHTS @ graph.features(found.edges, 2))
    assert own + worth(graph.translation(found.edges), by_ngram, order) == best
    beamed = find_best_with_ngrams(text, graph.edge_scores(WEIGHTS), states, values, beam=1)
    own = float(WEIGHTS @ graph.features(beamed.edges, 2))
    assert beamed.score == own + worth(graph.translation(beamed.edges), by_ngram, order) <= best


def test_states_are_the_longest_ngrams_that_end_at_a_word() -> None:
    texts = [[b"a", b"b", b"a", b"b", b"c"], [b"b", b"b"]]
    states, words = states_of(texts, 3)
    ngrams = {
        tuple(text[start : start + size])
        for text in texts
        for size in range(4)
        for start in range(len(text) - size + 1)
    }
    known = list(words)
    said: list[bytes] = []
    state = 0
    for word in b"a b b a b c a b a b b c c a".split():
        said.append(word)
        state = states.step[state, words[word]]
        endings = [tuple(said[len(said) - size :]) for size in range(min(4, len(said) + 1))]
        longest = max((ending for ending in endings if ending in ngrams), key=len)
        text = tuple(known[number] for number in states.texts[state, : states.depths[state]])
        assert text == longest
        assert states.depths[states.shorter[state]] == len(longest) - 1


def test_invalid_graphs_are_rejected() -> None:
    states, words = states_of([[b"a"]], 2)
    graph = made([[Edge((b"a",), 1, (0.0,))]])
    text, values = renumber_words(graph, words), np.zeros(len(states.depths))
    with pytest.raises(DataError, match="no derivation"):
        find_best_with_ngrams(text, np.full(1, -np.inf), states, values)
    with pytest.raises(ValueError, match="beam must be positive: 0"):
        find_best_with_ngrams(text, np.zeros(1), states, values, beam=0)
    nodes = [[Edge((b"a",), 1, (0.0,))]]
    nodes += [[Edge((head, head), 1, (0.0,))] for head in range(70)]
    large = renumber_words(made(nodes), words)
    with pytest.raises(DataError, match="edges"):
        find_best_with_ngrams(large, np.zeros(71), states, values)
