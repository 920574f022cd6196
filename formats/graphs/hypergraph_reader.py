"""Read Moses' search graphs in hypergraph format.

``-output-search-graph-hypergraph`` writes them. ``formats.graphs.hypergraph`` describes the format.
Edges are stored in flat arrays, since the graph of a sentence has tens of thousands of them. cdec's
``--show_target_graph`` output is the same without the first line and the third field of each edge.

This reader explains errors and reads 40 MB of text in a second. ``mosesplug.forest.scanner`` is 20
times as fast, but must be compiled: it reads large files and leaves all others to this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from os import PathLike, fspath

import numpy as np

from formats.decimals import parse_number
from formats.errors import FormatError
from formats.graphs.hypergraph import TAIL, HypergraphFile
from formats.text import read_bytes
from formats.words import Floats32

_FIRST_LINE = b"# target ||| features ||| source-covered"
_FIRST_LINE_OF_JOSHUA = b"# target ||| features"
_COUNT = re.compile(rb"[0-9]{1,18}")
_NON_TERMINAL = re.compile(rb"\[([0-9]{1,18})\]")


def read_hypergraph(path: str | PathLike[str]) -> HypergraphFile:
    """Read the graph of one sentence, plain or compressed.

    Raises:
        FormatError: the file has another format; the announced numbers of nodes or edges do not
            match; a tail does not exist or does not precede its head (as in any cycle); the goal
            is missing or has no derivation; or a value is not a finite number.
    """
    graph = _Graph(fspath(path))
    lines = _number_lines(read_bytes(path))
    number, line = next(lines, (1, b""))
    if line.rstrip() != _FIRST_LINE:
        raise graph.error(
            number,
            f"the first line is not '{_FIRST_LINE.decode()}'",
            "Check that this is a search graph",
        )
    return _read_nodes(graph, lines)


def read_target_graph(path: str | PathLike[str]) -> HypergraphFile:
    """Read a graph without coverage, plain or compressed; ``covered`` is 0.

    cdec writes this format with ``--show_target_graph``, and the decoder lazy reads it.

    Raises:
        FormatError: as ``read_hypergraph``; or the file is a Joshua dump, which lacks the goal.
    """
    text = read_bytes(path)
    first, _, _ = text.partition(b"\n")
    if first.rstrip() == _FIRST_LINE_OF_JOSHUA:
        raise FormatError(
            "search graphs of Joshua are not supported: they lack the goal node",
            path=fspath(path),
            line=1,
            remedy="Use Joshua's n-best lists",
        )
    return _read_nodes(_Graph(fspath(path), has_covered=False), _number_lines(text))


def _number_lines(text: bytes) -> Iterator[tuple[int, bytes]]:
    return enumerate(text.removesuffix(b"\n").split(b"\n"), start=1)


def _read_nodes(graph: _Graph, lines: Iterator[tuple[int, bytes]]) -> HypergraphFile:
    """Read the nodes in any spelling, and raise the first error."""
    n_nodes, n_edges = graph.read_counts(lines)
    for node in range(n_nodes):
        graph.read_node(node, n_nodes, lines)
    rest = next(((number, line) for number, line in lines if not _is_ignored(line)), None)
    if rest is not None:
        raise graph.error(
            rest[0],
            f"text after the last of {n_nodes} nodes",
            f"Correct the {graph.second} line",
        )
    if len(graph.covered) != n_edges:
        raise graph.error(
            None,
            f"{len(graph.covered)} edges, but the {graph.second} line announces {n_edges}",
            "Check that the file is complete",
        )
    return graph.to_hypergraph()


@dataclass
class _Graph:
    """The part of a graph read so far; with ``has_covered``, edges have a third field."""

    path: str
    has_covered: bool = True
    names: dict[bytes, int] = field(default_factory=dict)
    words: dict[bytes, int] = field(default_factory=dict)
    known: dict[tuple[bytes, ...], list[int]] = field(default_factory=dict)
    edges: list[int] = field(default_factory=lambda: [0])
    tail_offsets: list[int] = field(default_factory=lambda: [0])
    tails: list[int] = field(default_factory=list)
    target_offsets: list[int] = field(default_factory=lambda: [0])
    targets: list[int] = field(default_factory=list)
    indptr: list[int] = field(default_factory=lambda: [0])
    indices: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    covered: list[int] = field(default_factory=list)
    derivable: list[bool] = field(default_factory=list)

    @property
    def second(self) -> str:
        return "second" if self.has_covered else "first"

    def error(self, line: int | None, message: str, remedy: str) -> FormatError:
        return FormatError(message, path=self.path, line=line, remedy=remedy)

    def read_counts(self, lines: Iterator[tuple[int, bytes]]) -> tuple[int, int]:
        """Read the numbers of nodes and edges from the second line."""
        number, line = self.read_line(lines, "the numbers of nodes and edges")
        words = line.split()
        if len(words) != 2 or not all(map(_COUNT.fullmatch, words)):
            raise self.error(
                number, f"'{_show(line)}' is not two integers", "Expected: nodes edges"
            )
        n_nodes, n_edges = map(int, words)
        if n_nodes == 0:
            raise self.error(
                number, "the graph has no nodes", "Check that the decoder found a translation"
            )
        return n_nodes, n_edges

    def read_node(self, node: int, n_nodes: int, lines: Iterator[tuple[int, bytes]]) -> None:
        """Read a node with its edges."""
        number, line = self.read_line(lines, f"node {node} of {n_nodes}")
        if not _COUNT.fullmatch(line.strip()):
            raise self.error(
                number,
                f"'{_show(line)}' is not the number of edges of node {node}",
                "Write the number of edges before the edges of a node",
            )
        reached = False
        for _ in range(int(line)):
            number, line = next(lines, (0, b""))
            if not number:
                raise self.end_error(f"an edge of node {node}")
            reached |= self.read_edge(line, number, node, n_nodes)
        self.edges.append(len(self.covered))
        self.derivable.append(reached)
        if node == n_nodes - 1 and not reached:
            raise self.error(
                number,
                f"the goal, node {node}, has no derivation",
                "Check that the file is complete",
            )

    def read_edge(self, line: bytes, number: int, head: int, n_nodes: int) -> bool:
        """Read an edge; return whether all its tails have derivations."""
        # If features are the last field, they may be missing, with no blank after the bars.
        parts = (line if self.has_covered else b" " + line + b" ").split(b" ||| ")
        if len(parts) != 2 + self.has_covered:
            third = " ||| covered" * self.has_covered
            raise self.error(
                number, f"{len(parts)} fields in an edge", f"Expected target ||| features{third}"
            )
        target, features, covered = (*parts, b"0")[:3]
        if not _COUNT.fullmatch(covered.strip()) or int(covered) >= 2**31:
            raise self.error(
                number,
                f"'{_show(covered)}' is not a number of source words",
                "Correct the last field of the edge",
            )
        complete = True
        for word in filter(None, target.split(b" ")):
            if word[0] == 91 and word[-1] == 93:
                tail = self.parse_tail(word, number, head, n_nodes)
                complete &= self.derivable[tail]
                self.tails.append(tail)
                self.targets.append(TAIL)
            else:
                self.targets.append(self.words.setdefault(word, len(self.words)))
        self.parse_features(features, number)
        self.tail_offsets.append(len(self.tails))
        self.target_offsets.append(len(self.targets))
        self.indptr.append(len(self.indices))
        self.covered.append(int(covered))
        self.lines.append(number)
        return complete

    def parse_tail(self, word: bytes, number: int, head: int, n_nodes: int) -> int:
        """Return the node that ``[7]`` names."""
        match = _NON_TERMINAL.fullmatch(word)
        if match is None:
            raise self.error(number, f"'{_show(word)}' is not a node", "Expected [number]")
        tail = int(match[1])
        if tail >= n_nodes:
            raise self.error(
                number, f"node {tail} does not exist", f"Use nodes from 0 to {n_nodes - 1}"
            )
        if tail >= head:
            raise self.error(
                number,
                f"tail node {tail} does not precede head node {head}",
                "Write tail nodes before head nodes, without cycles",
            )
        return tail

    def parse_features(self, text: bytes, number: int) -> None:
        """Parse the features of an edge, ``name=value name=value``."""
        pairs = [token.rpartition(b"=") for token in text.split()]
        names = tuple([name for name, _, _ in pairs])
        indices = self.known.get(names)
        if indices is None:
            if b"" in names:
                raise self.error(
                    number,
                    f"cannot parse features '{_show(text)}'",
                    "Expected name=value name=value",
                )
            if len(set(names)) != len(names):
                raise self.error(number, "duplicate feature", "Remove one of its values")
            indices = [self.names.setdefault(name, len(self.names)) for name in names]
            self.known[names] = indices
        self.indices += indices
        self.values += [value for _, _, value in pairs]

    def convert_values(self) -> Floats32:
        """Convert the values of all edges at once; one by one would take half of the time."""
        try:
            numbers = np.fromiter(map(float, self.values), np.float64, len(self.values))
            plain = np.isfinite(numbers).all() and b"_" not in b"".join(self.values)
        except ValueError:
            plain = False
        if not plain:
            numbers = np.array([parse_number(text) for text in self.values])
        with np.errstate(over="ignore"):
            narrow = numbers.astype(np.float32)
        wrong = np.flatnonzero(~np.isfinite(narrow))
        if len(wrong):
            first = int(wrong[0])
            name = list(self.names)[self.indices[first]]
            raise self.error(
                self.lines[int(np.searchsorted(self.indptr, first, side="right")) - 1],
                f"value of feature {_show(name)} is '{_show(self.values[first])}'",
                "Expected a finite decimal number",
            )
        return narrow

    def read_line(self, lines: Iterator[tuple[int, bytes]], what: str) -> tuple[int, bytes]:
        """Return the next line that is neither empty nor a comment."""
        for number, line in lines:
            if not _is_ignored(line):
                return number, line
        raise self.end_error(what)

    def end_error(self, what: str) -> FormatError:
        return self.error(None, f"the file ends before {what}", "Check that it is complete")

    def to_hypergraph(self) -> HypergraphFile:
        """Return the graph as arrays."""
        firsts = np.minimum(self.edges[:-1], len(self.covered) - 1)
        return HypergraphFile(
            self.path,
            tuple(name.decode("utf-8", "surrogateescape") for name in self.names),
            tuple(self.words),
            np.array(self.edges, dtype=np.int64),
            np.array(self.tail_offsets, dtype=np.int64),
            np.array(self.tails, dtype=np.int32),
            np.array(self.target_offsets, dtype=np.int64),
            np.array(self.targets, dtype=np.int32),
            np.array(self.indptr, dtype=np.int64),
            np.array(self.indices, dtype=np.int32),
            self.convert_values(),
            np.array(self.covered, dtype=np.int32)[firsts],
        )


def _is_ignored(line: bytes) -> bool:
    return not line.strip() or line.startswith(b"#")


def _show(text: bytes) -> str:
    return text[:80].decode("utf-8", "replace").strip()
