"""Scan the text of Moses' search graphs with compiled code, in one pass.

The scanner moves one position through the text and writes the arrays of the graph as it goes. Moses
writes the same features in the same order for nearly all edges, so the name that followed a feature
the last time is compared with the text first, eight bytes at a time; a hash table is needed for
other names, and for words. Numbers of unusual form are left to ``formats.decimals``.

The scanner only accepts text of which the readers in ``formats.graphs`` make the same graph. It
refuses everything else, damaged or only unusual, so that errors are found and explained there.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from formats.decimals import parse_numbers
from formats.graphs.any_graph import Scan
from formats.graphs.hypergraph import TAIL, HypergraphFile
from formats.nbest.entry import FLOAT32_LIMIT
from formats.words import Bytes, Positions, Words, view_words
from mosesplug.arrays import Floats32, Ints32
from mosesplug.kernels import lean_kernel
from mosesplug.tokens import (
    REFUSED,
    ROOM,
    Names,
    are_equal,
    find_end,
    find_equals,
    number_token,
    parse_decimal,
    parse_integer,
    skip_blanks,
)

_HEADER = re.compile(
    rb"# target \|\|\| features \|\|\| source-covered\n"
    rb"(?:(?:#[^\n]*)?\n)*([0-9]{1,9}) ([0-9]{1,9})\n"
)
_SHORTEST_EDGE = len(b" |||  ||| 0\n")
_SHORTEST_FEATURE = len(b"a=0 ")
_SHORTEST_TARGET = len(b"a ")
_MOST_ODD = 1 << 12
"""Texts with more numbers of unusual form are refused."""

_LEAST_BYTES = 1 << 20
"""Total size of files that are scanned by compiled code: some 25 MB of text, if compressed."""

_BLANK, _NEWLINE, _BAR = ord(" "), ord("\n"), ord("|")
_HASH, _OPENED, _CLOSED = ord("#"), ord("["), ord("]")


class _Arrays(NamedTuple):
    """Arrays of ``HypergraphFile``, some with spare room, and what is left to do.

    Attributes:
        odd: int64 ``[_MOST_ODD, 3]``; values that are not parsed: their places in
            ``feature_values``, their first bytes, and the blanks behind them.
        following: int32 ``[ROOM + 1]``; the feature that last followed feature ``i`` in an edge at
            ``i + 1``, and at 0 the one that began an edge; -1 if none did.
        owners: int64 ``[ROOM]``; the last edge that has each feature, -1 if none has.
    """

    edge_offsets: Positions
    tail_offsets: Positions
    tails: Ints32
    target_offsets: Positions
    targets: Ints32
    feature_indptr: Positions
    feature_indices: Ints32
    feature_values: Floats32
    covered: Ints32
    odd: Positions
    following: Ints32
    owners: Positions

    @classmethod
    def empty(cls, n_nodes: int, n_edges: int, n_bytes: int) -> _Arrays:
        """Return arrays with room for any graph of ``n_bytes`` bytes.

        Pages that are not written take no memory.
        """
        n_features = n_bytes // _SHORTEST_FEATURE
        return cls(
            np.zeros(n_nodes + 1, np.int64),
            np.zeros(n_edges + 1, np.int64),
            np.empty(n_bytes // len("[0] "), np.int32),
            np.zeros(n_edges + 1, np.int64),
            np.empty(n_bytes // _SHORTEST_TARGET, np.int32),
            np.zeros(n_edges + 1, np.int64),
            np.empty(n_features, np.int32),
            np.empty(n_features, np.float32),
            np.empty(n_nodes, np.int32),
            np.empty((_MOST_ODD, 3), np.int64),
            np.full(ROOM + 1, -1, np.int32),
            np.full(ROOM, -1, np.int64),
        )


def scan_graph(path: str, text: bytes) -> HypergraphFile | None:
    """Parse a graph in Moses' hypergraph format; return None if it is unusual.

    None can mean an error, or only a spelling that Moses does not use: give the text to
    ``formats.graphs.hypergraph_reader`` then.
    """
    header = _HEADER.match(text)
    if header is None:
        return None
    n_nodes, n_edges = map(int, header.groups())
    if not 0 < n_nodes <= n_edges <= len(text) // _SHORTEST_EDGE:
        return None
    if not text.endswith(b"\n"):
        text += b"\n"
    characters = np.frombuffer(text, dtype=np.uint8)
    arrays = _Arrays.empty(n_nodes, n_edges, len(text))
    words, names = Names.empty(), Names.empty()
    n_odd = _scan(characters, view_words(characters), header.end(), arrays, words, names)
    if n_odd == REFUSED:
        return None
    n_values = int(arrays.feature_indptr[-1])
    if n_odd:
        places, starts, ends = arrays.odd[:n_odd].T
        numbers = parse_numbers(characters, starts, ends)
        if not (np.abs(numbers) < FLOAT32_LIMIT).all():
            return None
        arrays.feature_values[places] = numbers
    return HypergraphFile(
        path,
        tuple(name.decode("utf-8", "surrogateescape") for name in names.take_from(text)),
        tuple(words.take_from(text)),
        arrays.edge_offsets,
        arrays.tail_offsets,
        arrays.tails[: arrays.tail_offsets[-1]].copy(),
        arrays.target_offsets,
        arrays.targets[: arrays.target_offsets[-1]].copy(),
        arrays.feature_indptr,
        arrays.feature_indices[:n_values].copy(),
        arrays.feature_values[:n_values].copy(),
        arrays.covered,
    )


def choose_scan(paths: Iterable[Path]) -> Scan | None:
    """Return the scanner for hypergraphs, None if these files are small."""
    size = 0
    with contextlib.suppress(OSError):  # the reader explains it
        for path in paths:
            size += path.stat().st_size if path.exists() else 0
    return scan_graph if size >= _LEAST_BYTES else None


@lean_kernel
def _scan(text: Bytes, chunks: Words, at: int, arrays: _Arrays, words: Names, names: Names) -> int:
    """Write the arrays of a graph; return the number of odd values, or ``REFUSED``.

    Args:
        text: the text of the graph, which ends with a newline.
        at: the end of the line with the numbers of nodes and edges.
    """
    n_nodes, n_edges = len(arrays.edge_offsets) - 1, len(arrays.tail_offsets) - 1
    edge, n_odd = 0, 0
    for node in range(n_nodes):
        at = _skip_comments(text, at)
        if at == len(text):
            return REFUSED
        count, at = parse_integer(text, at)
        if not 0 < count <= n_edges - edge or text[at] != _NEWLINE:
            return REFUSED
        at += 1
        last = edge + count
        for current in range(edge, last):
            if at == len(text):
                return REFUSED
            at = _scan_target(text, chunks, at, arrays, words, node, current)
            if at == REFUSED:
                return REFUSED
            at, n_odd = _scan_features(text, chunks, at, arrays, names, current, n_odd)
            if at == REFUSED:
                return REFUSED
            covered, at = parse_integer(text, skip_blanks(text, at))
            if covered < 0 or text[at] != _NEWLINE:
                return REFUSED
            at += 1
            if current == edge:
                arrays.covered[node] = covered
        edge = last
        arrays.edge_offsets[node + 1] = edge
    is_whole = edge == n_edges and _skip_comments(text, at) == len(text)
    return n_odd if is_whole else REFUSED


@lean_kernel
def _scan_target(
    text: Bytes, chunks: Words, start: int, arrays: _Arrays, words: Names, node: int, edge: int
) -> int:
    """Write an edge's target; return the position behind its bars, or ``REFUSED``."""
    n_targets, n_tails = arrays.target_offsets[edge], arrays.tail_offsets[edge]
    at = skip_blanks(text, start)
    while text[at] != _BAR:
        end = find_end(text, at)
        if text[end] != _BLANK:
            return REFUSED
        if text[at] == _OPENED and text[end - 1] == _CLOSED:
            tail, behind = parse_integer(text, at + 1)
            if not 0 <= tail < node or behind != end - 1:
                return REFUSED
            arrays.tails[n_tails] = tail
            arrays.targets[n_targets] = TAIL
            n_tails += 1
        else:
            word = number_token(chunks, at, end, words)
            if word == REFUSED:
                return REFUSED
            arrays.targets[n_targets] = word
        n_targets += 1
        at = skip_blanks(text, end)
    arrays.target_offsets[edge + 1], arrays.tail_offsets[edge + 1] = n_targets, n_tails
    return REFUSED if at == start else _pass_bars(text, at)


