"""The arrays of the records of a block of hypotheses, sentence after sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.kernels import read_only
from mosesplug.store.dedupe import Rows

Column = tuple[NDArray[Any], list[int]]
"""One array of a block's records, concatenated, and the offsets of each sentence's part."""


@dataclass(frozen=True)
class Homes:
    """The places of a block's hypotheses in the store.

    Attributes:
        iterations: int32 ``[n]``; the iteration whose record holds each.
        rows: int32 ``[n]``; its row in that record.
        bounds: int64 ``[n_sentences + 1]``; rows of each sentence of the block.
        new_rows: int64 ``[n_new]``; rows that repeat no hypothesis of earlier lists or rows.
        new_bounds: int64 ``[n_sentences + 1]``; offsets of ``new_rows`` by sentence.
    """

    iterations: NDArray[np.int32]
    rows: NDArray[np.int32]
    bounds: NDArray[np.int64]
    new_rows: NDArray[np.int64]
    new_bounds: NDArray[np.int64]


def make_columns(
    block: NBestList, rows: Rows, hashes: NDArray[np.uint64], homes: Homes
) -> list[Column]:
    """Return the arrays of the block's records, in the order of ``records``."""
    new, lists, kept = homes.new_bounds, homes.bounds, homes.new_rows
    starts, ends = rows.starts[kept], rows.ends[kept]
    text, text_at = copy_texts(rows.buffer, starts, ends)
    extras, extra_at = copy_texts(
        rows.buffer,
        read_only(block.extra_starts, np.int64),
        read_only(block.extra_ends, np.int64),
    )
    sparse_at, entries = _take_sparse(rows.indptr, kept)
    # A length of 0 would be that of an empty text.
    lengths = (
        _count_tokens(text, text_at) if block.has_texts else np.ones(len(kept), dtype=np.int32)
    )
    scores = np.asarray(block.scores, dtype=np.float64)
    offsets = [
        (relative_offsets(at, bounds), (bounds + np.arange(len(bounds))).tolist())
        if len(content)
        else _make_empty_column(bounds)
        for at, bounds, content in (
            (text_at, new, rows.starts), (sparse_at, new, entries), (extra_at, lists, extras)
        )
    ]  # fmt: skip
    per_new, per_list = new.tolist(), lists.tolist()
    return [
        (hashes[kept], per_new),
        (rows.dense[kept], per_new),
        (lengths, per_new),
        offsets[0],
        offsets[1],
        (rows.indices[entries], sparse_at[new].tolist()),
        (rows.data[entries], sparse_at[new].tolist()),
        (homes.iterations, per_list),
        (homes.rows, per_list),
        _make_empty_column(lists) if np.isnan(scores[0]) else (scores, per_list),
        offsets[2],
        (text, text_at[new].tolist()),
        (extras, extra_at[lists].tolist()),
    ]


def _make_empty_column(bounds: NDArray[np.int64]) -> Column:
    return np.zeros(0, dtype=np.uint8), [0] * len(bounds)


def _take_sparse(
    indptr: NDArray[np.int64], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    widths = indptr[rows + 1] - indptr[rows]
    begins = np.zeros(len(rows) + 1, dtype=np.int64)
    np.cumsum(widths, out=begins[1:])
    return begins, np.repeat(indptr[rows] - begins[:-1], widths) + np.arange(begins[-1])


def copy_texts(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the given ranges end to end, uint8, and where each begins.

    The latter are int64 ``[n + 1]``.
    """
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    np.cumsum(ends - starts, out=offsets[1:])
    if not offsets[-1]:
        return np.zeros(0, dtype=np.uint8), offsets
    view = np.ascontiguousarray(buffer).data
    text = b"".join([view[a:b] for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
    return np.frombuffer(text, dtype=np.uint8), offsets


def relative_offsets(offsets: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return offsets of each sentence's rows counted from its own first one, uint32.

    ``offsets`` is ``[n + 1]`` over all rows; sentence ``i`` has the rows ``bounds[i]`` to
    ``bounds[i + 1]`` and gets one offset more than rows.
    """
    sentence = np.repeat(np.arange(len(bounds) - 1), np.diff(bounds) + 1)
    relative = np.empty(len(sentence), dtype=np.uint32)
    relative[:] = offsets[np.arange(len(sentence)) - sentence] - offsets[bounds[sentence]]
    return relative


def count_tokens(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Count the tokens of each range, int32 ``[n]``.

    A token is a run of bytes without ASCII white space.
    """
    return _count_tokens(*copy_texts(buffer, starts, ends))


def _count_tokens(text: NDArray[np.uint8], offsets: NDArray[np.int64]) -> NDArray[np.int32]:
    """Count the tokens of texts that stand end to end."""
    in_token = (text != 32) & ((text < 9) | (text > 13))
    begins = in_token.copy()
    begins[1:] &= ~in_token[:-1]
    firsts = offsets[:-1][offsets[:-1] < offsets[1:]]
    begins[firsts] = in_token[firsts]
    before = np.searchsorted(np.flatnonzero(begins), offsets)
    return np.diff(before).astype(np.int32)
