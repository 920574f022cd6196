"""Words of derivations, and their statistics."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given

from formats.graphs.hypergraph import Edge
from mosesplug.forest import viterbi
from mosesplug.forest.translations import Translations, append_words
from mosesplug.metrics import metric
from tests.forest.graphs import graph_of, graphs

WER = metric("WER", "")
WORDS = (b"a", b"b", b"c")


@given(nodes=graphs())
def test_words_are_those_of_the_derivation(
    nodes: list[list[Edge]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    graph = graph_of(nodes, tmp_path_factory.mktemp("graph"))
    edges = viterbi(graph, graph.edge_scores(np.ones(1))).edges
    words, top = append_words(
        graph.target_offsets, graph.targets, edges, np.full(1, 7, dtype=np.int32), 1
    )
    assert words[0] == 7
    assert [graph.words[word] for word in words[1:top]] == graph.translation(edges)


@pytest.mark.parametrize("most", [0, 2, 1000])
def test_statistics_equal_the_metrics(most: int) -> None:
    prepared = WER.prepare([[b"x", b"a b c a"]])
    kept = Translations(1, WORDS, WER, prepared, most)
    rng = np.random.default_rng(1)
    for _ in range(20):
        lengths = rng.integers(0, 5, 6)
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        words = rng.integers(0, 3, offsets[-1]).astype(np.int32)
        texts = [b" ".join(WORDS[word] for word in words[a:b]) for a, b in pairwise(offsets)]
        ends = np.cumsum([len(text) for text in texts])
        starts = ends - [len(text) for text in texts]
        buffer = np.frombuffer(b"".join(texts), np.uint8)
        expected = WER.statistics(prepared, np.ones(6, np.int64), buffer, starts, ends)
        np.testing.assert_array_equal(kept.statistics(words, offsets), expected)
