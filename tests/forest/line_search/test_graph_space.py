"""The score along lines against all derivations of search graphs, and MERT on them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from formats.references import read_reference
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.forest import Hypergraph, viterbi
from mosesplug.forest.line_search.graph_space import GraphSource, graph_source
from mosesplug.forest.pruning import prune_to_edges
from mosesplug.metrics import Metric, metric
from mosesplug.optimizers.batch.mert.options import MertOptions
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import algorithm
from mosesplug.tuning_set import TuningSet
from tests.forest.graphs import derivations, graph_of, graphs, read_recorded

mert = algorithm("mert").optimize

PER = metric("PER", "")
SPACE = FeatureSpace.of_names(["A", "B"])
REFERENCE = b"w0 w3 w5 w1 w7"
Nodes = list[list[Edge]]
Text = list[list[Nodes]]
"""Of each sentence its graphs."""


def nothing(space: FeatureSpace, measure: Metric) -> TuningSet:
    """Lists without any hypothesis."""
    return TuningSet(
        space,
        np.zeros(0, np.int64),
        np.zeros(1, np.int64),
        np.zeros((0, space.n_dense), np.float32),
        None,
        np.zeros((0, measure.n_statistics), np.int32),
        np.zeros(0, np.int32),
    )


def source_of(text: Text, directory: Path, threads: int = 1) -> GraphSource:
    prepared = PER.prepare([[REFERENCE] * len(text)])
    made = [[graph_of(nodes, directory) for nodes in each] for each in text]
    return graph_source(made, SPACE, PER, prepared, threads)


class EveryDerivation:
    """The features and statistics of all derivations of each sentence."""

    def __init__(self, text: Text) -> None:
        prepared = PER.prepare([[REFERENCE] * len(text)])
        self.features: list[NDArray[np.float64]] = []
        self.statistics: list[list[tuple[int, ...]]] = []
        for number, each in enumerate(text):
            every = [way for nodes in each for way in derivations(nodes, len(nodes) - 1)]
            self.features.append(np.array([features for features, _ in every]))
            self.statistics.append([tuple(counted(number, words, prepared)) for _, words in every])

    def possible_scores(self, weights: NDArray[np.float64]) -> list[float]:
        """Return the scores of decoding: several where some derivations score the same."""
        ways = []
        for features, statistics in zip(self.features, self.statistics, strict=True):
            scores = features @ weights
            best = np.flatnonzero(scores >= scores.max() - 1e-9)
            ways.append({statistics[k] for k in best})
        totals = {tuple(np.sum(chosen, axis=0)) for chosen in product(*ways)}
        return [float(PER.score(np.array(total))) for total in totals]


def counted(sentence: int, words: Sequence[bytes], prepared: object) -> list[int]:
    text = b" ".join(words)
    buffer = np.frombuffer(text, np.uint8)
    ends = np.array([len(text)])
    ids = np.array([sentence])
    return PER.statistics(prepared, ids, buffer, ends * 0, ends)[0].tolist()  # type: ignore[arg-type]


def middles(thresholds: NDArray[np.float64]) -> NDArray[np.float64]:
    if not len(thresholds):
        return np.zeros(1)
    ends = np.concatenate([thresholds[:1] - 1.0, thresholds, thresholds[-1:] + 1.0])
    return 0.5 * (ends[:-1] + ends[1:])


texts = st.lists(st.lists(graphs(features=2), min_size=1, max_size=2), min_size=1, max_size=3)
vectors = st.tuples(st.integers(-4, 4), st.integers(-4, 4)).map(lambda pair: np.array(pair) / 4)


@given(text=texts, origin=vectors, direction=vectors)
def test_the_score_along_a_line_is_that_of_all_derivations(
    text: Text,
    origin: NDArray[np.float64],
    direction: NDArray[np.float64],
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    source = source_of(text, tmp_path_factory.mktemp("graph"))
    every = EveryDerivation(text)
    space = source.lines(np.ones(2, np.bool_), np.zeros(2))
    point = space.at(origin)
    surfaces = [
        *space.along_axes(np.array([1, 0]), point),
        *space.along(direction[np.newaxis], point),
    ]
    lines = [np.array([0.0, 1.0]), np.array([1.0, 0.0]), direction]
    for along, (thresholds, scores) in zip(lines, surfaces, strict=True):
        assert (np.diff(thresholds) >= 0.0).all()
        assert len(scores) == len(thresholds) + 1
        ends = np.concatenate([[-np.inf], thresholds, [np.inf]])
        for width, x, score in zip(np.diff(ends), middles(thresholds), scores, strict=True):
            if width > 1e-9:
                expected = every.possible_scores(origin + x * along)
                assert min(abs(score - each) for each in expected) < 1e-12
        # No threshold is missing.
        for x in np.linspace(-9.0, 9.0, 37) + 0.0123:
            if np.abs(thresholds - x).min(initial=np.inf) > 1e-9:
                expected = every.possible_scores(origin + x * along)
                score = scores[np.searchsorted(thresholds, x)]
                assert min(abs(score - each) for each in expected) < 1e-12


@settings(max_examples=30)
@given(text=texts, weights=vectors)
def test_decoding_is_that_of_all_derivations(
    text: Text, weights: NDArray[np.float64], tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = source_of(text, tmp_path_factory.mktemp("graph"))
    expected = EveryDerivation(text).possible_scores(weights)
    assert min(abs(source.score(weights) - each) for each in expected) < 1e-12


@settings(max_examples=20)
@given(text=texts)
def test_spread_is_that_of_all_derivations(
    text: Text, tmp_path_factory: pytest.TempPathFactory
) -> None:
    source = source_of(text, tmp_path_factory.mktemp("graph"))
    spreads = []
    for each in text:
        every = [way for nodes in each for way in derivations(nodes, len(nodes) - 1)]
        spreads.append(np.ptp([features for features, _ in every], axis=0))
    space = source.lines(np.ones(2, np.bool_), np.zeros(2))
    np.testing.assert_allclose(space.spread, np.mean(spreads, axis=0))


def problem_of(source: GraphSource, threads: int = 1, **more: object) -> Problem:
    made = nothing(SPACE, PER)
    return Problem(made, PER, source=source, threads=threads, **more)  # type: ignore[arg-type]


@settings(max_examples=10)
@given(text=texts, start=vectors, other=vectors, seed=st.integers(0, 99))
def test_mert_is_never_worse_than_where_it_starts(
    text: Text,
    start: NDArray[np.float64],
    other: NDArray[np.float64],
    seed: int,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    start = start + 0.01
    source = source_of(text, tmp_path_factory.mktemp("graph"))
    problem = problem_of(source, starts=(other,))
    options = MertOptions(restarts=2, polish=2)
    found = mert(problem, start, np.random.default_rng(seed), options)
    assert found.score == source.score(found.weights) == corpus_score(problem, found.weights)
    assert found.score >= source.score(start / np.abs(start).sum()) - 1e-12
    if other.any():
        assert found.score >= source.score(other / np.abs(other).sum()) - 1e-12


def test_inactive_features_keep_their_weights(tmp_path: Path) -> None:
    nodes = [[Edge((b"w0",), 1, (1.0, 0.0)), Edge((b"w9",), 1, (0.0, 1.0))]]
    source = source_of([[nodes]], tmp_path)
    space = source.lines(np.array([True, False]), np.array([5.0, 2.0]))
    np.testing.assert_array_equal(space.at(np.array([3.0])), [3.0, 2.0])
    ((thresholds, scores),) = space.along_axes(np.array([0]), space.at(np.zeros(1)))
    np.testing.assert_allclose(thresholds, [2.0])
    assert scores[0] < scores[1]


def test_sentences_without_graphs_are_ignored(tmp_path: Path) -> None:
    nodes = [[Edge((b"w0",), 1, (1.0, 0.0)), Edge((b"w3", b"w5"), 1, (0.0, 1.0))]]
    graph = graph_of(nodes, tmp_path)
    references = [[b"x y", REFERENCE, b"z"]]
    whole = graph_source([[], [graph], []], SPACE, PER, PER.prepare(references), 1)
    alone = graph_source([[graph]], SPACE, PER, PER.prepare([[REFERENCE]]), 1)
    for weights in (np.array([1.0, 0.0]), np.array([0.0, 1.0])):
        assert whole.score(weights) == alone.score(weights)


def test_invalid_graphs_are_rejected(tmp_path: Path) -> None:
    graph = graph_of([[Edge((b"a",), 1, (1.0, 0.0))]], tmp_path)
    prepared = PER.prepare([[b"a", b"b"]])
    with pytest.raises(DataError, match="no search graphs"):
        graph_source([[], []], SPACE, PER, prepared, 1)
    with pytest.raises(DataError, match="3 sentences"):
        graph_source([[graph]] * 3, SPACE, PER, prepared, 1)
    nodes = [[Edge((b"a",), 1, (0.0, 0.0))]]
    nodes += [[Edge((head, head), 1, (0.0, 0.0))] for head in range(70)]
    source = graph_source([[graph], [graph_of(nodes, tmp_path)]], SPACE, PER, prepared, 1)
    space = source.lines(np.ones(2, np.bool_), np.zeros(2))
    with pytest.raises(DataError, match=r"sentence 1: .*edges"):
        space.decode(space.at(np.ones(2)))
    with pytest.raises(DataError, match=r"sentence 1: .*edges"):
        list(space.along_axes(np.array([0]), space.at(np.ones(2))))


class Recorded:
    """Some recorded graphs, pruned so that a search is quick."""

    def __init__(self, multi30k: Path, sentences: Sequence[int], edges: int | None) -> None:
        forest = multi30k / "forest"
        files = [read_recorded(multi30k, k) for k in sentences]
        self.names = files[0].names
        columns = {name: column for column, name in enumerate(self.names)}
        rows = (forest / "hypergraph" / "weights").read_text().split("\n")
        known = dict(row.split() for row in rows if row)
        self.weights = np.array([float(known[name]) for name in self.names])
        self.graphs = [Hypergraph.of_file(file, columns) for file in files]
        if edges is not None:
            single = self.weights.astype(np.float32)
            self.graphs = [prune_to_edges(graph, single, edges) for graph in self.graphs]
        lines = read_reference(multi30k / "text" / "dev.en")
        self.bleu = metric("BLEU", "")
        self.prepared = self.bleu.prepare([[lines[k] for k in sentences]])
        self.space = FeatureSpace.of_names(self.names)

    def source(self, threads: int) -> GraphSource:
        each = [[graph] for graph in self.graphs]
        return graph_source(each, self.space, self.bleu, self.prepared, threads)

    def totals(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Statistics of the best derivations, without any of what is tested."""
        totals = np.zeros(9)
        for number, graph in enumerate(self.graphs):
            edges = viterbi(graph, graph.edge_scores(weights)).edges
            words = graph.translation(edges)
            assert (words[0], words[-1]) == (b"<s>", b"</s>")
            text = b" ".join(words[1:-1])
            buffer, ends = np.frombuffer(text, np.uint8), np.array([len(text)])
            ids = np.array([number])
            totals += self.bleu.statistics(self.prepared, ids, buffer, ends * 0, ends)[0]
        return totals


