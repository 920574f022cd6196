"""``features.dat`` and ``scores.dat``, the text that Moses' ``extractor`` makes of n-best lists.

::

    FEATURES_TXT_BEGIN_0 <sentence> <hypotheses> <columns> <column names>
    <value> <value> ... <sparse feature>=<value> ...
    FEATURES_TXT_END_0

``scores.dat`` is built alike, of a metric's sufficient statistics. Numbers have the six
significant digits of a C++ stream.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formats.text import atomic_write

__all__ = ["SparseColumns", "write_features", "write_scores"]

SMALLEST_SPARSE = 1e-5
"""The extractor leaves out sparse values below this."""


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
        compress: ``gz``, or None for plain text.
    """
    title = f"{len(names)} {''.join(f'{name} ' for name in names)}"
    rows = _rows(dense)
    if sparse is not None:
        rows = (text + sparse.text(row) for row, text in enumerate(rows))
    _write(path, "FEATURES", title, sentence_ids, offsets, rows, compress)


def write_scores(
    path: str | PathLike[str],
    metric: str,
    sentence_ids: NDArray[np.int64],
    offsets: NDArray[np.int64],
    statistics: NDArray[np.int32] | NDArray[np.float32],
    *,
    compress: Literal["gz"] | None = None,
) -> None:
    """Write the sufficient statistics of some hypotheses.

    Args:
        path: as for ``write_features``.
        metric: its name, ``BLEU``.
        sentence_ids: as for ``write_features``.
        offsets: as for ``write_features``.
        statistics: ``[n_hyps, n_statistics]``.
        compress: as for ``write_features``.
    """
    title = f"{statistics.shape[1]} {metric}"
    _write(path, "SCORES", title, sentence_ids, offsets, _rows(statistics), compress)


def _rows(values: NDArray[np.float32] | NDArray[np.int32]) -> Iterator[str]:
    """Each row as text, a blank behind every number."""
    template = "%.6g " * values.shape[1]
    return (template % tuple(row.tolist()) for row in values)


def _write(
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
