"""Files that Moses' ``extractor`` writes: ``features.dat``, ``scores.dat``.

::

    FEATURES_TXT_BEGIN_0 <sentence> <hypotheses> <columns> <column names>
    <value> <value> ... <sparse feature>=<value> ...
    FEATURES_TXT_END_0

``scores.dat`` has the same form, with a metric's sufficient statistics. Numbers have six
significant digits, as C++ streams print them. In a binary block (``FEATURES_BIN_BEGIN_0``) the rows
are contiguous little-endian float32; it cannot hold sparse features.

This module defines the arrays and writes them; ``formats.extractor.reader`` reads them.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import pairwise
from os import PathLike
from typing import Literal

import numpy as np

from formats.decimals import spell_rows
from formats.text import atomic_write
from formats.words import Floats, Floats32, Ints32, Positions

SMALLEST_SPARSE = 1e-5
"""The extractor leaves out sparse values below this."""

PIECE_NUMBERS = 1 << 15
"""Numbers formatted at a time: many enough for NumPy, few enough for the cache."""

THREADS = 2
"""Pieces formatted in parallel."""


@dataclass(frozen=True)
class FeatureData:
    """A file of feature values, in the order of its blocks.

    A sentence may have several blocks.

    Attributes:
        sentence_ids: int64 ``[n_blocks]``.
        offsets: int64 ``[n_blocks + 1]``; hypotheses of block ``i`` are rows
            ``offsets[i]:offsets[i + 1]``.
        names: the names of the dense columns, ``LM0_0``.
        dense: float32 ``[n, len(names)]``, all finite.
        sparse_names: the names of the sparse features, without ``=``, in the order of their first
            appearance.
        sparse_indptr: int64 ``[n + 1]``; sparse values of row ``i`` are
            ``sparse_indptr[i]:sparse_indptr[i + 1]`` of the next two.
        sparse_indices: int32 ``[nnz]``; which of ``sparse_names``.
        sparse_data: float32 ``[nnz]``.
    """

    sentence_ids: Positions
    offsets: Positions
    names: tuple[str, ...]
    dense: Floats32
    sparse_names: tuple[str, ...]
    sparse_indptr: Positions
    sparse_indices: Ints32
    sparse_data: Floats32


@dataclass(frozen=True)
class ScoreData:
    """A file of sufficient statistics, in the order of its blocks.

    A sentence may have several blocks.

    Attributes:
        metric: its name, ``BLEU``.
        sentence_ids: int64 ``[n_blocks]``.
        offsets: int64 ``[n_blocks + 1]``, as in ``FeatureData``.
        stats: float32 ``[n, n_statistics]``, all finite.
    """

    metric: str
    sentence_ids: Positions
    offsets: Positions
    stats: Floats32


@dataclass(frozen=True)
class SparseColumns:
    """Sparse values by row (CSR).

    Attributes:
        names: the names of the features, without ``=``.
        indptr: int64 ``[n_rows + 1]``.
        indices: int32 ``[nnz]``; which of ``names``.
        data: float32 ``[nnz]``.
    """

    names: Sequence[str]
    indptr: Positions
    indices: Ints32
    data: Floats32

    def rows(self) -> list[bytes]:
        """``name=value `` of each row, features in the order of their columns."""
        owners = np.repeat(np.arange(len(self.indptr) - 1), np.diff(self.indptr))
        kept = np.flatnonzero(np.abs(self.data.astype(np.float64)) >= SMALLEST_SPARSE)
        order = kept[np.lexsort((self.indices[kept], owners[kept]))]
        names = [f"{name}=".encode("utf-8", "surrogateescape") for name in self.names]
        numbers = spell_rows(self.data[order, np.newaxis]).split(b"\n")[1:]
        spelled = [
            names[column] + number
            for column, number in zip(self.indices[order].tolist(), numbers, strict=True)
        ]
        ends = np.searchsorted(owners[order], np.arange(len(self.indptr))).tolist()
        return [b"".join(spelled[start:end]) for start, end in pairwise(ends)]


def write_features(
    path: str | PathLike[str],
    names: Sequence[str],
    sentence_ids: Positions,
    offsets: Positions,
    dense: Floats32,
    sparse: SparseColumns | None = None,
    *,
    binary: bool = False,
    compress: Literal["gz"] | None = None,
) -> None:
    """Write the feature values of some hypotheses.

    Args:
        names: names of the dense columns, such as ``LM0_0``.
        sentence_ids: int64 ``[n_sentences]``.
        offsets: int64 ``[n_sentences + 1]``; hypotheses of sentence ``i`` are rows
            ``offsets[i]:offsets[i + 1]``. A sentence without hypotheses is not written.
        dense: float32 ``[n_hyps, n_dense]``.
        binary: write rows as float32 instead of text.
        compress: ``gz``, or None for plain text.

    Raises:
        ValueError: ``binary`` with sparse features.
    """
    title = f"{len(names)} {''.join(f'{name} ' for name in names)}"
    if binary:
        if sparse is not None and len(sparse.data):
            raise ValueError("the binary format cannot hold sparse features")
        _write_binary(path, "FEATURES", title, sentence_ids, offsets, dense, compress)
        return
    tails = None if sparse is None else sparse.rows()
    _write_text(path, "FEATURES", title, sentence_ids, offsets, dense, tails, compress)


def write_scores(
    path: str | PathLike[str],
    metric: str,
    sentence_ids: Positions,
    offsets: Positions,
    statistics: Ints32 | Floats32 | Floats,
    *,
    binary: bool = False,
    compress: Literal["gz"] | None = None,
) -> None:
    """Write the sufficient statistics of some hypotheses.

    Args:
        path: as for ``write_features``.
        metric: its name, ``BLEU``.
        sentence_ids: as for ``write_features``.
        offsets: as for ``write_features``.
        statistics: ``[n_hyps, n_statistics]``, written in single precision.
        binary: as for ``write_features``.
        compress: as for ``write_features``.
    """
    title = f"{statistics.shape[1]} {metric}"
    values: Ints32 | Floats32
    if statistics.dtype.kind == "f":
        values = statistics.astype(np.float32, copy=False)
    else:
        values = statistics.astype(np.int32, copy=False)
    if binary:
        _write_binary(path, "SCORES", title, sentence_ids, offsets, values, compress)
    else:
        _write_text(path, "SCORES", title, sentence_ids, offsets, values, None, compress)


def _write_text(
    path: str | PathLike[str],
    kind: str,
    title: str,
    sentence_ids: Positions,
    offsets: Positions,
    values: Floats32 | Ints32,
    tails: list[bytes] | None,
    compress: Literal["gz"] | None,
) -> None:
    """One block a sentence; ``tails`` are what follows the numbers of each row."""
    filled = np.flatnonzero(np.diff(offsets))
    begin, end = f"{kind}_TXT_BEGIN_0", f"\n{kind}_TXT_END_0\n".encode()
    # Pieces of whole sentences, small enough for the cache.
    rows_a_piece = max(PIECE_NUMBERS // max(values.shape[1], 1), 1)
    cuts = np.flatnonzero(np.diff(offsets[filled] // rows_a_piece, prepend=-1))

    def spelled(sentences: Positions) -> bytes:
        first, last = offsets[sentences[0]], offsets[sentences[-1] + 1]
        text = spell_rows(values[first:last])
        edges = [*np.flatnonzero(np.frombuffer(text, np.uint8) == ord("\n")).tolist(), len(text)]
        parts: list[bytes] = []
        for sentence in sentences.tolist():
            low, high = int(offsets[sentence]), int(offsets[sentence + 1])
            header = f"{begin} {sentence_ids[sentence]} {high - low} {title}"
            parts.append(header.encode("utf-8", "surrogateescape"))
            own = edges[low - first : high - first + 1]
            if tails is None:
                parts.append(text[own[0] : own[-1]])
            else:
                for (start, stop), tail in zip(pairwise(own), tails[low:high], strict=True):
                    parts += (text[start:stop], tail)
            parts.append(end)
        return b"".join(parts)

    with atomic_write(path, compress=compress) as file, ThreadPoolExecutor(THREADS) as pool:
        file.writelines(pool.map(spelled, np.split(filled, cuts[1:]) if len(filled) else ()))


def _write_binary(
    path: str | PathLike[str],
    kind: str,
    title: str,
    sentence_ids: Positions,
    offsets: Positions,
    values: Floats32 | Ints32,
    compress: Literal["gz"] | None,
) -> None:
    """One block a sentence, its rows as little-endian float32."""
    with atomic_write(path, compress=compress) as file:
        for sentence, start, end in zip(
            sentence_ids.tolist(), offsets[:-1].tolist(), offsets[1:].tolist(), strict=True
        ):
            if end > start:
                header = f"{kind}_BIN_BEGIN_0 {sentence} {end - start} {title}\n"
                file.write(header.encode("utf-8", "surrogateescape"))
                file.write(values[start:end].astype("<f4").tobytes())
                file.write(f"{kind}_BIN_END_0\n".encode())
