"""Pruning by a beam against every derivation of small graphs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph, viterbi
from mosesplug.forest.inside_outside import posterior
from mosesplug.forest.pruning import prune_to_beam
from tests.forest.every_derivation import every, is_small, made, wordy_graphs
from tests.forest.graphs import graph_of

WEIGHTS = np.array([1.0, -0.37])


def numbered(graph: Hypergraph) -> Hypergraph:
    """The graph with the number of each edge as its only word, to identify edges."""
    tails = [graph.target(edge) == -1 for edge in range(graph.n_edges)]
    targets = [[-1] * int(own.sum()) + [edge] for edge, own in enumerate(tails)]
    offsets = np.cumsum([0, *map(len, targets)])
    flat = np.array([word for target in targets for word in target], dtype=np.int32)
    words = tuple(b"%d" % edge for edge in range(graph.n_edges))
    texts = {"targets": flat, "target_offsets": offsets, "words": words}
    return Hypergraph(**{**vars(graph), **texts})


def derivations(graph: Hypergraph) -> set[tuple[bytes, ...]]:
    return {tuple(graph.translation(np.array(edges))) for edges in every(graph).edges}


@given(wordy_graphs(), st.sampled_from([0.0, 0.3, 1.0, 3.0]))
def test_edges_within_the_beam_are_kept(nodes: list[list[Edge]], beam: float) -> None:
    graph = numbered(made(nodes))
    assume(is_small(graph, 100))
    scores = graph.edge_scores(WEIGHTS)
    all_of_them = every(graph)
    totals = all_of_them.uses @ scores
    worth = np.where(all_of_them.uses > 0, totals[:, None], -np.inf).max(axis=0)
    smaller = prune_to_beam(graph, scores, beam)
    kept = {word for edge in range(smaller.n_edges) for word in smaller.target(edge) if word >= 0}
    wanted = set(np.flatnonzero(worth >= worth.max() - beam + 1e-9).tolist())
    assert wanted <= kept
    # All that is left is part of some derivation, the best one among them.
    assert posterior(smaller, smaller.edge_scores(WEIGHTS)).edges.min() > 0.0
    assert derivations(smaller) <= derivations(graph)
    best = viterbi(graph, scores)
    assert viterbi(smaller, smaller.edge_scores(WEIGHTS)).score == pytest.approx(best.score)
    assert tuple(graph.translation(best.edges)) in derivations(smaller)
    assert kept <= set(np.flatnonzero(worth >= worth.max() - beam - 1e-9).tolist())


def test_an_infinite_beam_keeps_all_edges_with_a_derivation(tmp_path: Path) -> None:
    nodes = [
        [Edge((b"a",), 1, (-800.0,)), Edge((b"b",), 1, (0.0,))],
        [Edge((b"unused",), 1, (5.0,))],
        [Edge((0,), 1, (0.0,)), Edge((0, 0), 1, (-900.0,))],
    ]
    graph = graph_of(nodes, tmp_path)
    assert prune_to_beam(graph, graph.edge_scores(np.ones(1)), np.inf).n_edges == 4
    assert prune_to_beam(graph, graph.edge_scores(np.ones(1)), 800.5).n_edges == 3
    assert prune_to_beam(graph, graph.edge_scores(np.ones(1)), 0.0).n_edges == 2


def test_invalid_arguments_are_rejected(tmp_path: Path) -> None:
    graph = graph_of([[Edge((b"a",), 1, (1.0,))]], tmp_path)
    with pytest.raises(ValueError, match="beam must be 0 or more: -1"):
        prune_to_beam(graph, np.zeros(1), -1.0)
    with pytest.raises(ValueError, match="beam must be 0 or more: nan"):
        prune_to_beam(graph, np.zeros(1), np.nan)
    with pytest.raises(DataError, match="no derivation"):
        prune_to_beam(graph, np.full(1, -np.inf), 1.0)
