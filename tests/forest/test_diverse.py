"""Diverse lists against the same choices among all derivations, in plain Python."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph
from mosesplug.forest.diverse import choose_diverse, find_diverse
from mosesplug.forest.k_best import Derivations, k_best, translations
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES
from tests.forest.graphs import derivations, graph_of, worded_graphs

WEIGHTS = np.array([1.0, -0.5])

Words = tuple[bytes, ...]


def made(nodes: list[list[Edge]]) -> Hypergraph:
    with tempfile.TemporaryDirectory() as directory:
        return graph_of(nodes, Path(directory))


def ngrams(said: Words, order: int) -> Counter[Words]:
    return Counter(said[start : start + order] for start in range(len(said) - order + 1))


def overlap(said: Words, earlier: Sequence[Words], order: int) -> int:
    """Pairs of equal n-grams, one of each translation."""
    own = ngrams(said, order)
    return sum(
        count * own[ngram] for other in earlier for ngram, count in ngrams(other, order).items()
    )


def texts(graph: Hypergraph, found: Derivations) -> list[Words]:
    return [
        tuple(word for word in words if word not in BOUNDARIES)
        for words in translations(graph, found)
    ]


@given(worded_graphs(), st.integers(0, 99), st.integers(1, 3), st.sampled_from([0.25, 1.0, 4.0]))
def test_each_is_the_best_of_all_derivations(
    nodes: list[list[Edge]], seed: int, order: int, penalty: float
) -> None:
    # Scores of many values, so that few sums are equal.
    rng = np.random.default_rng(seed)
    nodes = [
        [Edge(edge.target, edge.covered, (rng.integers(-512, 512) / 64,)) for edge in edges]
        for edges in nodes
    ]
    best: dict[Words, float] = {}
    for features, words in derivations(nodes, len(nodes) - 1):
        said = tuple(word for word in words if word not in BOUNDARIES)
        best[said] = max(best.get(said, -np.inf), features[0])
    expected: list[Words] = []
    for _ in range(12):
        values = {
            said: score - penalty * overlap(said, expected, order) for said, score in best.items()
        }
        highest = [said for said, value in values.items() if value == max(values.values())]
        assume(len(highest) == 1)
        expected += highest
        if len(set(expected)) == 4:
            break
    graph = made(nodes)
    found = find_diverse(
        graph, graph.edge_scores(np.ones(1)), 4, penalty, order=order, most_alike=3
    )
    assert texts(graph, found) == list(dict.fromkeys(expected))
    assert found.scores.tolist() == [best[said] for said in texts(graph, found)]


@given(worded_graphs(), st.integers(1, 3), st.sampled_from([0.25, 1.0, 4.0]))
def test_choices_from_a_list(nodes: list[list[Edge]], order: int, penalty: float) -> None:
    graph = made(nodes)
    pool = k_best(graph, graph.edge_scores(WEIGHTS), 12, distinct=True)
    said = texts(graph, pool)
    chosen: list[int] = []
    for _ in range(min(6, len(pool))):
        values = [
            score - penalty * overlap(text, [said[row] for row in chosen], order)
            for score, text in zip(pool.scores.tolist(), said, strict=True)
        ]
        rest = [row for row in range(len(pool)) if row not in chosen]
        chosen.append(max(rest, key=lambda row: (values[row], -row)))
    found = choose_diverse(graph, pool, 6, penalty, order=order)
    assert found.scores.tolist() == pool.scores[chosen].tolist()
    for number, row in enumerate(chosen):
        assert found.derivation(number).tolist() == pool.derivation(row).tolist()


def test_a_penalty_brings_other_words() -> None:
    nodes = [
        [Edge((word,), 1, (score,)) for word, score in ((b"a", 0.0), (b"b", -1.0))],
        [Edge((word,), 1, (score,)) for word, score in ((b"c", 0.0), (b"d", -1.5))],
    ]
    nodes.append([Edge((b"<s>", 0, 1, b"</s>"), 2, (0.0,))])
    graph = made(nodes)
    scores = graph.edge_scores(np.ones(1))
    assert texts(graph, k_best(graph, scores, 2)) == [(b"a", b"c"), (b"b", b"c")]
    found = find_diverse(graph, scores, 4, 2.0, order=1)
    # These two take turns from here on.
    assert texts(graph, found) == [(b"a", b"c"), (b"b", b"d")]
    assert found.scores.tolist() == [0.0, -2.5]
    assert texts(graph, choose_diverse(graph, k_best(graph, scores, 4), 2, 2.0, order=1)) == [
        (b"a", b"c"),
        (b"b", b"d"),
    ]


def test_searching_for_other_words_ends() -> None:
    graph = made([[Edge((b"a", b"b"), 1, (0.0,)), Edge((b"a", b"b"), 1, (-1.0,))]])
    assert find_diverse(graph, graph.edge_scores(np.ones(1)), 3, 1.0).edges.tolist() == [0]


def test_invalid_arguments_are_rejected() -> None:
    graph = made([[Edge((b"a",), 1, (0.0,))]])
    pool = k_best(graph, np.zeros(1), 1)
    for k, penalty, order, message in (
        (0, 1.0, 2, "number of translations must be positive: 0"),
        (1, 0.0, 2, "penalty must be positive and finite: 0.0"),
        (1, np.inf, 2, "penalty must be positive and finite: inf"),
        (1, 1.0, 0, "n-gram order must be positive: 0"),
    ):
        with pytest.raises(ValueError, match=message):
            find_diverse(graph, np.zeros(1), k, penalty, order=order)
        with pytest.raises(ValueError, match=message):
            choose_diverse(graph, pool, k, penalty, order=order)
    with pytest.raises(DataError, match="no derivation"):
        find_diverse(graph, np.full(1, -np.inf), 1, 1.0)
