"""Parse many lines of an n-best list at once into flat arrays.

Lines and separators are found by comparing the whole byte array with one character; the features
fields go to ``formats.nbest.fields`` or ``parse_named``. A block with
anything unusual is parsed again by ``formats.nbest.entry``, which either succeeds or names the
line and the error.

Joshua and cdec name every value: ``lm_0=-27.1 Glue=3``. There, a line may have features in any
order, and missing ones are 0. The name does not tell dense from sparse features either (Joshua's
language model is ``lm_0``): the caller names the dense ones, all others are sparse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_integers, parse_numbers
from formats.errors import FormatError
from formats.nbest.entry import (
    BLANKS,
    FLOAT32_LIMIT,
    Layout,
    NBestEntry,
    Place,
    order_error,
    parse_entry,
)
from formats.nbest.fields import (
    ParsedFeatures,
    number_names,
    parse_columns,
    parse_tokens,
    split_tokens,
)
from formats.words import (
    PAD,
    Bytes,
    Floats,
    Floats32,
    Ints32,
    Positions,
    pad_with_newlines,
    strip_blanks,
)


@dataclass(frozen=True)
class NBestList:
    """Hypotheses as flat arrays, one row each, in file order.

    Attributes:
        sentence_ids: int64 ``[n]``, never decreasing.
        buffer: uint8, the text that the positions below point into.
        text_starts: int64 ``[n]``; first byte of the hypothesis without surrounding blanks.
        text_ends: int64 ``[n]``.
        groups: ``(name, number of values)`` of each dense group, in file order.
        dense: float32 ``[n, n_dense]``, C order.
        sparse_names: the sparse features, in order of first appearance.
        sparse_indptr: int64 ``[n + 1]``; sparse values of row ``i`` are
            ``sparse_indptr[i]:sparse_indptr[i + 1]`` of the next two.
        sparse_indices: int32 ``[nnz]``; which of ``sparse_names``.
        sparse_data: float32 ``[nnz]``.
        scores: float64 ``[n]``; the decoder's model score, NaN if the list has none.
        extra_starts: int64 ``[n]``; the text after the ``|||`` that follows the score (alignment,
            segmentation), blanks included; an empty range if there is none.
        extra_ends: int64 ``[n]``.
        lines: int64 ``[n]``; line in the file, from 1.
        outside: float64 ``[n, k]``; scores from outside, such as those of a learned metric; None
            if there are none.
        has_texts: whether the list has texts; else all of them are empty.
        ids: sentence ids that are texts, by their numbers, of lists in memory; empty if sentences
            have numbers only, or the reader of a file numbers its ids.
    """

    path: str
    sentence_ids: Positions
    buffer: NDArray[np.uint8]
    text_starts: Positions
    text_ends: Positions
    groups: tuple[tuple[str, int], ...]
    dense: Floats32
    sparse_names: tuple[str, ...]
    sparse_indptr: Positions
    sparse_indices: Ints32
    sparse_data: Floats32
    scores: Floats
    extra_starts: Positions
    extra_ends: Positions
    lines: Positions
    outside: Floats | None = None
    has_texts: bool = True
    file_rows: Positions | None = None
    ids: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.sentence_ids)

    @property
    def ranges(self) -> tuple[Positions, Bytes, Positions, Positions]:
        """Sentence ids, buffer, and begin and end of each text there."""
        return self.sentence_ids, self.buffer, self.text_starts, self.text_ends

    @property
    def list_offsets(self) -> Positions:
        """The row where each sentence's list begins, and the end, int64 ``[n_lists + 1]``."""
        return np.flatnonzero(np.diff(self.sentence_ids, prepend=-1, append=-1))

    @property
    def sparse_rows(self) -> tuple[Positions, Ints32, Floats32]:
        """The three arrays of the sparse values."""
        return self.sparse_indptr, self.sparse_indices, self.sparse_data

    def text(self, row: int) -> bytes:
        """Return the tokens of one hypothesis."""
        return self.buffer[self.text_starts[row] : self.text_ends[row]].tobytes()

    def extra(self, row: int) -> bytes:
        """Return the fields after the score of one hypothesis."""
        return self.buffer[self.extra_starts[row] : self.extra_ends[row]].tobytes()

    def take(self, rows: Positions | slice) -> NBestList:
        """Return some hypotheses, in that order; the text is shared."""
        starts = self.sparse_indptr[:-1][rows]
        widths = self.sparse_indptr[1:][rows] - starts
        indptr = np.append(0, np.cumsum(widths))
        entries = np.repeat(starts - indptr[:-1], widths) + np.arange(indptr[-1])
        return replace(
            self,
            sentence_ids=self.sentence_ids[rows],
            text_starts=self.text_starts[rows],
            text_ends=self.text_ends[rows],
            dense=self.dense[rows],
            sparse_indptr=indptr,
            sparse_indices=self.sparse_indices[entries],
            sparse_data=self.sparse_data[entries],
            scores=self.scores[rows],
            extra_starts=self.extra_starts[rows],
            extra_ends=self.extra_ends[rows],
            lines=self.lines[rows],
            outside=None if self.outside is None else self.outside[rows],
            file_rows=None if self.file_rows is None else self.file_rows[rows],
        )

    def require_references(self, n_sentences: int) -> None:
        """Check that every sentence has one of the references' lines.

        Raises:
            FormatError: a sentence has no reference; the error names the line.
        """
        row = int(np.searchsorted(self.sentence_ids, n_sentences))
        if row < len(self):
            raise FormatError(
                f"there is no reference for sentence {self.sentence_ids[row]}: the references have "
                f"{n_sentences} lines",
                path=self.path,
                line=int(self.lines[row]),
                remedy="Give the references that belong to this n-best list",
            )


