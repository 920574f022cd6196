"""Oracles of graphs against all derivations, counted in plain Python."""

from __future__ import annotations

import math
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from formats.nbest.files import iter_nbest
from formats.text import read_lines
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph
from mosesplug.forest.ngrams.reference_ngrams import BOUNDARIES
from mosesplug.forest.oracles.bleu import (
    BLEU_PLUS_ONE,
    OracleGraph,
    judge_derivation,
    oracle,
    oracle_graph,
)
from mosesplug.forest.oracles.corpus import greedy_oracles, linear_oracle, linear_oracles
from mosesplug.forest.viterbi import viterbi
from mosesplug.metrics.bleu.linear import LinearBleu, linear_bleu
from tests.forest.graphs import derivations, graph_of, read_recorded, references, worded_graphs

WEIGHTS = np.array([1.0, -0.5])
BACKGROUND = (9.0, 10.0, 7.0, 9.0, 5.0, 8.0, 3.0, 7.0, 10.0)

References = Sequence[Sequence[bytes]]


def made(nodes: list[list[Edge]], texts: References) -> OracleGraph:
    with tempfile.TemporaryDirectory() as directory:
        graph = graph_of(nodes, Path(directory))
    return oracle_graph(graph, texts, graph.edge_scores(WEIGHTS[: len(nodes[-1][0].dense)]))


def ngrams(words: Sequence[bytes]) -> Counter[tuple[bytes, ...]]:
    return Counter(
        tuple(words[start : start + size])
        for size in range(1, 5)
        for start in range(len(words) - size + 1)
    )


def counted(said: list[bytes], texts: References) -> NDArray[np.float64]:
    """Statistics as BLEU is defined, against the closest reference length."""
    said = [word for word in said if word not in BOUNDARIES]
    limits: Counter[tuple[bytes, ...]] = Counter()
    for text in texts:
        limits |= ngrams(text)
    statistics = np.zeros(9)
    for ngram, count in ngrams(said).items():
        statistics[2 * len(ngram) - 2] += min(count, limits[ngram])
        statistics[2 * len(ngram) - 1] += count
    statistics[8] = min(map(len, texts), key=lambda length: (abs(length - len(said)), length))
    return statistics


def bleu(statistics: NDArray[np.float64]) -> float:
    if not (statistics[0:8:2] > 0).all():
        return 0.0
    precision = math.exp(np.log(statistics[0:8:2] / statistics[1:8:2]).mean())
    return precision * math.exp(min(0.0, 1.0 - statistics[8] / statistics[1]))


@given(worded_graphs(), references(), st.sampled_from([BLEU_PLUS_ONE, BACKGROUND]))
def test_finds_the_highest_bleu_of_all_derivations(
    nodes: list[list[Edge]], texts: References, background: tuple[float, ...]
) -> None:
    graph = made(nodes, texts)
    every = [
        (counted(said, texts), float(np.dot(features, WEIGHTS)))
        for features, said in derivations(nodes, len(nodes) - 1)
    ]
    best = max(bleu(statistics + background) for statistics, _ in every)
    found = oracle(graph, background, beam=None)
    said = graph.graph.translation(found.derivation.edges)
    np.testing.assert_array_equal(found.statistics, counted(said, texts))
    assert bleu(found.statistics + background) == pytest.approx(best, rel=1e-12)
    # Of equals the one that the model likes best.
    alike = [score for statistics, score in every if (statistics == found.statistics).all()]
    assert found.derivation.score == max(alike)
    known = judge_derivation(graph, found.derivation.edges)
    np.testing.assert_array_equal(known.statistics, found.statistics)
    assert known.derivation.score == found.derivation.score
    beamed = oracle(graph, background, beam=1)
    np.testing.assert_array_equal(
        beamed.statistics, counted(graph.graph.translation(beamed.derivation.edges), texts)
    )


def test_the_model_decides_among_equals() -> None:
    nodes = [[Edge((b"a", b"b"), 2, (score, 0.0)) for score in (1.0, 3.0, 2.0)]]
    nodes.append([Edge((0,), 2, (0.0, 0.0)), Edge((b"a", b"b"), 2, (2.5, 0.0))])
    found = oracle(made(nodes, [[b"a", b"b"]]), beam=2)
    assert found.derivation.edges.tolist() == [3, 1]
    assert found.derivation.score == 3.0


@given(worded_graphs(), references(), st.sampled_from([1.0, -1.0]))
def test_finds_the_highest_linear_bleu_of_all_derivations(
    nodes: list[list[Edge]], texts: References, sign: float
) -> None:
    graph = made(nodes, texts)
    gains = linear_bleu(np.array([8.0, 16.0, 4.0, 12.0, 2.0, 8.0, 1.0, 4.0, 20.0]))
    assert (gains.word, gains.ngrams.tolist()) == (-1 / 16, [1 / 32, 1 / 16, 1 / 8, 1 / 4])
    gains = LinearBleu(sign * gains.word, sign * gains.ngrams)
    known = set().union(*(ngrams(text) for text in texts))

    def worth(said: list[bytes]) -> float:
        said = [word for word in said if word not in BOUNDARIES]
        found = sum(
            count * gains.ngrams[len(ngram) - 1]
            for ngram, count in ngrams(said).items()
            if ngram in known
        )
        return float(gains.word * len(said) + found)

    best = max(worth(said) for _, said in derivations(nodes, len(nodes) - 1))
    found = linear_oracle(graph, gains)
    said = graph.graph.translation(found.derivation.edges)
    assert worth(said) == best
    np.testing.assert_array_equal(found.statistics, counted(said, texts))


