"""Tuning without a decoder on existing search graphs: directories or files in, weights out.

A directory (``0.gz``, ``1.gz``, ... and ``weights``, as Moses leaves it) or a file is one decoding
of the text; the graphs of several decodings are used together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.graphs.any_graph import read_graphs
from formats.graphs.hypergraph import hypergraph_names
from formats.graphs.hypergraph_directory import hypergraph_files
from formats.graphs.hypergraph_features import GraphColumns, groups_of_graph
from formats.graphs.hypergraph_reader import HypergraphFile
from formats.references import read_references
from formats.weights.files import read_sparse
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.graph_search import GraphSearch
from mosesplug.forest.line_search.graph_space import graph_source
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgrams
from mosesplug.forest.pruning import pruned
from mosesplug.forest.search_graph import search_graph
from mosesplug.forest.union import united
from mosesplug.hypergraph import Hypergraph
from mosesplug.learning.start import Start, read_start
from mosesplug.learning.weighted_graphs import weights_beside
from mosesplug.metrics import Metric, Prepared
from mosesplug.optimizers import Algorithm, Problem
from mosesplug.tuning.graphs.features import UNKNOWN_WORD
from mosesplug.tuning.parallel.ordered_map import start_in_order
from mosesplug.tuning_set import TuningSet

__all__ = [
    "Graphs",
    "Starts",
    "check_learner",
    "graph_problem",
    "load_graphs",
    "some_sentences",
    "without_lists",
]

Path_ = str | PathLike[str]


@dataclass(frozen=True)
class Starts:
    """Files of starting weights.

    Attributes:
        dense: any that ``read_start`` takes; None: the weights that the first graphs were made
            with, or where there are none, all equal.
        sparse: of sparse features, ``name value``.
    """

    dense: Path | None = None
    sparse: Path | None = None


@dataclass(frozen=True)
class Graphs:
    """Search graphs of a text, and where they came from.

    Attributes:
        space: their features; those that are not tuned are in the sparse tail.
        fixed: bool ``[len(space)]``; features that are not tuned.
        start: where to start; with the weights of features that are not tuned.
        sentences: the graphs of each line of the references.
        references: ``references[k][line]``.
        prepared: the references compiled for the metric.
        n_edges: of all graphs as they were read.
    """

    space: FeatureSpace
    fixed: NDArray[np.bool_]
    start: Start
    sentences: Sequence[Sequence[Hypergraph]]
    references: Sequence[Sequence[bytes]]
    prepared: Prepared
    n_edges: int

    @property
    def n_sentences(self) -> int:
        """Sentences that have a graph."""
        return sum(1 for graphs in self.sentences if graphs)

    @property
    def n_graphs(self) -> int:
        """Graphs of all sentences."""
        return sum(len(graphs) for graphs in self.sentences)

    @property
    def n_kept(self) -> int:
        """Edges that were kept."""
        return sum(graph.n_edges for graphs in self.sentences for graph in graphs)


def load_graphs(
    places: Sequence[Path],
    references: Path_,
    metric: Metric,
    *,
    starts: Starts,
    edges: int = 0,
    names: Sequence[str] | None = None,
    threads: int = 1,
    loaded: Callable[[int], None] = lambda done: None,
) -> Graphs:
    """Read search graphs, and cut them down if that is asked for.

    Args:
        places: directories or files of graphs, one for each decoding of the text.
        references: the reference, or the prefix of several.
        metric: for which the references are compiled.
        starts: starting weights.
        edges: how many are kept of a graph, on the best derivations at the starting weights, for
            each word of the shortest reference; those as good as the last of them stay too. 0
            keeps all.
        names: one a dense value, where graphs do not name them (Moses' extended search graphs).
        threads: how many processes may read.
        loaded: told how many places are done.

    Raises:
        FormatError: a file that is no search graph, no weights, or no reference.
        DataError: graphs that do not go together, or not with the references.
    """
    lines = read_references(references)
    prepared = metric.prepare(lines)
    core = None if names is None else hypergraph_names(FeatureSpace.of_names(names).groups)
    reading = _Reading(starts, _made_with(places[0]))
    sentences: list[list[Hypergraph]] = [[] for _ in lines[0]]
    n_edges = 0
    for done, place in enumerate(places, start=1):
        seen: set[int] = set()
        with _files(place, core, threads) as files:
            for number, file in files:
                if number in seen:
                    raise DataError(f"{file.path} is a second search graph of sentence {number}")
                if number >= len(sentences):
                    raise DataError(
                        f"{file.path} is of sentence {number}, and {references} has "
                        f"{len(sentences)} lines: the first belongs to sentence 0"
                    )
                seen.add(number)
                shortest = min(len(each[number].split()) for each in lines)
                kept = edges * shortest if edges else None
                sentences[number].append(reading.graph(file, kept))
                n_edges += len(file.tail_offsets) - 1
        loaded(done)
    space = reading.space
    fixed = np.array([name in reading.fixed for name in space.names], dtype=np.bool_)
    return Graphs(space, fixed, reading.start(), sentences, lines, prepared, n_edges)


def check_learner(algorithm: Algorithm, metric: Metric) -> None:
    """Refuse what cannot learn from search graphs.

    Raises:
        UsageError: the algorithm learns from lists only, or not by this metric.
    """
    if algorithm.graphs is None:
        raise UsageError(f"--algorithm {algorithm.name} learns from n-best lists only")
    if algorithm.graphs == "search" and not metric.can_search_graphs:
        raise UsageError(
            f"--algorithm {algorithm.name} learns from search graphs by BLEU with case, not by "
            f"{metric.signature()}"
        )


def graph_problem(graphs: Graphs, metric: Metric, algorithm: Algorithm, threads: int) -> Problem:
    """The graphs as an algorithm learns from them, with the box of the starting weights.

    Args:
        graphs: what to learn from.
        metric: for which they were read.
        algorithm: learns from graphs by this metric.
        threads: how many may work at once.

    Raises:
        DataError: there is no graph.
    """
    problem = Problem(
        without_lists(graphs.space, metric),
        metric,
        minima=graphs.start.minima,
        maxima=graphs.start.maxima,
        threads=threads,
        fixed=graphs.fixed,
    )
    if algorithm.graphs == "source":
        source = graph_source(graphs.sentences, graphs.space, metric, graphs.prepared, threads)
        return replace(problem, source=source)
    words = ([line.split() for line in each] for each in zip(*graphs.references, strict=True))
    found = [
        search_graph(united(each), ReferenceNgrams.of(said))
        for each, said in zip(graphs.sentences, words, strict=True)
        if each
    ]
    return replace(problem, search=GraphSearch(found))


def some_sentences(graphs: Graphs, positions: NDArray[np.int64], metric: Metric) -> Graphs:
    """The graphs of the sentences at some positions, in that order.

    Args:
        graphs: of all sentences.
        positions: int64, lines of the references.
        metric: for which the references are compiled.
    """
    places = positions.tolist()
    references = [[each[place] for place in places] for each in graphs.references]
    return replace(
        graphs,
        sentences=[graphs.sentences[place] for place in places],
        references=references,
        prepared=metric.prepare(references),
    )


def without_lists(space: FeatureSpace, metric: Metric) -> TuningSet:
    """No hypotheses, of any sentence."""
    return TuningSet(
        space,
        np.zeros(0, np.int64),
        np.zeros(1, np.int64),
        np.zeros((0, space.n_dense), np.float32),
        None,
        np.zeros((0, metric.n_statistics), np.int32),
        np.zeros(0, np.int32),
    )


def _made_with(place: Path) -> Mapping[str, float]:
    """The weights that graphs were made with, by the names that graphs have."""
    path = weights_beside([place])
    return {} if path is None else read_sparse(path)


@contextmanager
def _files(
    place: Path, core: Sequence[str] | None, processes: int
) -> Iterator[Iterator[tuple[int, HypergraphFile]]]:
    """The graphs of one decoding with the numbers of their sentences."""
    if not place.is_dir():
        yield read_graphs(place, core_names=core)
        return
    paths = hypergraph_files(place)
    with start_in_order(partial(_read, list(paths.values()), core), len(paths), processes) as files:
        yield zip(paths, files, strict=True)


def _read(paths: Sequence[Path], core: Sequence[str] | None, number: int) -> HypergraphFile:
    """One graph of a directory."""
    found = list(read_graphs(paths[number], core_names=core))
    if len(found) != 1:
        raise DataError(
            f"{paths[number]} has the search graphs of {len(found)} sentences: name the file "
            "itself, not its directory"
        )
    return found[0][1]


class _Reading:
    """Graphs of one system, as they come; the first that has features says which there are."""

    def __init__(self, starts: Starts, made_with: Mapping[str, float]) -> None:
        self._starts = starts
        self._made_with = made_with
        self._sparse = {} if starts.dense is not None else made_with
        if starts.sparse is not None:
            self._sparse = read_sparse(starts.sparse)
        self._columns: GraphColumns | None = None
        self._dense = Start(np.zeros(0))

    @property
    def fixed(self) -> frozenset[str]:
        """Features that are not tuned."""
        return frozenset() if self._columns is None else self._columns.fixed

    @property
    def space(self) -> FeatureSpace:
        """The features that were seen.

        Raises:
            DataError: none was.
        """
        if self._columns is None:
            raise DataError("there are no search graphs to tune on, or none that has features")
        return FeatureSpace(self._columns.groups, tuple(self._columns.sparse))

    def graph(self, file: HypergraphFile, edges: int | None) -> Hypergraph:
        """A graph, or so many edges of its best derivations.

        Raises:
            DataError: it has other dense features than the first, or cannot be cut down.
        """
        if self._columns is None and file.names:
            self._begin(file.names)
        columns = self._columns or GraphColumns(())
        try:
            graph = Hypergraph.of_file(file, columns.of(file.names))
        except KeyError as error:
            raise DataError(
                f"{file.path} has the feature {error.args[0]}, and the dense features of the "
                f"first graph are {spelled_groups(columns.groups)}: are both of one system?"
            ) from None
        if edges is None:
            return graph
        weights = np.concatenate([self._dense.weights, self._tail(columns)])
        try:
            return pruned(graph, weights.astype(np.float32), edges)
        except DataError as error:
            raise DataError(f"{file.path}: {error}") from None

    def start(self) -> Start:
        """The starting point of all features."""
        columns = self._columns or GraphColumns(())
        box = (self._dense.minima, self._dense.maxima)
        n = len(columns.sparse)
        low, high = (
            None if end is None else np.append(end, np.full(n, side))
            for side, end in enumerate(box)
        )
        return Start(np.append(self._dense.weights, self._tail(columns)), low, high)

    def _begin(self, names: Sequence[str]) -> None:
        """Say which features there are, and where the dense ones start."""
        fixed = [name for name in names if name.startswith(UNKNOWN_WORD)]
        groups = groups_of_graph(names, fixed)
        self._columns = GraphColumns(groups, fixed=fixed)
        dense = hypergraph_names(groups)
        if self._starts.dense is not None:
            self._dense = read_start(self._starts.dense, FeatureSpace(groups))
        elif all(name in self._made_with for name in dense):
            self._dense = Start(np.array([self._made_with[name] for name in dense]))
        else:
            self._dense = Start(np.full(len(dense), 1.0 / max(1, len(dense))))

    def _tail(self, columns: GraphColumns) -> NDArray[np.float64]:
        """Weights of the features behind the dense ones."""
        return np.array(
            [
                self._made_with.get(name, 1.0)
                if name in columns.fixed
                else self._sparse.get(name, 0.0)
                for name in columns.sparse
            ]
        )
