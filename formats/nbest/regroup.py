"""Read a file in whole lines, and cut blocks of hypotheses between sentences.

Formats whose sentence ids stand anywhere in a line parse lines first and group them afterwards:
``join_sentences`` keeps the last sentence of each block back until the next one has begun.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList, concatenate
from formats.nbest.list_format import ListOptions, SentenceIds
from formats.text import StrPath, iter_chunks
from formats.words import Floats, Positions

BLOCK_BYTES = 1 << 21
"""Enough that a NumPy call costs little, and little enough to stay in the cache."""


def iter_line_blocks(path: StrPath) -> Iterator[tuple[bytes, int]]:
    """Yield whole lines, each with its ``\\n``, and the number of the first one."""
    first_line = 1
    for text in join_lines(iter_chunks(path, BLOCK_BYTES)):
        yield text, first_line
        first_line += text.count(b"\n")


def join_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the same text in whole lines; a last line without ``\\n`` gets one."""
    waiting: list[bytes] = []
    for chunk in chunks:
        cut = chunk.rfind(b"\n") + 1
        waiting.append(chunk[:cut])
        if cut:
            yield b"".join(waiting)
            waiting = []
        waiting.append(chunk[cut:])
    if rest := b"".join(waiting):
        yield rest + b"\n"


def join_sentences(blocks: Iterator[NBestList]) -> Iterator[NBestList]:
    """Yield the same hypotheses in blocks of whole sentences.

    Memory is bounded by a block or by the largest sentence. All blocks must have the same dense
    features.
    """
    waiting: list[NBestList] = []
    for block in blocks:
        if not len(block):
            continue
        sentences = block.sentence_ids
        if waiting and sentences[0] != waiting[-1].sentence_ids[-1]:
            yield _join(waiting)
            waiting = []
        changes = np.flatnonzero(sentences[1:] != sentences[:-1])
        start = int(changes[-1]) + 1 if len(changes) else 0
        if start:
            yield _join([*waiting, take_rows(block, 0, start)])
            waiting = []
        waiting.append(take_rows(block, start, len(block)))
    if waiting:
        yield _join(waiting)


def whole_sentences(
    parse: Callable[[StrPath, ListOptions, SentenceIds], Iterator[NBestList]],
) -> Callable[[StrPath, ListOptions, SentenceIds], Iterator[NBestList]]:
    """Let a reader yield whole sentences whose blocks may end within one."""

    def read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
        return join_sentences(parse(path, options, ids))

    return read_blocks


def take_rows(block: NBestList, begin: int, end: int) -> NBestList:
    """Return some rows, at least one, with only the text that they need."""
    if begin == 0 and end == len(block):
        return block
    rows = slice(begin, end)
    edges = (block.text_starts, block.text_ends, block.extra_starts, block.extra_ends)
    low = min(int(edge[rows].min()) for edge in edges)
    high = max(int(edge[rows].max()) for edge in edges)
    first, last = block.sparse_indptr[begin], block.sparse_indptr[end]
    return replace(
        block,
        sentence_ids=block.sentence_ids[rows],
        buffer=block.buffer[low:high].copy(),
        text_starts=block.text_starts[rows] - low,
        text_ends=block.text_ends[rows] - low,
        dense=block.dense[rows],
        sparse_indptr=block.sparse_indptr[begin : end + 1] - first,
        sparse_indices=block.sparse_indices[first:last],
        sparse_data=block.sparse_data[first:last],
        scores=block.scores[rows],
        extra_starts=block.extra_starts[rows] - low,
        extra_ends=block.extra_ends[rows] - low,
        lines=block.lines[rows],
        outside=None if block.outside is None else block.outside[rows],
        file_rows=None if block.file_rows is None else block.file_rows[rows],
    )


def _join(blocks: Sequence[NBestList]) -> NBestList:
    return blocks[0] if len(blocks) == 1 else concatenate(blocks)


def pack_texts(texts: Sequence[bytes]) -> tuple[NDArray[np.uint8], Positions, Positions]:
    """Return texts in one buffer, where each begins and where it ends."""
    edges = np.cumsum([0, *map(len, texts)], dtype=np.int64)
    return np.frombuffer(b"".join(texts), dtype=np.uint8), edges[:-1], edges[1:]


def make_block(
    path: str,
    sentence_ids: Positions,
    texts: tuple[NDArray[np.uint8], Positions, Positions] | None,
    names: Sequence[str],
    dense: Floats,
    lines: Positions,
    *,
    scores: Floats | None = None,
    sparse: Sequence[dict[str, float]] = (),
) -> NBestList:
    """Return a block from its columns.

    Args:
        sentence_ids: int64 ``[n]``.
        texts: a buffer with the beginning and the end of each text; None: there are no texts.
        dense: float64 ``[n, n_dense]``, within the range of float32.
        lines: int64 ``[n]``.
        scores: model scores; None if the format has none.
        sparse: the sparse features of each hypothesis; empty if the list has none.
    """
    n = len(sentence_ids)
    none = np.zeros(n, dtype=np.int64)
    buffer, starts, ends = texts or (np.zeros(0, dtype=np.uint8), none, none)
    known: dict[str, int] = {}
    indices = [known.setdefault(name, len(known)) for values in sparse for name in values]
    counts = [len(values) for values in sparse] or none
    return NBestList(
        path=path,
        sentence_ids=sentence_ids,
        buffer=buffer,
        text_starts=starts,
        text_ends=ends,
        groups=tuple((name, 1) for name in names),
        dense=np.ascontiguousarray(dense, dtype=np.float32).reshape(n, len(names)),
        sparse_names=tuple(known),
        sparse_indptr=np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        sparse_indices=np.array(indices, dtype=np.int32),
        sparse_data=np.array([v for values in sparse for v in values.values()], dtype=np.float32),
        scores=np.full(n, np.nan) if scores is None else scores,
        extra_starts=ends,
        extra_ends=ends,
        lines=lines,
        has_texts=texts is not None,
    )
