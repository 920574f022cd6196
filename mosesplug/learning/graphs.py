"""Read the search graphs of a tuning set, and make an optimizer's problem of them.

A directory (``0.gz``, ``1.gz``, ... and ``weights``, as Moses writes it) or a file is one decoding
of the tuning set. The graphs of several decodings are used together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.graphs.any_graph import Scan, detect_graph_kind, read_graph, read_graphs
from formats.graphs.hypergraph import (
    GraphColumns,
    HypergraphFile,
    hypergraph_names,
    infer_groups,
    list_hypergraph_files,
)
from formats.graphs.parsed import ParsedGraphs
from formats.moses.ini_features import UNKNOWN_WORD
from formats.weights.any_format import WeightFile
from formats.weights.files import read_sparse
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.pruning import prune_to_edges
from mosesplug.hypergraph import Hypergraph
from mosesplug.large_arrays import keep_freed_memory
from mosesplug.learning.lists.merging import References, name_references, read_lines_of
from mosesplug.learning.weights import (
    StartingWeights,
    find_graph_weights,
    read_starting_weights,
)
from mosesplug.metrics import Metric, PreparedReferences
from mosesplug.optimizers import Algorithm, Problem
from mosesplug.sentence_ids import arrange_lines
from mosesplug.tuning.graphs.problem import add_graphs
from mosesplug.tuning.graphs.reading import start_reading
from mosesplug.tuning_set import TuningSet
from mosesplug.user_cache import open_parsed_graphs


@dataclass(frozen=True)
class TuningGraphs:
    """The search graphs of a tuning set.

    Attributes:
        space: the features; those that are not tuned are in the sparse tail.
        is_fixed: bool ``[len(space)]``, the features that are not tuned.
        start: the starting weights, with the weights of features that are not tuned.
        sentences: the graphs of each sentence, by sentence id.
        references: ``references[k][sentence_id]``.
        prepared_references: the references compiled for the metric.
        n_edges: number of hyperedges of all graphs before pruning.
    """

    space: FeatureSpace
    is_fixed: NDArray[np.bool_]
    start: StartingWeights
    sentences: Sequence[Sequence[Hypergraph]]
    references: Sequence[Sequence[bytes]]
    prepared_references: PreparedReferences
    n_edges: int

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have a graph."""
        return sum(1 for graphs in self.sentences if graphs)

    @property
    def n_graphs(self) -> int:
        """Number of graphs."""
        return sum(len(graphs) for graphs in self.sentences)

    @property
    def n_kept(self) -> int:
        """Number of hyperedges after pruning."""
        return sum(graph.n_edges for graphs in self.sentences for graph in graphs)


def load_graphs(
    places: Sequence[Path],
    references: References,
    metric: Metric,
    *,
    init: WeightFile | None = None,
    sparse_init: Path | None = None,
    edges: int = 0,
    names: Sequence[str] | None = None,
    ids: bool | None = None,
    threads: int = 1,
    loaded: Callable[[int], None] = lambda done: None,
) -> TuningGraphs:
    """Read search graphs, and prune them if ``edges`` is not 0.

    Args:
        places: directories or files of graphs, one for each decoding of the tuning set.
        references: the reference, the prefix of several, or their lines.
        metric: the metric that the references are compiled for.
        init: starting weights; None: those that the first graphs were made with, or equal ones if
            these are unknown.
        sparse_init: a file of sparse weights, which replace those of the first graphs, if there is
            no ``init``.
        edges: number of hyperedges to keep of each graph for each word of the shortest reference,
            those of the best derivations at the starting weights, with ties. 0 keeps all.
        names: one for each dense value, for graphs without names (Moses' extended search graphs).
        ids: whether references begin with sentence ids; see ``begins_with_ids``.
        loaded: called with the number of places that have been read.

    Raises:
        FormatError: a file is not a search graph, a weight file, or a reference.
        DataError: graphs have different features, or sentences that the references lack.
    """
    lines = arrange_lines(read_lines_of(references), (), name_references(references), ids)
    prepared = metric.prepare(lines)
    core = None if names is None else hypergraph_names(FeatureSpace.of_names(names).groups)
    reader = _GraphReader(init, sparse_init, _decoder_weights(places[0]))
    sentences: list[list[Hypergraph]] = [[] for _ in lines[0]]
    n_edges = 0
    for done, place in enumerate(places, start=1):
        seen: set[int] = set()
        with _open_graphs(place, core, threads) as files:
            for number, file in files:
                if number in seen:
                    raise DataError(f"{file.path}: second search graph of sentence {number}")
                if number >= len(sentences):
                    raise DataError(
                        f"{file.path}: search graph of sentence {number}, but "
                        f"{name_references(references)} has "
                        f"{len(sentences)} lines. Sentence ids count from 0."
                    )
                seen.add(number)
                shortest = min(len(each[number].split()) for each in lines)
                kept = edges * shortest if edges else None
                sentences[number].append(reader.graph(file, kept))
                n_edges += len(file.tail_offsets) - 1
        loaded(done)
    space = reader.space
    fixed = np.array([name in reader.fixed for name in space.names], dtype=np.bool_)
    return TuningGraphs(space, fixed, reader.start(), sentences, lines, prepared, n_edges)


