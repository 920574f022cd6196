"""One sentence's search graph, as the decoder wrote it: its n-best list, and what is kept of it.

Graphs are read by several processes. What they hand back is small: a list as text, and a graph
that is cut down to the edges of its best derivations.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from formats.graphs.hypergraph_features import GraphColumns
from formats.graphs.hypergraph_reader import HypergraphFile, read_hypergraph
from formats.nbest.files import format_list
from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.n_best import GraphFeatures, n_best
from mosesplug.forest.pruning import pruned
from mosesplug.hypergraph import Hypergraph
from mosesplug.tuning.weights import Weights

__all__ = ["GraphFiles", "Taken"]


@dataclass(frozen=True)
class Taken:
    """What is taken of a graph.

    Attributes:
        graph: its best part.
        lines: the n-best list, as a decoder writes it.
    """

    graph: HypergraphFile
    lines: bytes


@dataclass(frozen=True)
class GraphFiles:
    """The graphs of one decoding; called with the number of a file, it takes what is wanted of it.

    Attributes:
        sentences: that have a graph, ascending.
        paths: their files.
        groups: dense groups that the decoder announced.
        fixed: weights of features that are not tuned, by their names in graphs.
        weights: that were decoded with.
        nbest: length of the lists.
        edges: how many of each graph are kept; those as good as the last of them stay too. 0
            keeps all.
    """

    sentences: Sequence[int]
    paths: Sequence[Path]
    groups: tuple[tuple[str, int], ...]
    fixed: Mapping[str, float]
    weights: Weights
    nbest: int
    edges: Sequence[int]

    def __call__(self, place: int) -> Taken:
        """Read a file.

        Raises:
            FormatError: it is no search graph.
            DataError: it has a feature that the decoder did not announce, or no derivation.
        """
        path = self.paths[place]
        file = read_hypergraph(path)
        columns = GraphColumns(self.groups, fixed=self.fixed)
        try:
            graph = Hypergraph.of_file(file, columns.of(file.names))
        except KeyError as error:
            raise DataError(
                f"{path} has the feature {error.args[0]}, which the decoder did not announce: that"
                f" is {spelled_groups(self.groups)}"
            ) from None
        space = FeatureSpace(self.groups, tuple(columns.sparse))
        features = GraphFeatures(space, self.fixed)
        weights = features.vector(self.weights.dense, self.weights.sparse)
        try:
            found = n_best(
                self.sentences[place], [graph], features, weights, self.nbest, source=str(path)
            )
            if edges := self.edges[place]:
                graph = pruned(graph, weights.astype(np.float32), edges)
        except DataError as error:
            raise DataError(f"{path}: {error}") from None
        lines = b"" if found is None else b"".join(format_list(found))
        return Taken(_as_file(str(path), graph, columns.names), lines)


def _as_file(path: str, graph: Hypergraph, names: tuple[str, ...]) -> HypergraphFile:
    """A graph as if it had been read; ``names`` are those of its columns."""
    return HypergraphFile(
        path,
        names,
        graph.words,
        graph.edge_offsets,
        graph.tail_offsets,
        graph.tails,
        graph.target_offsets,
        graph.targets,
        graph.feature_indptr,
        graph.feature_indices,
        graph.feature_values,
        graph.covered,
    )
