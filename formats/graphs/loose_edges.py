"""Build a search graph from edges in any order.

Decoders number nodes in any order and also write hypotheses that lead nowhere. This module sorts
the nodes topologically, rejects cycles, and drops edges that no derivation of the goal uses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from formats.decimals import parse_number
from formats.errors import FormatError
from formats.graphs.hypergraph import HypergraphFile
from formats.words import Bools, Floats, Ints32, Positions


@dataclass(frozen=True)
class LooseEdges:
    """Edges in file order.

    Attributes:
        heads: int64 ``[n_edges]``; the node that each edge leads to.
        tail_offsets: int64 ``[n_edges + 1]``, into ``tails``.
        tails: int64; the tail nodes of each edge, in the order of its target.
        target_offsets: int64 ``[n_edges + 1]``, into ``targets``.
        targets: int32; positions in the words, and ``TAIL`` for each tail.
        feature_indptr: int64 ``[n_edges + 1]``, into ``feature_indices`` and ``feature_values``.
        feature_indices: int32; positions in the names.
        covered: int32 ``[n_nodes]``; number of source words that a node covers.
        lines: the line of each edge in the file, or None if lines are not useful.
    """

    heads: Positions
    tail_offsets: Positions
    tails: Positions
    target_offsets: Positions
    targets: Ints32
    feature_indptr: Positions
    feature_indices: Ints32
    feature_values: Floats
    covered: Ints32
    lines: Sequence[int] | None = None


def sort_edges(
    path: str, names: tuple[str, ...], words: tuple[bytes, ...], edges: LooseEdges, goal: int
) -> HypergraphFile:
    """Return the derivations of ``goal`` as a graph with nodes in topological order.

    Args:
        words: the words that ``targets`` index.

    Raises:
        FormatError: there is a cycle, the goal has no derivation, or a value exceeds single
            precision.
    """
    order = _topological(path, edges)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    rows = np.argsort(rank[edges.heads], kind="stable")
    rows = rows[_mark_derivations(edges, rows, order, goal)]
    if not len(rows):
        raise FormatError(
            "the goal has no derivation", path=path, remedy="Check that the file is complete"
        )
    nodes = np.array(order)[np.unique(rank[edges.heads[rows]])]
    number = np.full(len(order), -1, dtype=np.int64)
    number[nodes] = np.arange(len(nodes))
    tail_offsets, tails = select_rows(edges.tail_offsets, rows)
    target_offsets, targets = select_rows(edges.target_offsets, rows)
    indptr, features = select_rows(edges.feature_indptr, rows)
    with np.errstate(over="ignore"):
        values = edges.feature_values[features].astype(np.float32)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        row = int(rows[np.searchsorted(indptr, wrong[0], side="right") - 1])
        value = edges.feature_values[features[wrong[0]]]
        raise _edge_error(
            path, edges, row, f"feature value {value:g} is too large", "Use values below 3.4e38"
        )
    counts = np.bincount(number[edges.heads[rows]], minlength=len(nodes))
    return HypergraphFile(
        path,
        names,
        words,
        edge_offsets=np.append(0, np.cumsum(counts)),
        tail_offsets=tail_offsets,
        tails=number[edges.tails[tails]].astype(np.int32),
        target_offsets=target_offsets,
        targets=edges.targets[targets],
        feature_indptr=indptr,
        feature_indices=edges.feature_indices[features],
        feature_values=values,
        covered=edges.covered[nodes],
    )


def select_rows(offsets: Positions, rows: Positions) -> tuple[Positions, Positions]:
    """Return the offsets and entry positions of selected rows of a ragged array."""
    counts = offsets[rows + 1] - offsets[rows]
    chosen = np.append(0, np.cumsum(counts))
    return chosen, np.repeat(offsets[rows] - chosen[:-1], counts) + np.arange(chosen[-1])


def parse_finite(texts: Sequence[bytes]) -> Floats:
    """Convert tokens to numbers; NaN for tokens that are not finite decimal numbers."""
    try:
        values = np.fromiter(map(float, texts), np.float64, len(texts))
        if np.isfinite(values).all() and b"_" not in b"".join(texts):
            return values
    except ValueError:
        pass
    return np.array([parse_number(text) for text in texts])


def _topological(path: str, edges: LooseEdges) -> list[int]:
    """Return all nodes, tails before heads."""
    n_nodes = len(edges.covered)
    heads = np.repeat(edges.heads, np.diff(edges.tail_offsets))
    waiting = np.bincount(heads, minlength=n_nodes).tolist()
    by_tail = np.argsort(edges.tails, kind="stable")
    first = np.searchsorted(edges.tails[by_tail], np.arange(n_nodes + 1)).tolist()
    built = heads[by_tail].tolist()
    order = [node for node in range(n_nodes) if not waiting[node]]
    for node in order:  # grows inside the loop
        for head in built[first[node] : first[node + 1]]:
            waiting[head] -= 1
            if not waiting[head]:
                order.append(head)
    if len(order) < n_nodes:
        edge = _edge_of_cycle(edges, set(range(n_nodes)).difference(order))
        raise _edge_error(path, edges, edge, "the graph has a cycle", "Remove one of its edges")
    return order


def _edge_of_cycle(edges: LooseEdges, left: set[int]) -> int:
    """Return an edge of a cycle, given the nodes on or above cycles."""
    tails = edges.tails.tolist()
    offsets = edges.tail_offsets.tolist()
    below = {
        head: (edge, tail)
        for edge, head in enumerate(edges.heads.tolist())
        for tail in tails[offsets[edge] : offsets[edge + 1]]
        if tail in left and head in left
    }
    node = next(iter(left))
    seen = set()
    while node not in seen:
        seen.add(node)
        edge, node = below[node]
    return edge


def _mark_derivations(edges: LooseEdges, rows: Positions, order: list[int], goal: int) -> Bools:
    """Return the edges, by head, that occur in derivations of the goal."""
    n_nodes = len(order)
    built = np.bincount(edges.heads, minlength=n_nodes) > 0
    used = np.bincount(edges.tails, minlength=n_nodes) > 0
    used[goal] = not used[goal]
    if built.all() and used.all():
        return np.ones(len(rows), dtype=np.bool_)
    tails, offsets = edges.tails.tolist(), edges.tail_offsets.tolist()
    heads = edges.heads.tolist()
    derivable = [False] * n_nodes
    usable = np.zeros(len(rows), dtype=np.bool_)
    for place, row in enumerate(rows.tolist()):
        if all(derivable[tail] for tail in tails[offsets[row] : offsets[row + 1]]):
            usable[place] = derivable[heads[row]] = True
    wanted = [False] * n_nodes
    wanted[goal] = True
    for place, row in zip(range(len(rows) - 1, -1, -1), rows[::-1].tolist(), strict=True):
        if usable[place] and wanted[heads[row]]:
            for tail in tails[offsets[row] : offsets[row + 1]]:
                wanted[tail] = True
        else:
            usable[place] = False
    return usable


def _edge_error(path: str, edges: LooseEdges, edge: int, message: str, remedy: str) -> FormatError:
    line = None if edges.lines is None else edges.lines[edge]
    return FormatError(message, path=path, line=line, remedy=remedy)
