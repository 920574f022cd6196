"""Search graphs as arrays, their features, and how Moses writes them.

This module also lists the files of a directory of graphs.

``-output-search-graph-hypergraph`` writes one file per sentence, with nodes in topological order;
the last node is the goal::

    # target ||| features ||| source-covered
    <nodes> <edges>
    # node <number>
    <edges that lead to it>
    [<tail>] <words>  ||| <name>=<value> ...  ||| <source words covered>

Their directory has a file ``weights`` with a name and a number on each line.

Graphs and n-best lists have different names for dense columns: ``TranslationModel0_1`` ...
``TranslationModel0_4``, and ``LM0`` without a number. Sparse features have the same names in both,
with an underscore. Graphs also have features that are not tuned and not in n-best
lists; in Moses always ``UnknownWordPenalty0``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Literal

from formats.errors import FormatError
from formats.text import atomic_write, require_regular_file, write_atomic
from formats.words import Floats32, Ints32, Positions

TAIL = -1
"""Stands in ``targets`` for the translation of the edge's next tail."""


@dataclass(frozen=True)
class HypergraphFile:
    """The graph of one sentence; tails come before heads.

    Attributes:
        names: the features, in the order of their first appearance.
        words: distinct words of the translations, in the order of their first appearance.
        edge_offsets: int64 ``[n_nodes + 1]``; the edges that lead to node ``v`` are
            ``edge_offsets[v]:edge_offsets[v + 1]``. The last node is the goal.
        tail_offsets: int64 ``[n_edges + 1]``, into ``tails``.
        tails: int32; the tail nodes of each edge, in the order of its target.
        target_offsets: int64 ``[n_edges + 1]``, into ``targets``.
        targets: int32; positions in ``words``, and ``TAIL`` for each tail.
        feature_indptr: int64 ``[n_edges + 1]``, into ``feature_indices`` and ``feature_values``.
        feature_indices: int32; positions in ``names``, distinct within an edge.
        feature_values: float32.
        covered: int32 ``[n_nodes]``; number of source words that a node covers.
    """

    path: str
    names: tuple[str, ...]
    words: tuple[bytes, ...]
    edge_offsets: Positions
    tail_offsets: Positions
    tails: Ints32
    target_offsets: Positions
    targets: Ints32
    feature_indptr: Positions
    feature_indices: Ints32
    feature_values: Floats32
    covered: Ints32


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
    """Format one edge; at the sentence boundaries, no blank follows its words."""
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


class GraphColumns:
    """Columns of the features of search graphs, by their names in the graphs.

    Attributes:
        fixed: features that belong to no group, whatever their names.
        sparse: columns of all features outside the groups, counted from the first; it grows.
    """

    def __init__(
        self,
        groups: Iterable[tuple[str, int]],
        sparse: Iterable[str] = (),
        fixed: Collection[str] = (),
    ) -> None:
        """Set up the columns.

        Args:
            sparse: features that get the first columns after the groups.
            fixed: features that are not tuned; they get columns like sparse ones.
        """
        self.groups = tuple(groups)
        self.fixed = frozenset(fixed)
        self.sparse = {name: column for column, name in enumerate(sparse)}
        dense = (name for group, width in self.groups for name in self._names(group, width))
        self._dense = {name: column for column, name in enumerate(dense)}
        self._group_names = {name for name, _ in self.groups}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all columns in search graphs."""
        return (*self._dense, *self.sparse)

    def of(self, names: Iterable[str]) -> dict[str, int]:
        """Return the column of each name.

        New names outside the groups get the next columns.

        Raises:
            KeyError: a name is neither dense nor valid for a sparse feature; the exception's
                argument is that name.
        """
        return {name: self._column(name) for name in names}

    def _names(self, group: str, width: int) -> Iterable[str]:
        """Return the names of a group's columns, without fixed components."""
        if not any(name.rpartition("_")[0] == group for name in self.fixed):
            return hypergraph_names([(group, width)])
        numbered = (f"{group}_{k}" for k in itertools.count(1))
        return itertools.islice((name for name in numbered if name not in self.fixed), width)

    def _column(self, name: str) -> int:
        column = self._dense.get(name)
        if column is not None:
            return column
        group, underscore, number = name.partition("_")
        # As in n-best lists. A group has no more columns than it had.
        looks_dense = not underscore or (group in self._group_names and number.isdecimal())
        if looks_dense and name not in self.fixed and name not in self.sparse:
            raise KeyError(name)
        return len(self._dense) + self.sparse.setdefault(name, len(self.sparse))


def infer_groups(names: Sequence[str], fixed: Collection[str] = ()) -> tuple[tuple[str, int], ...]:
    """Infer the dense groups from the feature names of a search graph.

    ``LM0`` is a group, and so are two or more consecutive names ``TM0_1``, ``TM0_2``, ....
    Those in ``fixed`` are omitted.
    """
    groups: list[tuple[str, int]] = []
    for name in names:
        if name in fixed:
            continue
        group, underscore, number = name.partition("_")
        if not underscore:
            groups.append((name, 1))
        elif number == "1" and f"{group}_2" in names:
            groups.append((group, 1))
        elif groups and groups[-1][0] == group and number == str(groups[-1][1] + 1):
            groups[-1] = (group, groups[-1][1] + 1)
    return tuple(groups)


_NAME = re.compile(r"([0-9]{1,9})(\.(txt|slf|json))?(\.(gz|bz2|xz))?")
_WEIGHTS = "weights"


def list_hypergraph_files(directory: str | PathLike[str]) -> dict[int, Path]:
    """Return the graph file of each sentence id, in ascending order.

    Raises:
        FormatError: the path is not a directory; or the directory has no graph, two graphs of one
            sentence, or an entry that is not a graph: another name, a directory, a pipe.
    """
    try:
        entries = sorted(Path(directory).iterdir())
    except OSError as error:
        raise FormatError(error.strerror or str(error), path=directory) from None
    files: dict[int, Path] = {}
    for entry in entries:
        if entry.name == _WEIGHTS or entry.name.startswith("."):
            continue
        match = _NAME.fullmatch(entry.name)
        if match is None:
            raise FormatError(
                "not a search graph: the file name is not a sentence id",
                path=entry,
                remedy="Remove it, or name it 0.gz, 1.gz, ...",
            )
        number = int(match[1])
        if number in files:
            raise FormatError(
                f"sentence {number} has another file, {files[number].name}",
                path=entry,
                remedy="Remove one of the two",
            )
        files[number] = require_regular_file(entry)
    if not files:
        raise FormatError(
            "the directory has no search graphs", path=directory, remedy="Expected 0.gz, 1.gz, ..."
        )
    return dict(sorted(files.items()))
