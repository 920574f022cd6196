"""An n-best list as flat arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from formats.nbest.entry import Layout, NBestEntry

__all__ = ["NBestList", "concatenate", "from_entries"]

Positions = NDArray[np.int64]


@dataclass(frozen=True)
class NBestList:
    """Hypotheses as flat arrays, one row each, in file order.

    Attributes:
        path: the file.
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
        """Return the tokens of one hypothesis."""
        return self.buffer[self.text_starts[row] : self.text_ends[row]].tobytes()

    def extra(self, row: int) -> bytes:
        """Return the fields after the score of one hypothesis."""
        return self.buffer[self.extra_starts[row] : self.extra_ends[row]].tobytes()


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
    )


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