def test_scores_of_recorded_graphs_match_decoding(multi30k: Path) -> None:
    made = Recorded(multi30k, [0, 5, 17, 23, 42, 59], None)
    source = made.source(2)
    n = len(made.names)
    space = source.lines(np.ones(n, np.bool_), made.weights)
    rng = np.random.default_rng(5)
    directions = rng.normal(size=(3, n))
    point = space.at(made.weights)
    axes = np.array([made.names.index("LM0"), made.names.index("WordPenalty0")])
    surfaces = [*space.along_axes(axes, point), *space.along(directions, point)]
    checked = 0
    for direction, (thresholds, scores) in zip(
        [*np.eye(n)[axes], *directions], surfaces, strict=True
    ):
        for place in rng.choice(len(scores), 12):
            x = middles(thresholds)[place]
            if np.abs(thresholds - x).min() > 1e-9:
                totals = made.totals(made.weights + x * direction)
                assert scores[place] == float(made.bleu.score(totals))
                checked += 1
    assert checked > 50


def test_results_on_recorded_graphs_do_not_depend_on_threads(multi30k: Path) -> None:
    made = Recorded(multi30k, range(8), 400)
    found = []
    for threads in (1, 3):
        source = made.source(threads)
        active = np.array([name != "UnknownWordPenalty0" for name in made.names])
        problem = Problem(
            nothing(made.space, made.bleu), made.bleu, active, threads=threads, source=source
        )
        options = MertOptions(restarts=2, polish=2, random_directions=2)
        found.append(mert(problem, made.weights, np.random.default_rng(3), options))
    assert found[0].weights.tobytes() == found[1].weights.tobytes()
    assert found[0].score == float(made.bleu.score(made.totals(found[0].weights)))
    assert found[0].score > float(made.bleu.score(made.totals(made.weights)))
