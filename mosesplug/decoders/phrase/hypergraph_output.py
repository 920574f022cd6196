"""Write search graphs, one file per sentence, in Moses' hypergraph format."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formats.graphs.hypergraph import (
    Edge,
    hypergraph_names,
    write_hypergraph,
    write_hypergraph_weights,
)
from mosesplug.decoders.phrase.model_file import ModelFeatures
from mosesplug.decoders.phrase.search_graph import PhraseGraph

__all__ = ["hypergraph_nodes", "write_graph", "write_weights"]


def write_graph(directory: str, suffix: str, sentence_id: int, graph: PhraseGraph) -> None:
    """Write ``DIRECTORY/ID.txt`` or ``ID.gz``; the directory must exist.

    Raises:
        OSError: the file cannot be written.
    """
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


def _useful_nodes(graph: PhraseGraph) -> NDArray[np.bool_]:
    """Return the mask of nodes that lead to a goal, bool ``[n_nodes]``."""
    useful = np.zeros(len(graph.node_score), dtype=np.bool_)
    useful[graph.goals] = True
    # Edges are ordered by head, and tails come before heads: one pass from the end is enough.
    for head in range(len(useful) - 1, 0, -1):
        if useful[head]:
            useful[graph.tail[graph.first_edge[head] : graph.first_edge[head + 1]]] = True
    return useful