def concatenate(blocks: Sequence[NBestList]) -> NBestList:
    """Concatenate lists of one layout, at least one."""
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
        outside=_concatenate_parts([block.outside for block in blocks]),
        has_texts=all(block.has_texts for block in blocks),
        file_rows=_concatenate_parts([block.file_rows for block in blocks]),
        ids=blocks[0].ids,
    )


_Number = TypeVar("_Number", np.float64, np.int64)


def _concatenate_parts(parts: Sequence[NDArray[_Number] | None]) -> NDArray[_Number] | None:
    """Concatenate what all blocks have; None if one has it not."""
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def from_entries(
    entries: Sequence[NBestEntry], layout: Layout, path: str, numbers: Sequence[int]
) -> NBestList:
    """Convert entries to arrays; ``numbers`` are their lines in the file."""
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
        # By way of double precision, as the fast way rounds.
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


def parse_named(
    padded: Bytes, begins: Positions, ends: Positions, layout: Layout
) -> ParsedFeatures | None:
    """Parse features fields into a dense matrix and sparse rows.

    Args:
        padded: the text with ``PAD`` bytes before and after it.
        begins: int64 ``[n]``; first byte of each field, ascending.
        ends: int64 ``[n]``; one past its last byte.

    Returns:
        The features, or None if a line is not a sequence of names with one value each.
    """
    tokens = split_tokens(padded, begins, ends)
    n_lines = len(tokens.offsets) - 1
    is_label = tokens.is_label
    # Names and values alternate, and no line begins within a pair.
    if (tokens.offsets % 2).any() or not is_label[::2].all() or is_label[1::2].any():
        return None
    data = parse_numbers(padded, tokens.starts[1::2], tokens.ends[1::2])
    if not (np.abs(data) < FLOAT32_LIMIT).all() or (tokens.ends - tokens.starts < 1).any():
        return None
    numbered = number_names(padded, tokens.starts[::2], tokens.ends[::2] - 1)
    if numbered is None or "" in numbered[0]:
        return None
    names, indices = numbered
    owners = np.repeat(np.arange(n_lines), np.diff(tokens.offsets) // 2)
    if (np.diff(np.sort(owners * len(names) + indices)) == 0).any():
        return None  # a feature twice in one line
    known = {name: column for column, (name, _) in enumerate(layout.groups)}
    columns = np.array([known.get(name, -1) for name in names], dtype=np.int64)
    of_value = columns[indices] if len(names) else np.zeros(0, dtype=np.int64)
    is_dense = of_value >= 0
    dense = np.zeros((n_lines, len(known)), dtype=np.float32)
    dense[owners[is_dense], of_value[is_dense]] = data[is_dense]
    rest = np.flatnonzero(columns < 0)
    rank = np.full(len(names), -1, dtype=np.int32)
    rank[rest] = np.arange(len(rest))
    counts = np.bincount(owners[~is_dense], minlength=n_lines)
    return ParsedFeatures(
        dense,
        tuple(names[place] for place in rest.tolist()),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        rank[indices[~is_dense]],
        data[~is_dense].astype(np.float32),
    )


def parse_block(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList:
    """Parse whole lines.

    Args:
        text: lines, each with its ``\\n``.

    Raises:
        FormatError: with file and line.
    """
    # The fast way tells only that something is odd; the slow one reads it, or names the line.
    block = parse_block_fast(text, layout, path, first_line)
    return _parse_block_slowly(text, layout, path, first_line) if block is None else block


def parse_block_fast(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList | None:
    """Parse whole lines in bulk; None if a line has anything unusual."""
    padded = pad_with_newlines(text)
    fields = _split_lines(padded, layout)
    if fields is None:
        return None
    features = _parse_features(padded, *fields.features, layout)
    sentence_ids = parse_integers(padded, *strip_blanks(padded, *fields.sentence_ids))
    score_starts, score_ends = fields.scores
    scored = np.flatnonzero(fields.n_separators > 2 + layout.n_skipped)
    scores = np.full(len(sentence_ids), np.nan)
    scores[scored] = parse_numbers(
        padded, *strip_blanks(padded, score_starts[scored], score_ends[scored])
    )
    # NaN, which is no number, fails the comparison, too.
    usable = np.abs(scores[scored]) < FLOAT32_LIMIT
    in_order = (np.diff(sentence_ids, prepend=0) >= 0).all()  # -1 (not a number) fails, too
    if features is None or not in_order or not usable.all():
        return None
    text_starts, text_ends = strip_blanks(padded, *fields.texts)
    return NBestList(
        path=path,
        sentence_ids=sentence_ids,
        buffer=padded[PAD:-PAD],
        text_starts=text_starts - PAD,
        text_ends=text_ends - PAD,
        groups=layout.groups,
        dense=features.dense,
        sparse_names=features.sparse_names,
        sparse_indptr=features.sparse_indptr,
        sparse_indices=features.sparse_indices,
        sparse_data=features.sparse_data,
        scores=scores,
        extra_starts=fields.extra[0] - PAD,
        extra_ends=fields.extra[1] - PAD,
        lines=np.arange(first_line, first_line + len(sentence_ids)),
    )


def _parse_features(
    padded: Bytes, begins: Positions, ends: Positions, layout: Layout
) -> ParsedFeatures | None:
    """Parse by columns if the lines allow it, else by tokens."""
    # A field that ends its line has the line end in the place of the blank behind the last number.
    at_end = (padded[ends - 1] > BLANKS[-1]) & (padded[ends] <= BLANKS[-1])
    padded[ends[at_end]] = BLANKS[-1]
    dense = parse_columns(padded, begins, ends + at_end, layout, glued=layout.names_values)
    if dense is None:
        return (parse_named if layout.names_values else parse_tokens)(padded, begins, ends, layout)
    none = np.zeros(0, dtype=np.int64)
    indptr = np.zeros(len(begins) + 1, dtype=np.int64)
    return ParsedFeatures(dense, (), indptr, none.astype(np.int32), none.astype(np.float32))


_Spans = tuple[Positions, Positions]


@dataclass(frozen=True)
class _Fields:
    """First byte, and one past the last, of the fields of a block's lines.

    A missing field is an empty range at the end of the line.
    """

    n_separators: Positions
    sentence_ids: _Spans
    texts: _Spans
    features: _Spans
    scores: _Spans
    extra: _Spans


def _split_lines(padded: Bytes, layout: Layout) -> _Fields | None:
    """Find the fields; None if a line has too few, or more than three bars in a row."""
    newlines = np.flatnonzero(padded[PAD - 1 : -PAD] == ord("\n")) + (PAD - 1)
    line_starts, line_ends = newlines[:-1] + 1, newlines[1:]
    line_ends = line_ends - (padded[line_ends - 1] == ord("\r"))
    bars = np.flatnonzero(padded == ord("|"))
    # The first of three neighboring bars; of four, two would begin, and be less than three apart.
    separators = bars[:-2][bars[2:] - bars[:-2] == 2]
    first = np.searchsorted(separators, line_starts)
    count = np.diff(first, append=len(separators))
    least = layout.least_fields - 1
    if count.min(initial=least) < least or np.diff(separators).min(initial=3) < 3:
        return None
    # So that the places behind the last separator can be looked up before they are masked.
    separators = np.append(separators, (0, 0))
    before = 1 + layout.n_skipped  # the number of separators ahead of the first of the two fields
    second = separators[first + 1]
    third = separators[first + before] if layout.n_skipped else second
    fourth = np.where(count > before + 1, separators[first + before + 1], line_ends)
    fifth = np.where(count > before + 2, separators[first + before + 2], line_ends)
    own, next_one = (third + 3, fourth), (fourth + 3, fifth)
    return _Fields(
        n_separators=count,
        sentence_ids=(line_starts, separators[first]),
        texts=(separators[first] + 3, second),
        features=next_one if layout.score_first else own,
        scores=own if layout.score_first else next_one,
        extra=(np.where(count > before + 2, fifth + 3, line_ends), line_ends),
    )


def _parse_block_slowly(text: bytes, layout: Layout, path: str, first_line: int) -> NBestList:
    """Parse line by line, and raise the error of the first invalid line."""
    entries: list[NBestEntry] = []
    numbers: list[int] = []
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        if line.strip(BLANKS):
            place = Place(path, number)
            entry = parse_entry(line, layout, place)
            if entries and entry.sentence_id < entries[-1].sentence_id:
                raise order_error(entry.sentence_id, entries[-1].sentence_id, place)
            entries.append(entry)
            numbers.append(number)
    return from_entries(entries, layout, path, numbers)
