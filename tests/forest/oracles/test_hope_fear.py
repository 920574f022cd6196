"""Hope and fear against plain Python that keeps whole translations."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from dataclasses import dataclass
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.oracles.graph_search import GraphSearch
from mosesplug.forest.oracles.hope_fear import find, hope_and_fear
from mosesplug.forest.search_graph import SearchGraph, search_graph
from mosesplug.metrics.bleu.sentence import single_bleu
from tests.forest.graphs import derivations, graph_of, references, worded_graphs

WEIGHTS = np.array([1.0, -0.5], dtype=np.float32)
BACKGROUND = np.array([9, 10, 7, 9, 5, 8, 3, 7, 10], dtype=np.float32)
BOUNDARIES = (b"<s>", b"</s>")

References = list[list[bytes]]


def cases() -> st.SearchStrategy[tuple[list[list[Edge]], References]]:
    return st.tuples(worded_graphs(), references())


def made(nodes: list[list[Edge]], references: References) -> SearchGraph:
    with tempfile.TemporaryDirectory() as directory:
        graph = graph_of(nodes, Path(directory))
    return search_graph(graph, ReferenceNgramTree.of(references))


def ngrams(words: list[bytes]) -> Counter[tuple[bytes, ...]]:
    """N-grams of a translation, without the borders of the sentence."""
    return written([word for word in words if word not in BOUNDARIES])


def written(words: list[bytes]) -> Counter[tuple[bytes, ...]]:
    """N-grams of a reference, of which every word counts."""
    return Counter(
        tuple(words[start : start + order])
        for order in range(1, 5)
        for start in range(len(words) - order + 1)
    )


def counted(
    found: Counter[tuple[bytes, ...]], limits: Counter[tuple[bytes, ...]], length: float
) -> NDArray[np.float32]:
    """Statistics of BLEU."""
    statistics = np.zeros(9, dtype=np.float32)
    for ngram, count in found.items():
        statistics[2 * len(ngram) - 2] += min(count, limits[ngram])
        statistics[2 * len(ngram) - 1] += count
    statistics[8] = length
    return statistics


def whole_statistics(words: list[bytes], references: References) -> NDArray[np.float32]:
    """As BLEU is defined, against the shortest reference."""
    limits: Counter[tuple[bytes, ...]] = Counter()
    for reference in references:
        limits |= written(reference)
    return counted(ngrams(words), limits, min(map(len, references)))


@dataclass
class Partial:
    """A derivation of a node."""

    score: np.float32
    words: list[bytes]
    statistics: NDArray[np.float32]
    value: np.float32
    features: NDArray[np.float32]


def ways(
    edge: Edge, kept: list[list[Partial]], references: References, total: int, sign: float
) -> list[Partial]:
    """Combine the kept derivations of an edge's tails."""
    limits: Counter[tuple[bytes, ...]] = Counter()
    for reference in references:
        limits += written(reference)
    length = np.float32(edge.covered) / np.float32(total) * np.float32(min(map(len, references)))
    dense = np.array(edge.dense, dtype=np.float32)
    found = []
    for tails in product(*(kept[part] for part in edge.target if isinstance(part, int))):
        rest = iter(tails)
        words: list[bytes] = []
        for part in edge.target:
            words += next(rest).words if isinstance(part, int) else [part]
        new = ngrams(words)
        for tail in tails:
            new.subtract(ngrams(tail.words))
        statistics = counted(+new, limits, 0.0)
        for tail in tails:
            statistics += tail.statistics
        statistics[8] = length
        score = np.float32(dense @ WEIGHTS + sum(tail.score for tail in tails))
        gain = np.float32(single_bleu(statistics + BACKGROUND)) * (length + BACKGROUND[8])
        features = dense + sum((tail.features for tail in tails), np.zeros(2, dtype=np.float32))
        value = np.float32(score + np.float32(sign) * gain)
        found.append(Partial(score, words, statistics, value, features))
    return found


def search(
    nodes: list[list[Edge]], references: References, sign: float, *, everything: bool
) -> list[Partial]:
    """Derivations of the goal: all, or the one that is left where each node keeps its best."""
    kept: list[list[Partial]] = []
    total = nodes[-1][0].covered
    for edges in nodes:
        here = [way for edge in edges for way in ways(edge, kept, references, total, sign)]
        if not everything and here:
            highest = max(way.value for way in here)
            here = [[way for way in here if way.value == highest][-1]]
        kept.append(here)
    return kept[-1]


@given(cases(), st.sampled_from([1.0, -1.0]))
def test_keeps_the_best_of_each_node(
    case: tuple[list[list[Edge]], References], sign: float
) -> None:
    nodes, references = case
    found = find(made(nodes, references), WEIGHTS, BACKGROUND, sign=sign)
    (expected,) = search(nodes, references, sign, everything=False)
    assert found.score == expected.score
    np.testing.assert_array_equal(found.values, expected.features)
    np.testing.assert_array_equal(found.statistics, whole_statistics(expected.words, references))