def check_graph_learner(algorithm: Algorithm, metric: Metric) -> None:
    """Check that an algorithm can learn from search graphs with a metric.

    Raises:
        UsageError: it learns from n-best lists only, or does not support this metric.
    """
    if not algorithm.graphs:
        raise UsageError(f"--algorithm {algorithm.name} learns from n-best lists only")
    if not algorithm.can_learn_from_graphs(metric):
        raise UsageError(
            f"--algorithm {algorithm.name} learns from search graphs by BLEU with case, not by "
            f"{metric.signature()}"
        )


def make_graph_problem(
    graphs: TuningGraphs, metric: Metric, algorithm: Algorithm, threads: int
) -> Problem:
    """Return the problem that an algorithm solves on search graphs.

    Args:
        algorithm: one that ``check_graph_learner`` accepts with this metric.
    """
    problem = Problem(
        _empty_tuning_set(graphs.space, metric),
        metric,
        minima=graphs.start.minima,
        maxima=graphs.start.maxima,
        threads=threads,
        is_fixed=graphs.is_fixed,
    )
    words = [[line.split() for line in each] for each in zip(*graphs.references, strict=True)]
    return add_graphs(problem, algorithm, graphs.sentences, words, graphs.prepared_references)


def select_sentences(
    graphs: TuningGraphs, positions: NDArray[np.int64], metric: Metric
) -> TuningGraphs:
    """Return the graphs of some sentences, in the given order.

    Args:
        metric: the metric that the references are compiled for.
    """
    places = positions.tolist()
    references = [[each[place] for place in places] for each in graphs.references]
    return replace(
        graphs,
        sentences=[graphs.sentences[place] for place in places],
        references=references,
        prepared_references=metric.prepare(references),
    )


def _empty_tuning_set(space: FeatureSpace, metric: Metric) -> TuningSet:
    """Return a tuning set without sentences."""
    return TuningSet(
        space,
        np.zeros(0, np.int64),
        np.zeros(1, np.int64),
        np.zeros((0, space.n_dense), np.float32),
        None,
        np.zeros((0, metric.n_statistics), np.int32),
        np.zeros(0, np.int32),
    )


def _decoder_weights(place: Path) -> Mapping[str, float]:
    """Return the weights that graphs were made with, by the names that graphs have."""
    path = find_graph_weights([place])
    return {} if path is None else read_sparse(path)


@contextmanager
def _open_graphs(
    place: Path, core: Sequence[str] | None, threads: int
) -> Iterator[Iterator[tuple[int, HypergraphFile]]]:
    """Yield the graphs of one decoding with their sentence ids."""
    if not place.is_dir():
        yield read_graphs(place, core_names=core)
        return
    paths, parsed = list_hypergraph_files(place), open_parsed_graphs()
    keep_freed_memory()  # in the other processes, too
    with start_reading(partial(_read_graph, core, parsed), [*paths.values()], threads) as files:
        yield zip(paths, files, strict=True)


