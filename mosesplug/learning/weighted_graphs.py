"""Read search graphs with the weights of their features, sentence by sentence."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from os import fspath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.graphs.any_graph import read_graphs
from formats.graphs.hypergraph import GraphColumns, HypergraphFile, hypergraph_names, infer_groups
from formats.moses.ini_features import UNKNOWN_WORD
from formats.weights.any_format import WeightFile, name_as_in_graphs
from formats.weights.named import read_named_weights
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.n_best import GraphFeatures
from mosesplug.forest.scanner import choose_scan
from mosesplug.forest.union import unite_graphs
from mosesplug.hypergraph import Hypergraph
from mosesplug.learning.lengths import require_undivided
from mosesplug.learning.made_features import check_made_features
from mosesplug.learning.sparse_coverage import SparseCoverage
from mosesplug.learning.weights import find_graph_weights
from mosesplug.tuning.graphs.features import (
    UNTUNED,
    ConfiguredFeatures,
    parse_configured_features,
)


@dataclass(frozen=True)
class GraphWeights:
    """Weights of the features of search graphs.

    Attributes:
        groups: names and widths of the dense feature functions, as in n-best lists.
        dense: one weight for each of their values.
        sparse: weights of sparse features, by name.
        fixed_weights: weights of features that are not tuned, by their names in graphs.
        core: names of the dense features of graphs that do not name them (Moses' extended search
            graphs); None if unknown.
    """

    groups: tuple[tuple[str, int], ...]
    dense: tuple[float, ...]
    sparse: Mapping[str, float]
    fixed_weights: Mapping[str, float]
    core: tuple[str, ...] | None = None


@dataclass(frozen=True)
class WeightedGraph:
    """The search graph of one sentence, or the union of several.

    Attributes:
        names: names of its features in the files.
        features: the features of its columns.
        weights: float64 ``[n_columns]``.
        scores: float64 ``[n_edges]``, the model scores of its hyperedges.
    """

    sentence: int
    source: str
    graph: Hypergraph
    names: tuple[str, ...]
    features: GraphFeatures
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]


def read_graph_weights(file: WeightFile | None, places: Sequence[Path]) -> GraphWeights | None:
    """Return the weights of search graphs.

    Args:
        file: weights with names; None: those of the file that ``find_graph_weights`` finds. Sparse
            weights of a second file replace those of a ``moses.ini`` and are added to those of
            other files.

    Returns:
        The weights, or None if there is no file. ``UnknownWordPenalty0`` has weight 1, as in Moses,
        unless the file has another.

    Raises:
        FormatError: the file has another format, or numbers without names.
        UsageError: the weights are of scores divided by a length, or of features that were added
            to lists.
    """
    if file is None:
        path = find_graph_weights(places)
        if path is None:
            return None
        file = read_named_weights(path)
    require_undivided(file, "a search graph")
    check_made_features(file, (), "a search graph")
    if file.numbers and file.format != "kbmira":
        raise FormatError(
            "numbers without names",
            path=file.path,
            remedy="The features of search graphs have names: use Name= value lines or a moses.ini",
        )
    if file.ini is not None:
        return _read_configured(parse_configured_features(file.ini), file.all_sparse)
    # kbmira numbers the features of graphs that have no names.
    numbered = {f"F{place}": value for place, value in enumerate(file.numbers)}
    spelled = name_as_in_graphs(file.show, file.fixed_weights, file.path)
    known = {**numbered, **spelled, **file.sparse}
    fixed = {name: value for name, value in known.items() if name.startswith(UNKNOWN_WORD)}
    groups = infer_groups(tuple(known), tuple(fixed))
    names = hypergraph_names(groups)
    rest = {name: known[name] for name in known.keys() - {*names, *fixed}}
    if file.second is not None:
        rest |= file.second
    return GraphWeights(groups, tuple(known[name] for name in names), rest, {**UNTUNED, **fixed})


def _read_configured(features: ConfiguredFeatures, sparse: Mapping[str, float]) -> GraphWeights:
    values = (value for group in features.groups for value in group.values)
    dense = tuple(value for value in values if value is not None)
    return GraphWeights(features.columns, dense, sparse, features.fixed_weights, features.core)


def read_weighted_graphs(
    places: Sequence[Path], weights: GraphWeights | None
) -> Iterator[WeightedGraph]:
    """Yield the graphs of all sentences in ascending order.

    Memory holds one graph a place. Several graphs of one sentence are united. A sparse feature
    without a weight gets 0.

    Args:
        weights: None: weights of 0 for all features.

    Raises:
        DataError: a dense feature without a weight, or sentence ids that do not ascend in a place.
    """
    core = None if weights is None else weights.core
    coverage = SparseCoverage(lambda: weights.sparse if weights else (), "the file of weights")
    files = heapq.merge(*(_read_ascending(place, core) for place in places), key=itemgetter(0))
    for sentence, group in groupby(files, key=itemgetter(0)):
        own_files = [file for _, file in group]
        graph = _unite(sentence, own_files, weights)
        if weights is not None:
            coverage.add([n for n in graph.features.space.sparse if n not in weights.fixed_weights])
        yield graph
    coverage.warn(", ".join(map(str, places)))


def _read_ascending(
    place: Path, core: tuple[str, ...] | None
) -> Iterator[tuple[int, HypergraphFile]]:
    """Yield the graphs of one place, and check that their sentence ids ascend."""
    last = -1
    scan = choose_scan(place.iterdir() if place.is_dir() else [place])
    for number, file in read_graphs(place, core_names=core, scan=scan):
        if number <= last:
            raise DataError(
                f"{fspath(place)}: sentence ids do not ascend ({number} after {last}). Write one "
                "search graph for each sentence, sorted by sentence id."
            )
        last = number
        yield number, file


def _unite(
    sentence: int, files: Sequence[HypergraphFile], weights: GraphWeights | None
) -> WeightedGraph:
    """Return the union of the graphs of one sentence, with weights."""
    names = tuple(dict.fromkeys(name for file in files for name in file.names))
    if weights is None:
        weights = GraphWeights((), (), {}, dict.fromkeys(names, 0.0))
    columns = GraphColumns(weights.groups, fixed=tuple(weights.fixed_weights))
    graphs = []
    for file in files:
        try:
            graphs.append(Hypergraph.of_file(file, columns.of(file.names)))
        except KeyError as error:
            raise DataError(
                f"{file.path}: no weight for the dense feature {error.args[0]}; the weights are "
                f"for {spelled_groups(weights.groups)}"
            ) from None
    features = GraphFeatures(
        FeatureSpace(weights.groups, tuple(columns.sparse)), weights.fixed_weights
    )
    vector = features.vector(weights.dense, weights.sparse)
    graph = unite_graphs(graphs)
    return WeightedGraph(
        sentence, files[0].path, graph, names, features, vector, graph.edge_scores(vector)
    )
