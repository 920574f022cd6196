"""``features.dat`` and ``scores.dat``, the text that Moses' ``extractor`` makes of n-best lists.

::

    FEATURES_TXT_BEGIN_0 <sentence> <hypotheses> <columns> <column names>
    <value> <value> ... <sparse feature>=<value> ...
    FEATURES_TXT_END_0

``scores.dat`` is built alike, of a metric's sufficient statistics. Numbers have the six
significant digits of a C++ stream. In a binary block (``FEATURES_BIN_BEGIN_0``) the rows are
little-endian float32 without anything between them; it has no room for sparse features.

This module has the arrays and writes them, ``formats.extractor_reader`` reads.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formats.text import atomic_write

__all__ = ["FeatureData", "ScoreData", "SparseColumns", "write_features", "write_scores"]

SMALLEST_SPARSE = 1e-5
"""The extractor leaves out sparse values below this."""


@dataclass(frozen=True)
class FeatureData:
    """A file of feature values, in the order of its blocks; a sentence may have several.

    Attributes:
        sentence_ids: int64 ``[n_blocks]``.
        offsets: int64 ``[n_blocks + 1]``; hypotheses of block ``i`` are rows
            ``offsets[i]:offsets[i + 1]``.
        names: of the dense columns, ``LM0_0``.
        dense: float32 ``[n, len(names)]``, all finite.
        sparse_names: of the sparse features, without ``=``, in the order of their first appearance.
        sparse_indptr: int64 ``[n + 1]``; sparse values of row ``i`` are
            ``sparse_indptr[i]:sparse_indptr[i + 1]`` of the next two.
        sparse_indices: int32 ``[nnz]``; which of ``sparse_names``.
        sparse_data: float32 ``[nnz]``.
    """

    sentence_ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    names: tuple[str, ...]
    dense: NDArray[np.float32]
    sparse_names: tuple[str, ...]
    sparse_indptr: NDArray[np.int64]
    sparse_indices: NDArray[np.int32]
    sparse_data: NDArray[np.float32]


@dataclass(frozen=True)
class ScoreData:
    """A file of sufficient statistics, in the order of its blocks; a sentence may have several.

    Attributes:
        metric: its name, ``BLEU``.
        sentence_ids: int64 ``[n_blocks]``.
        offsets: int64 ``[n_blocks + 1]``, as in ``FeatureData``.
        stats: float32 ``[n, n_statistics]``, all finite.
    """

    metric: str
    sentence_ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    stats: NDArray[np.float32]


@dataclass(frozen=True)
class SparseColumns:
    """Sparse values by row (CSR).

    Attributes:
        names: of the features, without ``=``.
        indptr: int64 ``[n_rows + 1]``.
        indices: int32 ``[nnz]``; which of ``names``.
        data: float32 ``[nnz]``.
    """

    names: Sequence[str]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]

    def text(self, row: int) -> str:
        """``name=value `` of one row, features in the order of their columns."""
        part = slice(self.indptr[row], self.indptr[row + 1])
        values = sorted(zip(self.indices[part].tolist(), self.data[part].tolist(), strict=True))
        return "".join(
            f"{self.names[column]}={value:.6g} "
            for column, value in values
            if abs(value) >= SMALLEST_SPARSE
        )


def write_features(
    path: str | PathLike[str],
    names: Sequence[str],
    sentence_ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    dense: NDArray[np.float32],
    sparse: SparseColumns | None = None,
    *,
    binary: bool = False,
    compress: Literal["gz"] | None = None,
) -> None:
    """Write the feature values of some hypotheses.

    Args:
        path: where to; replaced whole or not at all.
        names: of the dense columns, ``LM0_0``.
        sentence_ids: int64 ``[n_sentences]``.
        offsets: int64 ``[n_sentences + 1]``; hypotheses of sentence ``i`` are rows
            ``offsets[i]:offsets[i + 1]``. A sentence without any is left out.
        dense: float32 ``[n_hyps, n_dense]``.
        sparse: the sparse tail, if there is one.
        binary: rows of float32 in the place of text.
        compress: ``gz``, or None for plain text.

    Raises:
        ValueError: sparse features and ``binary``.
    """
    title = f"{len(names)} {''.join(f'{name} ' for name in names)}"
    if binary:
        if sparse is not None and len(sparse.data):
            raise ValueError("the binary format has no room for sparse features")
        _write_binary(path, "FEATURES", title, sentence_ids, offsets, dense, compress)
        return
    rows = _rows(dense)
    if sparse is not None:
        rows = (text + sparse.text(row) for row, text in enumerate(rows))
    _write_text(path, "FEATURES", title, sentence_ids, offsets, rows, compress)


def write_scores(
    path: str | PathLike[str],
    metric: str,
    sentence_ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    statistics: NDArray[np.int32] | NDArray[np.float32],
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
        statistics: ``[n_hyps, n_statistics]``.
        binary: as for ``write_features``.
        compress: as for ``write_features``.
    """
    title = f"{statistics.shape[1]} {metric}"
    if binary:
        _write_binary(path, "SCORES", title, sentence_ids, offsets, statistics, compress)
    else:
        _write_text(path, "SCORES", title, sentence_ids, offsets, _rows(statistics), compress)


def _rows(values: NDArray[np.float32] | NDArray[np.int32]) -> Iterator[str]:
    """Each row as text, a blank behind every number."""
    template = "%.6g " * values.shape[1]
    return (template % tuple(row.tolist()) for row in values)


def _write_text(
    path: str | PathLike[str],
    kind: str,
    title: str,
    sentence_ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    rows: Iterator[str],
    compress: Literal["gz"] | None,
) -> None:
    """One block a sentence."""
    with atomic_write(path, compress=compress) as file:
        for sentence, count in zip(sentence_ids.tolist(), np.diff(offsets).tolist(), strict=True):
            if not count:
                continue
            lines = [f"{kind}_TXT_BEGIN_0 {sentence} {count} {title}"]
            lines += [next(rows) for _ in range(count)]
            lines.append(f"{kind}_TXT_END_0\n")
            file.write("\n".join(lines).encode("utf-8", "surrogateescape"))


def _write_binary(
    path: str | PathLike[str],
    kind: str,
    title: str,
    sentence_ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    values: NDArray[np.float32] | NDArray[np.int32],
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
