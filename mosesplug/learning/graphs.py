"""Read the search graphs of a tuning set to learn from.

A directory (``0.gz``, ``1.gz``, ... and ``weights``, as Moses writes it) or a file is one decoding
of the tuning set. The graphs of several decodings are used together.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import (
    GraphColumns,
    HypergraphFile,
    hypergraph_names,
    infer_groups,
)
from formats.moses.ini_features import UNKNOWN_WORD
from formats.weights.any_format import WeightFile
from formats.weights.files import read_sparse
from mosesplug.arrays import Weights
from mosesplug.errors import DataError, UsageError, count_noun, explain_unknown_feature
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.pruning import prune_to_edges
from mosesplug.hypergraph import Hypergraph
from mosesplug.large_arrays import keep_freed_memory
from mosesplug.learning.inputs import GivenData, LearningData, count_sentences
from mosesplug.learning.lists.merging import References, name_references, read_lines_of
from mosesplug.learning.weights import (
    StartingWeights,
    find_graph_weights,
    read_initial_weights,
    read_starting_weights,
)
from mosesplug.metrics import Metric
from mosesplug.optimizers import Problem, Progress
from mosesplug.optimizers import algorithm as find_algorithm
from mosesplug.sentence_ids import arrange_lines
from mosesplug.settings.learning import LearningSettings
from mosesplug.tuning.graphs.problem import add_graphs
from mosesplug.tuning.graphs.reading import open_graphs
from mosesplug.tuning_set import TuningSet
from mosesplug.user_cache import open_parsed_graphs


def read_graph_data(
    settings: LearningSettings,
    references: References,
    metric: Metric,
    progress: Progress,
    given: GivenData,
) -> LearningData:
    """Read search graphs to learn from; prune them if settings say so.

    Pruning keeps the hyperedges of the best derivations at the starting weights, with ties.

    Raises:
        UsageError: the algorithm learns from n-best lists only, or not by this metric.
        DataError: graphs have different features, or sentences that the references lack.
    """
    algorithm, threads = find_algorithm(settings.algorithm), settings.threads
    if not algorithm.graphs:
        raise UsageError(f"{{--algorithm}} {algorithm.name} learns from n-best lists only")
    if not algorithm.can_learn_from_graphs(metric):
        raise UsageError(
            f"{{--algorithm}} {algorithm.name} learns from search graphs by BLEU with case, not by "
            f"{metric.signature()}"
        )
    init = given.graph_start
    if init is not None:
        init = init.with_sparse(settings.sparse_init)
    elif settings.init is not None:
        init = read_initial_weights(settings.init, settings.sparse_init)
    name = name_references(references)
    lines = arrange_lines(read_lines_of(references), (), name, settings.lists.ids)
    signature = metric.prepare(lines).signature
    names = settings.lists.names if given.names is None else given.names
    core = None if names is None else hypergraph_names(FeatureSpace.of_names(names).groups)
    reader = _GraphReader(init, settings.sparse_init, settings.graphs[0])
    sentences: list[list[Hypergraph]] = [[] for _ in lines[0]]
    n_edges = 0
    parsed = open_parsed_graphs()
    keep_freed_memory()  # in the other processes, too
    for done, place in enumerate(settings.graphs, start=1):
        seen: set[int] = set()
        with open_graphs(place, core, threads, parsed) as files:
            for number, file in files:
                if number in seen:
                    raise DataError(f"{file.path}: second search graph of sentence {number}")
                if number >= len(sentences):
                    raise DataError(
                        f"{file.path}: search graph of sentence {number}, but {name} has "
                        f"{len(sentences)} lines. Sentence ids count from 0."
                    )
                seen.add(number)
                shortest = min(len(reference[number].split()) for reference in lines)
                edges = settings.hg_prune * shortest if settings.hg_prune else None
                sentences[number].append(reader.graph(file, edges))
                n_edges += len(file.tail_offsets) - 1
        progress(done, len(settings.graphs), "decodings")
    space, start = reader.space, reader.start()
    known = dict.fromkeys([*space.group_names, *space.sparse])
    if unknown := [name for name in given.graph_names if name not in known]:
        raise UsageError(
            f"the starting weights of search graphs: {explain_unknown_feature(unknown[0], known)}"
        )
    bare = Problem(
        _empty_tuning_set(space, metric, len(sentences)),
        metric,
        minima=start.minima,
        maxima=start.maxima,
        threads=threads,
        is_fixed=np.array([name in reader.fixed for name in space.names], dtype=np.bool_),
    )

    def take_sentences(problem: Problem, numbers: NDArray[np.int64]) -> Problem:
        """Return a problem on the graphs of some sentences."""
        own = [[reference[number] for number in numbers.tolist()] for reference in lines]
        words = [
            [line.split() for line in sentence_lines] for sentence_lines in zip(*own, strict=True)
        ]
        graphs = [sentences[number] for number in numbers.tolist()]
        weights = problem.tuning_set.sentence_weights
        own_weights = None if weights is None else weights[numbers]
        part = add_graphs(bare, algorithm, graphs, words, metric.prepare(own), own_weights)
        lengths = problem.source_lengths
        own_lengths = None if lengths is None else lengths[numbers]
        return replace(problem, source=part.source, source_lengths=own_lengths)

    filled = np.array([n for n, graphs in enumerate(sentences) if graphs], dtype=np.int64)
    graphs = [graph for own in sentences for graph in own]
    n_kept = sum(graph.n_edges for graph in graphs)
    data = LearningData(
        take_sentences(bare, np.arange(len(sentences))),
        start,
        f"{count_sentences(len(filled), len(sentences))}, "
        f"{count_noun(len(graphs), 'search graph')}, "
        f"{n_kept} of {n_edges} edges, {count_noun(len(space), 'feature')}",
        signature,
        filled,
        take_sentences,
    )
    return data.note_missing(len(sentences), "search graphs", "graphs")


def _empty_tuning_set(space: FeatureSpace, metric: Metric, n_sentences: int) -> TuningSet:
    """Return a tuning set of sentences without hypotheses."""
    return TuningSet(
        space,
        np.arange(n_sentences),
        np.zeros(n_sentences + 1, np.int64),
        np.zeros((0, space.n_dense), np.float32),
        None,
        np.zeros((0, metric.n_statistics), np.int32),
        np.zeros(0, np.int32),
    )


class _GraphReader:
    """Maps features to columns; the first graph with features sets the dense ones."""

    def __init__(
        self,
        init: WeightFile | None,
        sparse_init: Path | None,
        place: Path,
    ) -> None:
        """Set the starting weights: ``init``, else those that made the graphs."""
        self._init, self._sparse_init = init, sparse_init
        path = find_graph_weights([place])
        self._decoded_with: Mapping[str, float] = {} if path is None else read_sparse(path)
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

    def _sparse_weights(self, columns: GraphColumns) -> Weights:
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