@lean_kernel
def _scan_features(
    text: Bytes, chunks: Words, start: int, arrays: _Arrays, names: Names, edge: int, n_odd: int
) -> tuple[int, int]:
    """Write the features of an edge.

    Returns:
        The position behind the bars, or ``REFUSED``; and the number of odd values so far.
    """
    entry = arrays.feature_indptr[edge]
    before = 0
    at = skip_blanks(text, start)
    while text[at] != _BAR:
        name = arrays.following[before]
        first = names.starts[name] if name >= 0 else 0
        length = names.ends[name] + 1 - first if name >= 0 else 0
        if length and are_equal(chunks, at, chunks, first, length):
            at += length
        else:
            equals = find_equals(text, at)
            if equals <= at:
                return REFUSED, 0
            name = number_token(chunks, at, equals, names)
            if name == REFUSED:
                return REFUSED, 0
            arrays.following[before] = name
            at = equals + 1
        if arrays.owners[name] == edge:
            return REFUSED, 0
        arrays.owners[name] = edge
        before = name + 1
        value, end = parse_decimal(text, chunks, at)
        if end == REFUSED:
            end = find_end(text, at)
            if n_odd == _MOST_ODD:
                return REFUSED, 0
            arrays.odd[n_odd, 0], arrays.odd[n_odd, 1], arrays.odd[n_odd, 2] = entry, at, end
            n_odd += 1
        if text[end] != _BLANK:
            return REFUSED, 0
        arrays.feature_indices[entry] = name
        arrays.feature_values[entry] = value
        entry += 1
        at = skip_blanks(text, end)
    arrays.feature_indptr[edge + 1] = entry
    # The blank behind the bars before the features is not the one before these bars.
    return (REFUSED if at == start else _pass_bars(text, at)), n_odd


@lean_kernel
def _skip_comments(text: Bytes, at: int) -> int:
    """Return the first line from a line on that is neither empty nor a comment."""
    while at < len(text) and (text[at] == _HASH or text[at] == _NEWLINE):
        while text[at] != _NEWLINE:
            at += 1
        at += 1
    return at


@lean_kernel
def _pass_bars(text: Bytes, at: int) -> int:
    """Return the position behind three bars, which must be a blank; else ``REFUSED``."""
    if text[at + 1] == _BAR and text[at + 2] == _BAR and text[at + 3] == _BLANK:
        return at + 4
    return REFUSED