def test_linear_bleu_is_the_slope_of_log_bleu() -> None:
    totals = np.array([620.0, 1000.0, 400.0, 940.0, 260.0, 880.0, 150.0, 820.0, 900.0])
    gains = linear_bleu(totals)
    # With the n-grams of all lengths taken for as many as the words (equation 47).
    approximate = [np.log(totals[0:8:2]).mean() - math.log(totals[1])]
    step = 1e-4
    for column in (1, 0, 2, 4, 6):
        moved = totals.copy()
        moved[column] += step
        approximate.append(np.log(moved[0:8:2]).mean() - math.log(moved[1]))
    slopes = (np.array(approximate[1:]) - approximate[0]) / step
    np.testing.assert_allclose(slopes, [gains.word, *gains.ngrams], rtol=1e-4)
    assert LinearBleu.of_precisions(0.8, 0.5).ngrams.tolist() == [0.3125, 0.625, 1.25, 2.5]
    totals[6] = 0.0
    with pytest.raises(DataError, match="no n-gram of 4 words"):
        linear_bleu(totals)


@settings(max_examples=30)
@given(st.lists(st.tuples(worded_graphs(), references()), min_size=1, max_size=3))
def test_no_change_of_one_sentence_makes_the_corpus_better(
    cases: list[tuple[list[list[Edge]], References]],
) -> None:
    graphs = [made(nodes, texts) for nodes, texts in cases]
    found = greedy_oracles(graphs, np.random.default_rng(1), beam=None)
    chosen = [one.statistics for one in found.oracles]
    assert found.score == pytest.approx(bleu(sum(chosen)), rel=1e-12)
    for number, (nodes, texts) in enumerate(cases):
        others = sum(chosen) - chosen[number]
        if not (others[0:8:2] > 0).all():
            continue
        for _, said in derivations(nodes, len(nodes) - 1):
            assert bleu(others + counted(said, texts)) <= found.score + 1e-12
    linear = linear_oracles(graphs)
    assert linear.score == pytest.approx(bleu(sum(one.statistics for one in linear.oracles)))
    model = [judge_derivation(graph, viterbi(graph.graph, graph.scores).edges) for graph in graphs]
    # Two ways to compute the score of equal statistics differ in the last bit.
    assert linear.score >= bleu(sum(one.statistics for one in model)) - 1e-12


def test_invalid_graphs_are_rejected() -> None:
    graph = made([[Edge((b"a",), 1, (0.0, 0.0))]], [[b"a"]])
    with pytest.raises(ValueError, match="beam must be positive: 0"):
        oracle(graph, beam=0)
    graph.scores[:] = np.nan
    with pytest.raises(DataError, match="no derivation"):
        oracle(graph)
    with pytest.raises(DataError, match="sentence 0: no derivation"):
        greedy_oracles([graph], np.random.default_rng(1))
    with pytest.raises(DataError, match="sentence 0: no derivation"):
        linear_oracles([graph])


def test_a_graph_that_covers_nothing_can_be_searched() -> None:
    graph = made([[Edge((b"a",), 0, (0.0, 0.0)), Edge((b"b",), 0, (0.0, 0.0))]], [[b"a"]])
    assert oracle(graph).derivation.edges.tolist() == [0]


def test_recorded_graphs_hold_better_translations_than_lists(multi30k: Path) -> None:
    forest = multi30k / "forest"
    rows = [line.split() for line in read_lines(forest / "hypergraph" / "weights")]
    columns = {name.decode(): column for column, (name, _) in enumerate(rows)}
    weights = np.array([float(value) for _, value in rows])
    texts = read_lines(multi30k / "text" / "dev.en")
    graphs = {}
    for sentence in range(0, 60, 6):
        file = read_recorded(multi30k, sentence)
        graph = Hypergraph.of_file(file, columns)
        graphs[sentence] = oracle_graph(
            graph, [texts[sentence].split()], graph.edge_scores(weights)
        )
    listed: dict[int, list[float]] = {sentence: [] for sentence in graphs}
    for entry in iter_nbest(forest / "first60.best100.gz"):
        if entry.sentence_id in graphs:
            statistics = counted(entry.text.split(), [texts[entry.sentence_id].split()])
            listed[entry.sentence_id].append(bleu(statistics + BLEU_PLUS_ONE))
    for sentence, graph in graphs.items():
        found = oracle(graph, beam=5)
        assert bleu(found.statistics + BLEU_PLUS_ONE) >= max(listed[sentence])
    greedy = greedy_oracles([*graphs.values()], np.random.default_rng(1), beam=2)
    linear = linear_oracles([*graphs.values()])
    assert greedy.score > linear.score > 0.5
