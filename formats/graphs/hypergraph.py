"""Write search graphs in Moses' hypergraph format (``-output-search-graph-hypergraph``).

There is one file per sentence, with nodes in topological order; the last node is the goal::

    # target ||| features ||| source-covered
    <nodes> <edges>
    # node <number>
    <edges that lead to it>
    [<tail>] <words>  ||| <name>=<value> ...  ||| <source words covered>

The same directory has a file ``weights`` with a name and a number on each line.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal

from formats.text import atomic_write, write_atomic

__all__ = ["Edge", "hypergraph_names", "write_hypergraph", "write_hypergraph_weights"]


@dataclass(frozen=True)
class Edge:
    """One way to reach a node.

    Attributes:
        target: words (bytes) and tail nodes (int) in the order of the translation.
        covered: source words covered by the edge's head.
        dense: one value per dense feature; empty for the first and the last edges (``<s>``,
            ``</s>``), which have no features.
        sparse: ``(name, value)`` of sparse features.
    """

    target: tuple[int | bytes, ...]
    covered: int
    dense: tuple[float, ...] = ()
    sparse: tuple[tuple[str, float], ...] = ()


def hypergraph_names(groups: Iterable[tuple[str, int]]) -> tuple[str, ...]:
    """Return the names of dense columns in this format.

    Numbers start at 1, and a feature with one value has no number: ``TranslationModel0_1``,
    ``LM0``.
    """
    return tuple(
        name if width == 1 else f"{name}_{k}" for name, width in groups for k in range(1, width + 1)
    )


def write_hypergraph(
    path: str | PathLike[str],
    names: Sequence[str],
    nodes: Sequence[Sequence[Edge]],
    *,
    compress: Literal["gz"] | None = "gz",
) -> None:
    """Write the graph of one sentence.

    Args:
        path: the file, which is written atomically.
        names: names of the dense columns, from ``hypergraph_names``.
        nodes: the edges that lead to each node, tails before heads; the last node is the goal.
        compress: ``gz`` or None.

    Raises:
        ValueError: a node has no edges, a tail does not precede its head, or an edge has another
            number of values than there are names.
    """
    n_edges = sum(len(edges) for edges in nodes)
    lines = [b"# target ||| features ||| source-covered", b"%d %d" % (len(nodes), n_edges)]
    for head, edges in enumerate(nodes):
        if not edges:
            raise ValueError(f"node {head} has no edges")
        lines += [b"# node %d" % head, b"%d" % len(edges)]
        lines += [_edge(edge, head, names) for edge in edges]
    with atomic_write(path, compress=compress) as file:
        file.write(b"\n".join([*lines, b""]))


def write_hypergraph_weights(
    path: str | PathLike[str], names: Sequence[str], values: Sequence[float]
) -> None:
    """Write the weights that produced the graphs, one per dense column."""
    rows = zip(names, values, strict=True)
    write_atomic(path, "".join(f"{name} {value:.6f}\n" for name, value in rows).encode())


def _edge(edge: Edge, head: int, names: Sequence[str]) -> bytes:
    """Format one edge; those at the sentence boundaries have no blank after their words."""
    for part in edge.target:
        if isinstance(part, int) and not 0 <= part < head:
            raise ValueError(
                f"an edge to node {head} has tail node {part}, which is not an earlier node"
            )
    target = b" ".join(b"[%d]" % part if isinstance(part, int) else part for part in edge.target)
    if not edge.dense and not edge.sparse:
        return b"%b |||  ||| %d" % (target, edge.covered)
    features = [*zip(names, edge.dense, strict=True), *edge.sparse]
    text = "".join(f"{name}={value:.6f} " for name, value in features)
    return b"%b  ||| %b ||| %d" % (target, text.encode("utf-8", "surrogateescape"), edge.covered)
