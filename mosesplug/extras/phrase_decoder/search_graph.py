"""Search graphs of sentences: values of their edges, and files in Moses' format."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from formats.graphs.hypergraph import (
    Edge,
    hypergraph_names,
    write_hypergraph,
    write_hypergraph_weights,
)
from mosesplug.arrays import Bools, Floats, Ints
from mosesplug.extras.phrase_decoder.model import Model
from mosesplug.extras.phrase_decoder.model_file import N_REORDERING, ModelFeatures
from mosesplug.extras.phrase_decoder.target_features import TargetFeatures

N_DIRECTION = N_REORDERING // 2
MONOTONE, SWAP, DISCONTINUOUS = range(N_DIRECTION)


@dataclass(frozen=True)
class PhraseGraph:
    """The result of a search: nodes are recombined hypotheses, edges extend them.

    Node 0 is the empty hypothesis. Nodes are numbered so that every edge goes to a higher one,
    and edges are ordered by ``head``, the best first.

    Attributes:
        model: the model with the phrase pairs of the edges.
        node_score: float64 ``[n_nodes]``; model score of the best path to the node.
        node_covered: int64 ``[n_nodes]``; number of translated source words.
        node_pair: int64 ``[n_nodes]``; the last phrase pair of the best path, -1 for node 0.
        goals: int64; nodes that cover the sentence, best first.
        first_edge: int64 ``[n_nodes + 1]``; edges into node ``i`` are
            ``first_edge[i]:first_edge[i + 1]``.
        head, tail: int64 ``[n_edges]``; nodes.
        pair: int64 ``[n_edges]``; phrase pair.
        contextual: for each edge, the values of sparse features that see the sentence, by name;
            empty if the model has none.
        targets: sparse features that see target words before a phrase; None if the model has none.
        extension: int64 ``[n_edges]``; the extension of each edge in ``targets``.
        start, end: int64 ``[n_edges]``; the source words ``start .. end`` that it translates.
        language_model: float64 ``[n_edges]``; log probability of the words at the phrase boundary.
        jump: int64 ``[n_edges]``; distance from the last word translated before.
        orientation: int64 ``[n_edges]``; backward plus 3 times forward orientation, forward 3
            for the first phrase.
        score: float64 ``[n_edges]``; model score of the edge alone.
    """

    model: Model
    targets: TargetFeatures | None
    node_score: Floats
    node_covered: Ints
    node_pair: Ints
    goals: Ints
    first_edge: Ints
    head: Ints
    tail: Ints
    pair: Ints
    contextual: Sequence[Mapping[str, float]]
    extension: Ints
    start: Ints
    end: Ints
    language_model: Floats
    jump: Ints
    orientation: Ints
    score: Floats

    def sparse_values(self, edge: int) -> Iterator[tuple[str, float]]:
        """Yield the sparse features of an edge and their values."""
        for rows, row in ((self.model.sparse, self.pair[edge]), (self.contextual, edge)):
            if rows:
                yield from rows[row].items()
        if self.targets is not None:
            yield from self.targets.count(int(self.extension[edge])).items()

    def edge_values(self, edges: Ints) -> Floats:
        """Return the feature values of edges, float64 ``[len(edges), n_values]``."""
        model = self.model
        values = model.values[self.pair[edges]]
        for feature in model.features.features:
            column = feature.columns.start
            if feature.kind == "KENLM":
                values[:, column] += self.language_model[edges]
            elif feature.kind == "Distortion":
                values[:, column] -= self.jump[edges]
            elif feature.kind == "LexicalReordering":
                rows = np.arange(len(edges))
                forward, backward = np.divmod(self.orientation[edges], N_DIRECTION)
                own = model.reordering[self.pair[edges], backward]
                values[rows, column + backward] += own
                later = np.flatnonzero(forward < N_DIRECTION)
                columns = N_DIRECTION + forward[later]
                before = self.node_pair[self.tail[edges[later]]]
                values[later, column + columns] += model.reordering[before, columns]
        return values


def write_graph(directory: str, suffix: str, sentence_id: int, graph: PhraseGraph) -> None:
    """Write ``DIRECTORY/ID.txt`` or ``ID.gz``; the directory must exist."""
    compress: Literal["gz"] | None = "gz" if suffix == "gz" else None
    path = Path(directory) / f"{sentence_id}.{suffix}"
    names = _names(graph.model.features)
    write_hypergraph(path, names, hypergraph_nodes(graph), compress=compress)


def write_weights(directory: str, features: ModelFeatures) -> None:
    """Create the directory and write the weights of the search into it."""
    Path(directory).mkdir(parents=True, exist_ok=True)
    path = Path(directory) / "weights"
    write_hypergraph_weights(path, _names(features), features.weights.tolist())


def _names(features: ModelFeatures) -> tuple[str, ...]:
    return hypergraph_names((feature.name, len(feature.columns)) for feature in features.features)


def hypergraph_nodes(graph: PhraseGraph) -> list[list[Edge]]:
    """Return the nodes that lead to the end of the sentence, followed by the goal."""
    useful = _useful_nodes(graph)
    edges = np.flatnonzero(useful[graph.head])
    values = (graph.edge_values(edges) + 0.0).tolist()
    number = np.cumsum(useful) - 1
    nodes: list[list[Edge]] = [[] for _ in range(int(useful.sum()))]
    nodes[0].append(Edge(target=(b"<s>",), covered=0))
    for edge, dense in zip(edges.tolist(), values, strict=True):
        head = int(graph.head[edge])
        nodes[number[head]].append(
            Edge(
                target=(
                    int(number[graph.tail[edge]]),
                    *graph.model.target(int(graph.pair[edge])),
                ),
                covered=int(graph.node_covered[head]),
                dense=tuple(dense),
            )
        )
    length = int(graph.node_covered[graph.goals[0]])
    ends = [
        Edge(target=(int(number[goal]), b"</s>"), covered=length) for goal in graph.goals.tolist()
    ]
    return [*nodes, ends]


def _useful_nodes(graph: PhraseGraph) -> Bools:
    """Return the mask of nodes that lead to a goal, bool ``[n_nodes]``."""
    useful = np.zeros(len(graph.node_score), dtype=np.bool_)
    useful[graph.goals] = True
    # Edges are ordered by head, and tails come before heads: one pass from the end is enough.
    for head in range(len(useful) - 1, 0, -1):
        if useful[head]:
            useful[graph.tail[graph.first_edge[head] : graph.first_edge[head + 1]]] = True
    return useful
