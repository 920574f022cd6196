"""Many lines of an n-best list at once, into flat arrays.

A block of text is a byte array; separators, tokens and labels are found by comparing all of it
with one character, and numbers are parsed a column of tokens at a time (``formats.decimals``).
Nothing here says what is wrong with a line: a block with anything unusual in it is read again by
``formats.nbest_entry``, which either understands it or names the line and the fault.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formats.decimals import PAD, parse_integers, parse_numbers
from formats.nbest_entry import (
    BLANKS,
    FLOAT32_LIMIT,
    Layout,
    NBestEntry,
    Place,
    backwards,
    parse_entry,
)

__all__ = ["NBestList", "concatenate", "parse_block", "parse_block_fast"]

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class NBestList:
    """Hypotheses as flat arrays, one row each, in file order.

    Attributes:
        path: the file.
        sentence_ids: int64 ``[n]``, never decreasing.
        buffer: uint8, the text that the positions below point into.
        text_starts: int64 ``[n]``; first byte of the hypothesis, blanks around it left out.
        text_ends: int64 ``[n]``.
        groups: ``(name, number of values)`` of each dense group, in file order.
        dense: float32 ``[n, n_dense]``, C order.
        sparse_names: the sparse features, in the order of their first appearance.
        sparse_indptr: int64 ``[n + 1]``; sparse values of row ``i`` are
            ``sparse_indptr[i]:sparse_indptr[i + 1]`` of the next two.
        sparse_indices: int32 ``[nnz]``; which of ``sparse_names``.
        sparse_data: float32 ``[nnz]``.
        scores: float64 ``[n]``; the decoder's total, NaN where the list has none.
        extra_starts: int64 ``[n]``; what follows the ``|||`` behind the score (alignment,
            segmentation), blanks included; an empty range where nothing does.
        extra_ends: int64 ``[n]``.
        lines: int64 ``[n]``; line in the file, from 1.
    """

    path: str
    sentence_ids: NDArray[np.int64]
    buffer: NDArray[np.uint8]
    text_starts: Positions
    text_ends: Positions
    groups: tuple[tuple[str, int], ...]
    dense: NDArray[np.float32]
    sparse_names: tuple[str, ...]
    sparse_indptr: Positions
    sparse_indices: NDArray[np.int32]
    sparse_data: NDArray[np.float32]
    scores: NDArray[np.float64]
    extra_starts: Positions
    extra_ends: Positions
    lines: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.sentence_ids)

    def text(self, row: int) -> bytes:
        """The tokens of one hypothesis."""
        return self.buffer[self.text_starts[row] : self.text_ends[row]].tobytes()

    def extra(self, row: int) -> bytes:
        """What follows the score of one hypothesis."""
        return self.buffer[self.extra_starts[row] : self.extra_ends[row]].tobytes()


def parse_block(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList:
    """Parse whole lines.

    Args:
        text: lines, each with its ``\\n``.
        layout: what the first line of the file set.
        path: the file, for errors.
        first_line: number of the first line.

    Raises:
        FormatError: with file and line.
    """
    block = parse_block_fast(text, layout, path, first_line)
    return _parse_block_slowly(text, layout, path, first_line) if block is None else block


def parse_block_fast(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList | None:
    """The same in bulk, or None where a line has anything that this does not expect."""
    padded = np.empty(len(text) + PAD, dtype=np.uint8)
    padded[:PAD] = ord("\n")
    padded[PAD:] = np.frombuffer(text, dtype=np.uint8)
    fields = _split_lines(padded)
    if fields is None:
        return None
    tokens = _feature_tokens(padded, fields)
    features = _parse_features(padded, tokens, layout)
    id_starts, id_ends = _strip(padded, fields.line_starts, fields.separators[0])
    sentence_ids = parse_integers(padded, id_starts, id_ends)
    scores = np.full(len(sentence_ids), np.nan)
    scored = np.flatnonzero(fields.n_separators > 2)
    starts, ends = fields.separators[2][scored] + 3, fields.separators[3][scored]
    scores[scored] = parse_numbers(padded, *_strip(padded, starts, ends))
    usable = np.abs(scores[scored]) < FLOAT32_LIMIT
    in_order = (np.diff(sentence_ids, prepend=0) >= 0).all()  # and none is -1, so no number
    if features is None or not in_order or not usable.all():
        return None
    text_starts, text_ends = _strip(padded, fields.separators[0] + 3, fields.separators[1])
    extra_starts = np.where(fields.n_separators > 3, fields.separators[3] + 3, fields.line_ends)
    names, indptr, indices, data = features.sparse
    return NBestList(
        path=path,
        sentence_ids=sentence_ids,
        buffer=padded[PAD:],
        text_starts=text_starts - PAD,
        text_ends=text_ends - PAD,
        groups=layout.groups,
        dense=features.dense,
        sparse_names=names,
        sparse_indptr=indptr,
        sparse_indices=indices,
        sparse_data=data,
        scores=scores,
        extra_starts=extra_starts - PAD,
        extra_ends=fields.line_ends - PAD,
        lines=np.arange(first_line, first_line + len(sentence_ids)),
    )


@dataclass(frozen=True)
class _Fields:
    """Where the lines of a block begin and end, and their first four separators.

    A line with fewer separators has its end in the place of those it lacks.
    """

    line_starts: Positions
    line_ends: Positions
    n_separators: Positions
    separators: tuple[Positions, Positions, Positions, Positions]


@dataclass(frozen=True)
class _Tokens:
    """Tokens of the features fields of a block; those of line i are ``offsets[i]:offsets[i+1]``."""

    starts: Positions
    ends: Positions
    is_label: NDArray[np.bool_]
    is_sparse: NDArray[np.bool_]
    offsets: Positions


@dataclass(frozen=True)
class _Features:
    dense: NDArray[np.float32]
    sparse: tuple[tuple[str, ...], Positions, NDArray[np.int32], NDArray[np.float32]]


def _split_lines(padded: NDArray[np.uint8]) -> _Fields | None:
    """Lines and separators; None where a line has too few, or more than three bars in a row."""
    newlines = np.flatnonzero(padded[PAD - 1 :] == ord("\n")) + (PAD - 1)
    line_starts, line_ends = newlines[:-1] + 1, newlines[1:]
    line_ends = line_ends - (padded[line_ends - 1] == ord("\r"))
    bars = np.flatnonzero(padded == ord("|"))
    separators = bars[:-2][bars[2:] - bars[:-2] == 2]
    first = np.searchsorted(separators, line_starts)
    count = np.diff(first, append=len(separators))
    if count.min(initial=2) < 2 or np.diff(separators).min(initial=3) < 3:
        return None
    separators = np.append(separators, (0, 0))
    third = np.where(count > 2, separators[first + 2], line_ends)
    fourth = np.where(count > 3, separators[first + 3], line_ends)
    return _Fields(
        line_starts,
        line_ends,
        count,
        (separators[first], separators[first + 1], third, fourth),
    )


def _feature_tokens(padded: NDArray[np.uint8], fields: _Fields) -> _Tokens:
    """Labels and numbers of every features field, a label glued to its number cut off from it."""
    begins, finishes = fields.separators[1] + 3, fields.separators[2]
    solid = padded > BLANKS[-1]
    for field_edge in (fields.separators[1] + 2, np.minimum(finishes, len(solid) - 1)):
        solid[field_edge] = False
    edges = np.flatnonzero(solid[1:] != solid[:-1]) + 1
    low = np.searchsorted(edges, begins)
    high = np.searchsorted(edges, finishes, side="right")
    counts = (high - low) // 2
    offsets = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=offsets[1:])
    which = np.repeat(low - 2 * offsets[:-1], counts) + 2 * np.arange(offsets[-1])
    starts, ends = edges[which], edges[which + 1]
    equals = np.flatnonzero(padded == ord("="))
    glued = equals[solid[equals + 1]]
    if len(glued) and len(starts):
        starts, ends = _cut_glued(padded, starts, ends, glued)
        offsets = np.append(np.searchsorted(starts, begins), len(starts))
    last = padded[ends - 1]
    is_label = (last == ord("=")) | (last == ord(":"))
    is_sparse = np.zeros(len(starts), dtype=np.bool_)
    is_sparse[_owners(starts, ends, np.flatnonzero(padded == ord("_")))] = True
    return _Tokens(starts, ends, is_label, is_sparse & is_label, offsets)


def _cut_glued(
    padded: NDArray[np.uint8], starts: Positions, ends: Positions, glued: Positions
) -> tuple[Positions, Positions]:
    """Cut ``name=value`` behind its last ``=``; a token that ends in ``=`` stays whole."""
    owners = np.searchsorted(starts, glued, side="right") - 1
    inside = (owners >= 0) & (glued < ends[owners])
    inside &= ~np.isin(padded[ends[owners] - 1], (ord("="), ord(":")))
    owners, glued = owners[inside], glued[inside]
    final = np.append(owners[1:] != owners[:-1], True)[: len(owners)]
    owners, cuts = owners[final], glued[final] + 1
    return np.insert(starts, owners + 1, cuts), np.insert(ends, owners, cuts)


def _owners(starts: Positions, ends: Positions, positions: Positions) -> Positions:
    """The tokens in which positions lie, for those that lie in one."""
    if not len(starts):
        return np.zeros(0, dtype=np.int64)
    owners = np.searchsorted(starts, positions, side="right") - 1
    return owners[(owners >= 0) & (positions < ends[owners])]


def _parse_features(padded: NDArray[np.uint8], tokens: _Tokens, layout: Layout) -> _Features | None:
    """Dense matrix and sparse rows; None where a line differs from the layout."""
    n_lines = len(tokens.offsets) - 1
    is_value = ~tokens.is_label
    labels = np.flatnonzero(tokens.is_sparse)
    if len(labels):
        lonely = np.zeros(len(is_value) + 2, dtype=np.bool_)  # must not be a value
        lonely[labels + 2] = True
        lonely[tokens.offsets] = False
        is_sparse_value = np.zeros(len(is_value) + 1, dtype=np.bool_)
        is_sparse_value[labels + 1] = True
        is_sparse_value[tokens.offsets] = False  # the value belongs to the same line
        is_sparse_value[:-1] &= is_value
        sparse_values = np.flatnonzero(is_sparse_value)
        is_value &= ~is_sparse_value[:-1]
        if len(sparse_values) < len(labels) or (lonely[:-2] & is_value).any():
            return None
    else:
        sparse_values = labels
    values = np.flatnonzero(is_value)
    n_dense = sum(width for _, width in layout.groups)
    if not _follows(padded, tokens, is_value, values, layout, n_dense):
        return None
    dense = parse_numbers(padded, tokens.starts[values], tokens.ends[values])
    data = parse_numbers(padded, tokens.starts[sparse_values], tokens.ends[sparse_values])
    if not ((np.abs(dense) < FLOAT32_LIMIT).all() and (np.abs(data) < FLOAT32_LIMIT).all()):
        return None
    indptr = np.searchsorted(labels, tokens.offsets)
    names, indices = _number_names(padded, tokens.starts[labels], tokens.ends[labels] - 1)
    owners = np.repeat(np.arange(n_lines), np.diff(indptr))
    if len(np.unique(owners * len(names) + indices)) < len(indices):
        return None
    return _Features(
        dense.astype(np.float32).reshape(n_lines, n_dense),
        (names, indptr, indices, data.astype(np.float32)),
    )


def _follows(
    padded: NDArray[np.uint8],
    tokens: _Tokens,
    is_value: NDArray[np.bool_],
    values: Positions,
    layout: Layout,
    n_dense: int,
) -> bool:
    """Whether every line has the dense labels of the layout, each before its own values."""
    if not _every_line_has(values, tokens.offsets, n_dense):
        return False
    labels = np.flatnonzero(tokens.is_label & ~tokens.is_sparse)
    if not layout.labelled:
        return not tokens.is_label.any()
    if not _every_line_has(labels, tokens.offsets, len(layout.groups)):
        return False
    seen = np.cumsum(is_value)
    column = 0
    for group, (name, width) in enumerate(layout.groups):
        of_group = labels[group :: len(layout.groups)]
        before = seen[of_group] - n_dense * np.arange(len(of_group))
        if not ((before == column).all() and _all_spell(padded, tokens, of_group, name)):
            return False
        column += width
    return True


def _every_line_has(positions: Positions, offsets: Positions, count: int) -> bool:
    """Whether every line has that many of the tokens at ``positions``."""
    return bool((np.diff(np.searchsorted(positions, offsets)) == count).all())


def _all_spell(padded: NDArray[np.uint8], tokens: _Tokens, labels: Positions, name: str) -> bool:
    """Whether all these labels, their last character left out, are ``name``."""
    expected = np.frombuffer(name.encode("utf-8", "surrogateescape"), dtype=np.uint8)
    starts, ends = tokens.starts[labels], tokens.ends[labels]
    if not (ends - starts == len(expected) + 1).all():
        return False
    spelled = padded[starts[:, np.newaxis] + np.arange(len(expected))]
    return bool((spelled == expected).all())


def _number_names(
    padded: NDArray[np.uint8], starts: Positions, ends: Positions
) -> tuple[tuple[str, ...], NDArray[np.int32]]:
    """Number names by first appearance; one dictionary entry a distinct name."""
    text = padded.tobytes() if len(starts) else b""
    known: dict[bytes, int] = {}
    indices = np.fromiter(
        (
            known.setdefault(text[start:end], len(known))
            for start, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ),
        dtype=np.int32,
        count=len(starts),
    )
    return tuple(name.decode("utf-8", "surrogateescape") for name in known), indices


def _strip(
    padded: NDArray[np.uint8], starts: Positions, ends: Positions
) -> tuple[Positions, Positions]:
    """The ranges without the blanks at their ends."""
    starts, ends = starts.copy(), ends.copy()
    rows = np.arange(len(starts))
    while len(rows := rows[(padded[starts[rows]] <= BLANKS[-1]) & (starts[rows] < ends[rows])]):
        starts[rows] += 1
    rows = np.arange(len(starts))
    while len(rows := rows[(padded[ends[rows] - 1] <= BLANKS[-1]) & (starts[rows] < ends[rows])]):
        ends[rows] -= 1
    return starts, ends


def _parse_block_slowly(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList:
    """The same from one entry a line; raises the error of the first line that has one."""
    entries: list[NBestEntry] = []
    numbers: list[int] = []
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        if line.strip(BLANKS):
            place = Place(path, number)
            entry = parse_entry(line, layout, place)
            if entries and entry.sentence_id < entries[-1].sentence_id:
                raise backwards(entry.sentence_id, entries[-1].sentence_id, place)
            entries.append(entry)
            numbers.append(number)
    return _from_entries(entries, layout, path, numbers)


def concatenate(blocks: Sequence[NBestList]) -> NBestList:
    """Lists of one layout, one after the other; at least one."""
    known: dict[str, int] = {}
    columns = [
        np.array([known.setdefault(n, len(known)) for n in block.sparse_names], dtype=np.int32)
        for block in blocks
    ]
    at = np.cumsum([0, *(len(block.buffer) for block in blocks)])
    nnz = np.cumsum([0, *(len(block.sparse_data) for block in blocks)])

    def moved(name: str, by: Positions) -> Positions:
        parts = [getattr(block, name) + step for block, step in zip(blocks, by, strict=False)]
        return np.concatenate(parts)

    return NBestList(
        path=blocks[0].path,
        sentence_ids=np.concatenate([block.sentence_ids for block in blocks]),
        buffer=np.concatenate([block.buffer for block in blocks]),
        text_starts=moved("text_starts", at),
        text_ends=moved("text_ends", at),
        groups=blocks[0].groups,
        dense=np.concatenate([block.dense for block in blocks]),
        sparse_names=tuple(known),
        sparse_indptr=np.append(
            np.concatenate(
                [b.sparse_indptr[:-1] + step for b, step in zip(blocks, nnz, strict=False)]
            ),
            nnz[-1],
        ),
        sparse_indices=np.concatenate(
            [c[b.sparse_indices] for b, c in zip(blocks, columns, strict=True)]
        ),
        sparse_data=np.concatenate([block.sparse_data for block in blocks]),
        scores=np.concatenate([block.scores for block in blocks]),
        extra_starts=moved("extra_starts", at),
        extra_ends=moved("extra_ends", at),
        lines=np.concatenate([block.lines for block in blocks]),
    )


def _from_entries(
    entries: Sequence[NBestEntry], layout: Layout, path: str, numbers: Sequence[int]
) -> NBestList:
    """The arrays of some entries; ``numbers`` are their lines in the file."""
    pieces = [piece for entry in entries for piece in (entry.text, entry.extra)]
    edges = np.cumsum([0, *map(len, pieces)], dtype=np.int64)
    known: dict[str, int] = {}
    n_dense = sum(width for _, width in layout.groups)
    dense = [value for entry in entries for _, values in entry.dense for value in values]
    sparse = [feature for entry in entries for feature in entry.sparse]
    return NBestList(
        path=path,
        sentence_ids=np.array([entry.sentence_id for entry in entries], dtype=np.int64),
        buffer=np.frombuffer(b"".join(pieces), dtype=np.uint8),
        text_starts=edges[:-1:2],
        text_ends=edges[1::2],
        groups=layout.groups,
        dense=np.array(dense, dtype=np.float64).astype(np.float32).reshape(len(entries), n_dense),
        sparse_indices=np.array(
            [known.setdefault(name, len(known)) for name, _ in sparse], dtype=np.int32
        ),
        sparse_names=tuple(known),
        sparse_indptr=np.cumsum([0, *(len(e.sparse) for e in entries)], dtype=np.int64),
        sparse_data=np.array([value for _, value in sparse], dtype=np.float64).astype(np.float32),
        scores=np.array([entry.score for entry in entries], dtype=np.float64),
        extra_starts=edges[1::2],
        extra_ends=edges[2::2],
        lines=np.array(numbers, dtype=np.int64),
    )
