"""Search graphs of files and directories, sentence by sentence, with weights for their features."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import itemgetter
from os import PathLike, fspath
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.graphs.any_graph import read_graphs
from formats.graphs.hypergraph import hypergraph_names
from formats.graphs.hypergraph_features import GraphColumns, groups_of_graph
from formats.graphs.hypergraph_reader import HypergraphFile
from formats.weights.any_format import spelled_in_graphs
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.n_best import GraphFeatures
from mosesplug.forest.union import united
from mosesplug.hypergraph import Hypergraph
from mosesplug.learning.weights import find_graph_weights, read_named_weights
from mosesplug.tuning.graphs.features import (
    UNKNOWN_WORD,
    UNTUNED,
    ConfiguredFeatures,
    features_of,
)

__all__ = [
    "GraphWeights",
    "WeightedGraph",
    "read_graph_weights",
    "weighted_graphs",
]

Path_ = str | PathLike[str]


@dataclass(frozen=True)
class GraphWeights:
    """Weights by the names of features.

    Attributes:
        groups: dense groups, as n-best lists have them.
        dense: one weight for each of their columns.
        sparse: of all other features that are tuned.
        fixed: of features that are not tuned, by their names in graphs.
        core: names of dense features where graphs do not name them (Moses' extended search
            graphs); None if the weights do not tell.
    """

    groups: tuple[tuple[str, int], ...]
    dense: tuple[float, ...]
    sparse: Mapping[str, float]
    fixed: Mapping[str, float]
    core: tuple[str, ...] | None = None


@dataclass(frozen=True)
class WeightedGraph:
    """The graph of one sentence, or the union of several.

    Attributes:
        sentence: its number.
        source: the file, for messages.
        graph: the graph.
        names: its features, as the files have them.
        features: its columns.
        weights: float64, one for each column.
        scores: float64 ``[n_edges]``.
    """

    sentence: int
    source: str
    graph: Hypergraph
    names: tuple[str, ...]
    features: GraphFeatures
    weights: NDArray[np.float64]
    scores: NDArray[np.float64]


def read_graph_weights(
    path: Path | None, sparse: Path | None, places: Sequence[Path]
) -> GraphWeights | None:
    """The weights of a file, or else those that the graphs were made with.

    Args:
        path: weights with names, of any format that ``formats.weights.any_format`` knows. None: as
            ``find_graph_weights`` finds it.
        sparse: weights of sparse features, ``name value``; of a ``moses.ini`` they take the place
            of its own, to others they are added.
        places: where the graphs are.

    Returns:
        None where there are none. ``UnknownWordPenalty0`` has weight 1, as in Moses, unless the
        file says otherwise.

    Raises:
        FormatError: it is no such file.
    """
    path = path or find_graph_weights(places)
    if path is None:
        return None
    given = read_named_weights(path, sparse)
    file = given.file
    if file.numbers and file.format != "kbmira":
        raise FormatError(
            "it holds numbers without names",
            path=path,
            remedy="Search graphs have names: give Name= value lines, or a moses.ini",
        )
    if file.ini is not None:
        return _configured(features_of(file.ini), given.sparse)
    # What kbmira writes may be meant so: its numbers are names where a decoder gave no others.
    numbered = {f"F{place}": value for place, value in enumerate(file.numbers)}
    spelled = spelled_in_graphs(file.show, file.fixed, file.path)
    known = {**numbered, **spelled, **file.sparse}
    fixed = {name: value for name, value in known.items() if name.startswith(UNKNOWN_WORD)}
    groups = groups_of_graph(tuple(known), tuple(fixed))
    names = hypergraph_names(groups)
    rest = {name: known[name] for name in known.keys() - {*names, *fixed}}
    if given.sparse_file is not None:
        rest |= given.sparse_file
    return GraphWeights(groups, tuple(known[name] for name in names), rest, {**UNTUNED, **fixed})


def _configured(features: ConfiguredFeatures, sparse: Mapping[str, float]) -> GraphWeights:
    """The weights of a configuration."""
    values = (value for group in features.groups for value in group.values)
    dense = tuple(value for value in values if value is not None)
    return GraphWeights(features.columns, dense, sparse, features.fixed, features.core)


def weighted_graphs(
    places: Sequence[Path], weights: GraphWeights | None
) -> Iterator[WeightedGraph]:
    """The graphs of all places by ascending sentences, one in memory for each place.

    Several graphs of one sentence become one. Sparse features that have no weight have 0.

    Args:
        places: directories or files.
        weights: None for weights of 0, whatever the features.

    Raises:
        FormatError: a file that is no search graph.
        DataError: a dense feature without a weight, sentences in descending order, a sentence
            twice in one place.
    """
    core = None if weights is None else weights.core
    files = heapq.merge(*(_ascending(place, core) for place in places), key=itemgetter(0))
    for sentence, group in groupby(files, key=itemgetter(0)):
        found = [file for _, file in group]
        yield _weighted(sentence, found, weights)


def _ascending(place: Path, core: tuple[str, ...] | None) -> Iterator[tuple[int, HypergraphFile]]:
    """The graphs of one place, made sure that their sentences ascend."""
    last = -1
    for number, file in read_graphs(place, core_names=core):
        if number <= last:
            raise DataError(
                f"{fspath(place)}: the search graph of sentence {number} comes after that of "
                f"sentence {last}: give each sentence one, in their order"
            )
        last = number
        yield number, file


def _weighted(
    sentence: int, files: Sequence[HypergraphFile], weights: GraphWeights | None
) -> WeightedGraph:
    """Graphs of one sentence with weights."""
    names = tuple(dict.fromkeys(name for file in files for name in file.names))
    if weights is None:
        weights = GraphWeights((), (), {}, dict.fromkeys(names, 0.0))
    columns = GraphColumns(weights.groups, fixed=tuple(weights.fixed))
    graphs = []
    for file in files:
        try:
            graphs.append(Hypergraph.of_file(file, columns.of(file.names)))
        except KeyError as error:
            raise DataError(
                f"{file.path} has the feature {error.args[0]}, and the weights are for "
                f"{spelled_groups(weights.groups)}: give one for each dense feature"
            ) from None
    features = GraphFeatures(FeatureSpace(weights.groups, tuple(columns.sparse)), weights.fixed)
    vector = features.vector(weights.dense, weights.sparse)
    graph = united(graphs)
    return WeightedGraph(
        sentence, files[0].path, graph, names, features, vector, graph.edge_scores(vector)
    )