@given(cases(), st.sampled_from([1.0, -1.0]))
def test_finds_the_best_derivation_where_only_the_goal_has_a_choice(
    case: tuple[list[list[Edge]], References], sign: float
) -> None:
    nodes, references = case
    goal = [Edge((b"<s>", *edge.target, b"</s>"), edge.covered, edge.dense) for edge in nodes[-2]]
    nodes = [edges[:1] for edges in nodes[:-2]] + [goal]
    found = find(made(nodes, references), WEIGHTS, BACKGROUND, sign=sign)
    best = max(way.value for way in search(nodes, references, sign, everything=True))
    assert (tuple(found.values), tuple(found.statistics)) in {
        (tuple(way.features), tuple(whole_statistics(way.words, references)))
        for way in search(nodes, references, sign, everything=True)
        if way.value == best
    }


@given(cases())
def test_model_alone_finds_the_best_of_all_derivations(
    case: tuple[list[list[Edge]], References],
) -> None:
    nodes, references = case
    everything = [
        (float(np.dot(features, WEIGHTS)), features, words)
        for features, words in derivations(nodes, len(nodes) - 1)
    ]
    highest = max(score for score, _, _ in everything)
    found = GraphSearch([made(nodes, references)]).model_best(0, WEIGHTS)
    assert found.score == highest
    assert (tuple(found.values), tuple(found.statistics)) in {
        (features, tuple(whole_statistics(words, references)))
        for score, features, words in everything
        if score == highest
    }


@given(cases(), st.booleans())
def test_gains_of_hope_and_fear(case: tuple[list[list[Edge]], References], safe_hope: bool) -> None:
    """BLEU in double precision, times the reference length, of both with the background."""
    pair = hope_and_fear(made(*case), WEIGHTS, BACKGROUND, safe_hope=safe_hope)
    for found, gain in ((pair.hope, pair.hope_gain), (pair.fear, pair.fear_gain)):
        totals = (found.statistics + BACKGROUND).astype(np.float64)
        logs = np.log(totals[0:8:2] / totals[1:8:2]).mean()
        bleu = math.exp(logs + min(0.0, 1.0 - totals[8] / totals[1]))
        assert gain == pytest.approx(bleu * totals[8], rel=1e-5)


def test_safe_hope_bounds_the_model() -> None:
    """A model that outweighs BLEU a thousand times over no longer makes the hope."""
    nodes = [[Edge((b"a", b"b"), 2, (1000.0, 0.0)), Edge((b"c", b"d"), 2, (999.0, 0.0))]]
    graph = made(nodes, [[b"c", b"d"]])
    pair = hope_and_fear(graph, WEIGHTS, BACKGROUND)
    assert pair.hope.values.tolist() == [1000.0, 0.0]
    pair = hope_and_fear(graph, WEIGHTS, BACKGROUND, safe_hope=True)
    assert pair.hope.values.tolist() == [999.0, 0.0]
    assert pair.fear.values.tolist() == [1000.0, 0.0]


def test_of_equal_derivations_the_last() -> None:
    nodes = [[Edge((b"a",), 1, (1.0, 0.0)), Edge((b"a",), 1, (0.0, -2.0))]]
    graph = made(nodes, [[b"a"]])
    for sign in (1.0, -1.0, 0.0):
        assert find(graph, WEIGHTS, BACKGROUND, sign=sign).edges.tolist() == [1]


def test_an_empty_background_gives_a_score_of_zero() -> None:
    """Zero matches are no reason for anything but 0."""
    nodes = [[Edge((b"a",), 1, (1.0, 0.0)), Edge((b"b",), 1, (0.0, 0.0))]]
    pair = hope_and_fear(made(nodes, [[b"c"]]), WEIGHTS, np.zeros(9, dtype=np.float32))
    assert pair.hope_gain == pair.fear_gain == np.float32(0.0)
    assert pair.hope.edges.tolist() == pair.fear.edges.tolist() == [0]


def test_words_outside_the_references_are_distinguished() -> None:
    references = ReferenceNgramTree.of([[b"a", b"b", b"a"], [b"a"]])
    assert [references.number(word) for word in (b"a", b"b", b"c", b"<s>")] == [0, 1, -2, -3]
    tree = references.tree
    place = tree.children[0, 0]
    assert [int(tree.total_counts[place]), int(tree.largest[place]), float(tree.length)] == [
        3,
        2,
        1,
    ]
    assert tree.children[tree.children[place, 1], 0] > 0
    assert tree.children[place, 0] == -1


def test_rejects_an_exponentially_large_derivation(tmp_path: Path) -> None:
    nodes = [[Edge((b"a",), 1, (0.0,))]]
    nodes += [[Edge((head, head), 1, (0.0,))] for head in range(30)]
    graph = search_graph(graph_of(nodes, tmp_path), ReferenceNgramTree.of([[b"a"]]))
    with pytest.raises(DataError, match="edges"):
        find(graph, WEIGHTS, BACKGROUND)