def _read_graph(
    core: Sequence[str] | None, parsed: ParsedGraphs, path: Path, scan: Scan | None
) -> HypergraphFile:
    """Read one graph of a directory."""
    if detect_graph_kind(path) == "hypergraph":  # which needs no names
        return parsed.read(path, lambda: read_graph(path, "hypergraph", scan=scan))
    found = list(read_graphs(path, core_names=core))
    if len(found) != 1:
        raise DataError(
            f"{path}: search graphs of {len(found)} sentences. Give the file itself, not "
            "its directory."
        )
    return found[0][1]


class _GraphReader:
    """Maps features to columns; the first graph with features sets the dense ones."""

    def __init__(
        self,
        init: WeightFile | None,
        sparse_init: Path | None,
        decoded_with: Mapping[str, float],
    ) -> None:
        self._init = init
        self._sparse_init = sparse_init
        self._decoded_with = decoded_with
        self._columns: GraphColumns | None = None
        self._dense = StartingWeights(np.zeros(0))

    @property
    def fixed(self) -> frozenset[str]:
        return frozenset() if self._columns is None else self._columns.fixed

    @property
    def space(self) -> FeatureSpace:
        """The features of the graphs that have been read."""
        if self._columns is None:
            raise DataError("there are no search graphs to tune on, or none of them has features")
        return FeatureSpace(self._columns.groups, tuple(self._columns.sparse))

    def graph(self, file: HypergraphFile, edges: int | None) -> Hypergraph:
        """Return a graph, pruned to ``edges`` hyperedges of its best derivations."""
        if self._columns is None and file.names:
            self._begin(file.names)
        columns = self._columns or GraphColumns(())
        try:
            graph = Hypergraph.of_file(file, columns.of(file.names))
        except KeyError as error:
            raise DataError(
                f"{file.path}: unknown dense feature {error.args[0]}; the first graph has "
                f"{spelled_groups(columns.groups)}. Use graphs of one system."
            ) from None
        if edges is None:
            return graph
        weights = np.concatenate([self._dense.weights, self._sparse_weights(columns)])
        try:
            return prune_to_edges(graph, weights.astype(np.float32), edges)
        except DataError as error:
            raise DataError(f"{file.path}: {error}") from None

    def start(self) -> StartingWeights:
        """Return the starting weights of all features."""
        columns = self._columns or GraphColumns(())
        box = (self._dense.minima, self._dense.maxima)
        n = len(columns.sparse)
        low, high = (
            None if end is None else np.append(end, np.full(n, side))
            for side, end in enumerate(box)
        )
        return StartingWeights(
            np.append(self._dense.weights, self._sparse_weights(columns)), low, high
        )

    def _begin(self, names: Sequence[str]) -> None:
        """Set the dense features and their starting weights."""
        fixed = [name for name in names if name.startswith(UNKNOWN_WORD)]
        groups = infer_groups(names, fixed)
        self._columns = GraphColumns(groups, fixed=fixed)
        dense = hypergraph_names(groups)
        default = None
        if all(name in self._decoded_with for name in dense):
            default = np.array([self._decoded_with[name] for name in dense])
        self._dense = read_starting_weights(FeatureSpace(groups), self._init, default=default)

    def _sparse_weights(self, columns: GraphColumns) -> NDArray[np.float64]:
        """Return the weights of the sparse and fixed features."""
        if not columns.sparse:
            return np.zeros(0)  # nor read the files of sparse weights that a moses.ini names
        return np.array(
            [
                self._decoded_with.get(name, 1.0)
                if name in columns.fixed
                else self._known_sparse.get(name, 0.0)
                for name in columns.sparse
            ]
        )

    @cached_property
    def _known_sparse(self) -> Mapping[str, float]:
        if self._init is not None:
            return self._init.sparse_by_name
        return self._decoded_with if self._sparse_init is None else read_sparse(self._sparse_init)
