"""Graphs split by n-grams against the n-grams of every derivation."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, ReferenceNgramTree
from mosesplug.forest.ngrams.split import SplitGraph, split, split_for
from mosesplug.kernels import read_only
from tests.forest.every_derivation import WORDS, edge_lists, every, is_small, made, wordy_graphs
from tests.forest.graphs import graph_of

Ngram = tuple[bytes, ...]
REFERENCES = st.lists(st.lists(st.sampled_from((*WORDS[:2], b"d")), max_size=6), min_size=1)


def ngrams(words: list[bytes], order: int) -> Counter[Ngram]:
    """The n-grams of a translation, of up to ``order`` words."""
    words = [word for word in words if word not in BOUNDARIES]
    return Counter(
        tuple(words[start : start + length])
        for length in range(1, order + 1)
        for start in range(len(words) - length + 1)
    )


def spelled(found: SplitGraph, words: tuple[bytes, ...]) -> list[Ngram]:
    """Return the n-grams of the numbers."""
    texts: list[Ngram] = [()]
    for ngram in range(1, found.n_ngrams):
        texts.append((*texts[found.table.parents[ngram]], words[found.table.words[ngram]]))
    return texts


def made_by(found: SplitGraph, edges: list[int], texts: list[Ngram]) -> Counter[Ngram]:
    """The n-grams that some edges make."""
    return Counter(
        texts[ngram]
        for edge in edges
        for ngram in found.ngrams[found.ngram_offsets[edge] : found.ngram_offsets[edge + 1]]
    )


def as_graph(found: SplitGraph, graph: Hypergraph) -> Hypergraph:
    """The split graph with the targets of the edges it was made of."""
    arrays = {"edge_offsets": found.edge_offsets, "tails": found.tails}
    return Hypergraph(**{**vars(graph), **arrays, "tail_offsets": found.tail_offsets})


@given(wordy_graphs(), st.integers(1, 4), st.integers(1, 4))
def test_every_derivation_makes_its_ngrams(nodes: list[list[Edge]], order: int, room: int) -> None:
    graph = made(nodes)
    assume(is_small(graph, 100))
    found = split(graph, order, room=room)
    texts = spelled(found, graph.words)
    assert len(set(texts)) == len(texts)
    assert found.orders.tolist() == [len(text) for text in texts]
    remaining = Counter(tuple(edges) for edges in every(graph).edges)
    for edges in every(as_graph(found, graph)).edges:
        original = found.origins[edges]
        remaining[tuple(original.tolist())] -= 1
        expected = ngrams(graph.translation(original), order)
        assert made_by(found, edges, texts) == expected
        totals = found.totals[edges].sum(axis=0)
        lengths = Counter(len(ngram) for ngram in expected.elements())
        assert totals.tolist() == [lengths[length] for length in range(1, order + 1)]
    assert set(remaining.values()) == {0}


@given(wordy_graphs(), REFERENCES, st.integers(1, 4))
def test_every_derivation_makes_its_ngrams_of_the_references(
    nodes: list[list[Edge]], references: list[list[bytes]], room: int
) -> None:
    graph = made(nodes)
    assume(is_small(graph, 100))
    counted = ReferenceNgramTree.of(references)
    found = split_for(graph, counted, room=room)
    texts = spelled(found, tuple(counted.words))
    known = set().union(*(ngrams(reference, 4) for reference in references))
    assert set(texts) == {(), *known}
    remaining = Counter(tuple(edges) for edges in every(graph).edges)
    for edges in every(as_graph(found, graph)).edges:
        original = found.origins[edges]
        remaining[tuple(original.tolist())] -= 1
        expected = ngrams(graph.translation(original), 4)
        matching = Counter({ngram: n for ngram, n in expected.items() if ngram in known})
        assert made_by(found, edges, texts) == matching
        totals = found.totals[edges].sum(axis=0)
        lengths = Counter(len(ngram) for ngram in expected.elements())
        assert totals.tolist() == [lengths[length] for length in range(1, 5)]
    assert set(remaining.values()) == {0}


def test_phrase_based_graphs_split_by_last_words_only(tmp_path: Path) -> None:
    """Four ways to begin, of which the last three words are alike in pairs."""
    starts = [b"a x y z", b"b x y z", b"a", b"b"]
    first = [Edge(tuple(words.split()), 1, (0.0,)) for words in starts]
    nodes = [first, [Edge((0, b"c"), 2, (0.0,))], [Edge((1, b"</s>"), 2, (0.0,))]]
    graph = graph_of(nodes, tmp_path)
    found = split(graph)
    assert len(found.edge_offsets) - 1 == 3 + 1 + 1
    assert len(list(edge_lists(as_graph(found, graph), 4))) == 4


def test_invalid_graphs_are_rejected(tmp_path: Path) -> None:
    graph = graph_of([[Edge((b"a",), 1, (0.0,)), Edge((b"b",), 1, (0.0,))]], tmp_path)
    with pytest.raises(DataError, match="more than 1 edges: prune"):
        split(graph, most_edges=1)
    with pytest.raises(ValueError, match="n-gram order must be from 1 to 4: 5"):
        split(graph, 5)
    empty = Hypergraph(**{**vars(graph), "edge_offsets": read_only(np.array([0, 2, 2]))})
    with pytest.raises(DataError, match="no derivation"):
        split(empty)
