"""Derivations that yield a reference, against all derivations of small graphs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from itertools import chain

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge
from mosesplug.forest import Hypergraph
from mosesplug.forest.intersection import ReferenceGraph, intersect_references
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES, ReferenceNgramTree
from mosesplug.forest.ngrams.split import split_for
from tests.forest.every_derivation import WORDS, every, is_small, made, random_graph, wordy_graphs

Words = tuple[bytes, ...]


def yields(graph: Hypergraph) -> list[Words]:
    """The words of every derivation, without boundaries."""
    texts = (graph.translation(np.array(edges)) for edges in every(graph).edges)
    return [tuple(word for word in text if word not in BOUNDARIES) for text in texts]


def list_edges(found: ReferenceGraph) -> list[list[int]]:
    """The original edges of every derivation."""
    nothing = dict.fromkeys(field.name for field in fields(Hypergraph))
    arrays = {name: getattr(found, name) for name in ("edge_offsets", "tail_offsets", "tails")}
    listed = every(Hypergraph(**{**nothing, **arrays})).edges  # type: ignore[arg-type]
    return [found.origins[np.array(edges)].tolist() for edges in listed]


def check(graph: Hypergraph, references: Sequence[Words]) -> None:
    """The product has each derivation of a reference once, and no other; so has that of a split."""
    pairs = zip(every(graph).edges, yields(graph), strict=True)
    expected = Counter(tuple(edges) for edges, text in pairs if text in references)
    found = intersect_references(graph, references)
    listed = [] if found is None else list_edges(found)
    assert Counter(map(tuple, listed)) == expected
    split = split_for(graph, ReferenceNgramTree.of(references))
    found = intersect_references(graph, references, split)
    listed = [] if found is None else list_edges(found)
    assert Counter(tuple(split.origins[edges].tolist()) for edges in listed) == expected


@pytest.mark.parametrize("phrase_based", [True, False])
@pytest.mark.parametrize("seed", range(10))
def test_against_all_derivations_of_random_graphs(seed: int, phrase_based: bool) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, phrase_based=phrase_based, n_nodes=4 if phrase_based else 3)
    texts = yields(graph)
    chosen = [texts[k] for k in rng.integers(0, len(texts), 2)]
    check(graph, [*chosen, chosen[0], (b"a", b"unknown")])
    check(graph, [(*chosen[0], b"unknown"), chosen[0][:-1]])


@given(
    nodes=wordy_graphs(),
    more=st.lists(st.lists(st.sampled_from(WORDS), max_size=4).map(tuple), max_size=2),
    place=st.integers(0, 1000),
)
def test_against_all_derivations(nodes: list[list[Edge]], more: list[Words], place: int) -> None:
    """Empty edges and references, boundaries, and nodes that are used twice, are among them."""
    graph = made(nodes)
    if is_small(graph):
        texts = yields(graph)
        references = [texts[place % len(texts)], *more]
        if any(references):
            check(graph, references)


@pytest.mark.parametrize("seed", range(10))
def test_best_derivation_of_a_reference(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, phrase_based=bool(seed % 2), n_nodes=3)
    texts, scores = yields(graph), rng.normal(size=graph.n_edges)
    totals = every(graph).uses @ scores
    references = [texts[0], texts[-1]]
    found = intersect_references(graph, references)
    assert found is not None
    best = found.best(scores)
    good = [total for total, text in zip(totals, texts, strict=True) if text in references]
    assert scores[best].sum() == pytest.approx(max(good))
    assert tuple(graph.translation(best)) in references


def test_a_reference_that_no_derivation_yields() -> None:
    graph = made([[Edge((b"a",), 1, (0.0,))], [Edge((0, b"b"), 2, (0.0,))]])
    assert intersect_references(graph, [(b"a",), (b"b",), (b"a", b"b", b"b"), ()]) is None
    found = intersect_references(graph, [(b"a", b"b")])
    assert found is not None
    assert list(chain(*list_edges(found))) == [1, 0]
