"""Parse Moses' search graphs with array operations, all edges at once.

The structure of a graph is in its lines: a line without a bar is a comment or says how many edges
lead to the next node, and a line with six bars is an edge. Tokens are separated by blanks. The
parser searches only for newlines, bars and blanks and creates no Python object per edge, which is
twenty times as fast as parsing by line. It leaves unusual files to the line-by-line reader, which
reports errors.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_integers, parse_numbers
from formats.nbest.entry import FLOAT32_LIMIT, Layout
from formats.nbest.fields import number_names, parse_columns
from formats.words import PAD, Bytes, Positions, pad_with_newlines

TAIL = -1
"""Stands in ``targets`` for the translation of the edge's next tail."""

_INT32_LIMIT = 2**31
_MOST_DIGITS = 18


@dataclass(frozen=True)
class HypergraphFile:
    """The graph of one sentence; tails come before heads.

    Attributes:
        path: the file.
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
    edge_offsets: NDArray[np.int64]
    tail_offsets: NDArray[np.int64]
    tails: NDArray[np.int32]
    target_offsets: NDArray[np.int64]
    targets: NDArray[np.int32]
    feature_indptr: NDArray[np.int64]
    feature_indices: NDArray[np.int32]
    feature_values: NDArray[np.float32]
    covered: NDArray[np.int32]


@dataclass(frozen=True)
class _Lines:
    """The parts of a graph's text, as positions in ``padded``.

    Attributes:
        padded: the text, with ``PAD`` newlines before and after it.
        edges: int64 ``[n_edges, 2]``; first byte of each edge's line, and its newline.
        bars: int64 ``[n_edges, 2]``; first byte of each of its two ``|||``.
        edge_offsets: int64 ``[n_nodes + 1]``.
    """

    padded: Bytes
    edges: Positions
    bars: Positions
    edge_offsets: Positions


def parse_graph(path: str, text: bytes) -> HypergraphFile | None:
    """Parse the text of a graph without its first line; return None if it is unusual.

    None can mean an error, or only a spelling that Moses does not use.
    """
    lines = _lines(text)
    if lines is None:
        return None
    padded = lines.padded
    covered = parse_integers(padded, lines.bars[:, 1] + 4, lines.edges[:, 1])
    # One blank before each bar, except at the beginning of a line, and one after it.
    around = np.concatenate([lines.bars + 3, lines.bars - 1])
    if not (padded[around] == ord(" ")).all():
        return None
    if (np.diff(lines.bars, axis=1) < len("|||  ")).any():
        return None
    if not ((covered >= 0) & (covered < _INT32_LIMIT)).all():
        return None
    targets = _targets(lines)
    features = _features(lines)
    if targets is None or features is None:
        return None
    return HypergraphFile(
        path,
        names=features[0],
        words=targets[0],
        edge_offsets=lines.edge_offsets,
        tail_offsets=targets[1],
        tails=targets[2],
        target_offsets=targets[3],
        targets=targets[4],
        feature_indptr=features[1],
        feature_indices=features[2],
        feature_values=features[3],
        covered=covered[lines.edge_offsets[:-1]].astype(np.int32),
    )


def _lines(text: bytes) -> _Lines | None:
    """Return the lines of a graph, or None if the announced counts do not match."""
    if not text.endswith(b"\n"):
        text += b"\n"
    padded = pad_with_newlines(text)
    body = padded[PAD:-PAD]
    newlines = np.flatnonzero(body < ord(" ")) + PAD
    if not (padded[newlines] == ord("\n")).all():
        return (
            None  # only one of the two readers treats tabs and other control characters as blanks
        )
    starts = np.append(PAD, newlines[:-1] + 1)
    bars = np.flatnonzero(body == ord("|")) + PAD
    n_bars = np.diff(np.searchsorted(bars, np.append(starts, len(padded))))
    is_edge = n_bars == 6
    if not (is_edge | (n_bars == 0)).all():
        return None
    threes = bars.reshape(-1, 2, 3)
    if not (np.diff(threes, axis=2) == 1).all():
        return None
    others = np.flatnonzero(~is_edge)
    said = (padded[starts[others]] != ord("#")) & (newlines[others] > starts[others])
    others = others[said]
    if len(others) < 2:
        return None
    head = text[starts[others[0]] - PAD : newlines[others[0]] - PAD].split(b" ")
    counts = parse_integers(padded, starts[others[1:]], newlines[others[1:]])
    n_edges = int(np.count_nonzero(is_edge))
    # The line reader rejects longer numbers, and Python may not convert them at all.
    if not all(word.isdigit() and len(word) <= _MOST_DIGITS for word in head):
        return None
    if [int(word) for word in head] != [len(counts), n_edges]:
        return None
    # Every node has a derivation if each has an edge and no tail is a later node.
    if (counts < 1).any() or counts.sum() != n_edges:
        return None
    edge_offsets = np.append(0, np.cumsum(counts))
    # The edges of a node follow their number.
    expected = np.repeat(others[1:] + 1 - edge_offsets[:-1], counts) + np.arange(n_edges)
    if not np.array_equal(np.flatnonzero(is_edge), expected):
        return None
    edges = np.column_stack([starts[is_edge], newlines[is_edge]])
    return _Lines(padded, edges, threes[:, :, 0], edge_offsets)


def _targets(
    lines: _Lines,
) -> tuple[tuple[bytes, ...], Positions, NDArray[np.int32], Positions, NDArray[np.int32]] | None:
    """Return words, tail offsets, tails, target offsets and targets of all edges.

    Return None if a tail is not an earlier node.
    """
    # The targets are a tenth of the text: copy them, or all of it would be searched for blanks.
    padded, begins, behinds = _copy_fields(lines.padded, lines.edges[:, 0], lines.bars[:, 0])
    starts, ends, offsets = _tokens(padded, begins, behinds)
    is_tail = (padded[starts] == ord("[")) & (padded[ends - 1] == ord("]"))
    at = np.flatnonzero(is_tail)
    nodes = parse_integers(padded, starts[at] + 1, np.maximum(ends[at] - 1, starts[at] + 1))
    owners = np.repeat(np.arange(len(lines.edges)), np.diff(offsets))
    heads = np.repeat(np.arange(len(lines.edge_offsets) - 1), np.diff(lines.edge_offsets))
    if not ((nodes >= 0) & (nodes < heads[owners[at]])).all():
        return None
    words = np.flatnonzero(~is_tail)
    numbered = number_names(padded, starts[words], ends[words])
    if numbered is None:
        return None
    names, indices = numbered
    targets = np.full(len(starts), TAIL, dtype=np.int32)
    targets[words] = indices
    return (
        tuple(name.encode("utf-8", "surrogateescape") for name in names),
        np.searchsorted(at, offsets),
        nodes.astype(np.int32),
        offsets,
        targets,
    )


def _features(
    lines: _Lines,
) -> tuple[tuple[str, ...], Positions, NDArray[np.int32], NDArray[np.float32]] | None:
    """Return names, row offsets, columns and values of the features of all edges."""
    begins, behinds = lines.bars[:, 0] + 3, lines.bars[:, 1] - 1
    # Without features, the blank after the first bars and the one before the next are adjacent.
    some = np.flatnonzero(behinds - begins > 1)
    if not len(some):
        none = np.zeros(0, dtype=np.int32)
        return (), np.zeros(len(begins) + 1, dtype=np.int64), none, none.astype(np.float32)
    alike = _alike(lines.padded, begins[some], behinds[some])
    if alike is None:
        return _token_by_token(lines.padded, begins, behinds)
    names, values = alike
    indptr = np.zeros(len(begins) + 1, dtype=np.int64)
    indptr[some + 1] = len(names)
    return (
        names,
        np.cumsum(indptr),
        np.tile(np.arange(len(names), dtype=np.int32), len(some)),
        values.reshape(-1),
    )


def _alike(
    padded: Bytes, begins: Positions, behinds: Positions
) -> tuple[tuple[str, ...], NDArray[np.float32]] | None:
    """Return names and values ``[n, n_names]``; None if names or their order vary."""
    first = padded[begins[0] : behinds[0]].tobytes().decode("utf-8", "surrogateescape")
    names = tuple(token.rpartition("=")[0] for token in first.split(" ") if token)
    if not all(names) or len(set(names)) < len(names):
        return None
    layout = Layout(has_labels=True, groups=tuple((name, 1) for name in names))
    values = parse_columns(padded, begins, behinds, layout, glued=True)
    return None if values is None else (names, values)


def _token_by_token(
    padded: Bytes, begins: Positions, behinds: Positions
) -> tuple[tuple[str, ...], Positions, NDArray[np.int32], NDArray[np.float32]] | None:
    """Return the features of edges with different features."""
    starts, ends, offsets = _tokens(padded, begins, behinds + 1)
    equals = np.flatnonzero(padded == ord("="))
    last = np.searchsorted(equals, ends) - 1
    cuts = np.where(last >= 0, equals[last] if len(equals) else 0, 0)
    if not (cuts > starts).all():
        return None  # no equals sign, or no name before it
    values = parse_numbers(padded, cuts + 1, ends)
    numbered = number_names(padded, starts, cuts)
    if numbered is None or not (np.abs(values) < FLOAT32_LIMIT).all():
        return None
    names, indices = numbered
    owners = np.repeat(np.arange(len(begins)), np.diff(offsets))
    if (np.diff(np.sort(owners * len(names) + indices)) == 0).any():
        return None  # a feature twice in one edge
    return names, offsets, indices, values.astype(np.float32)


def _copy_fields(
    padded: Bytes, begins: Positions, behinds: Positions
) -> tuple[Bytes, Positions, Positions]:
    """Return a copy of fields, padded, a blank after each, and where they are in it."""
    lengths = behinds - begins
    ends = np.cumsum(lengths + 1) - 1  # the blanks
    copied = np.full(int(ends[-1]) + 1 + 2 * PAD, ord("\n"), dtype=np.uint8)
    from_place = np.repeat(begins - (ends - lengths), lengths + 1)
    from_place += np.arange(len(from_place))
    body = copied[PAD:-PAD]
    np.take(padded, from_place, out=body, mode="clip")
    body[ends] = ord(" ")
    return copied, ends - lengths + PAD, ends + PAD


def _tokens(
    padded: Bytes, begins: Positions, behinds: Positions
) -> tuple[Positions, Positions, Positions]:
    """Return starts, ends and offsets of the tokens in fields, split at blanks."""
    blank = padded <= ord(" ")
    blank[behinds] = True
    blanks = np.flatnonzero(blank)
    filled = np.flatnonzero(np.diff(blanks) > 1)
    starts, ends = blanks[filled] + 1, blanks[filled + 1]
    low, high = np.searchsorted(starts, begins), np.searchsorted(starts, behinds)
    offsets = np.append(0, np.cumsum(high - low))
    which = np.repeat(low - offsets[:-1], high - low) + np.arange(offsets[-1])
    return starts[which], ends[which], offsets
