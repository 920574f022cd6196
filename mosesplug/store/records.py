"""The record of one sentence's list.

The first number of its header (see ``encoding``) is that of the dense columns. The arrays are::

    hashes           uint64   [n_new]           of text and features, to find duplicates
    dense            float32  [n_new, n_dense]
    lengths          int32    [n_new]           tokens
    text_offsets     uint32   [n_new + 1]
    sparse_indptr    uint32   [n_new + 1]       empty if a block of lists has no sparse features
    sparse_indices   int32    [nnz]
    sparse_data      float32  [nnz]
    home_iterations  int32    [n_list]          the record that holds each hypothesis of the list
    home_rows        int32    [n_list]          its row in that record
    scores           float64  [n_list]          the decoder's; empty if the list has none
    extra_offsets    uint32   [n_list + 1]      empty if nothing follows the scores
    text             uint8                      hypotheses, byte for byte
    extras           uint8                      text after the scores, byte for byte

The first ``n_new`` rows are the hypotheses that no earlier iteration had for this sentence. The
list itself, in the decoder's order, is gathered from such rows.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import StoreError
from mosesplug.store.encoding import Column, Record
from mosesplug.tuning_set import SparseRows


class KbestRecord(Record):
    """One sentence's list of one iteration; the module's docstring lists its arrays.

    Raises ValueError if the bytes are not such a record: an array is outside of them, or has a size
    that does not match the others.

    The arrays are read-only. They are views of the memory map if the record is aligned, and keep
    their transaction open as long as one of them exists.
    """

    __slots__ = ()

    hashes = Column(0, "<u8")
    flat_dense = Column(1, "<f4")
    lengths = Column(2, "<i4")
    text_offsets = Column(3, "<u4")
    sparse_indptr = Column(4, "<u4")
    sparse_indices = Column(5, "<i4")
    sparse_data = Column(6, "<f4")
    home_iterations = Column(7, "<i4")
    home_rows = Column(8, "<i4")
    scores = Column(9, "<f8")
    extra_offsets = Column(10, "<u4")
    text = Column(11, "u1")
    extras = Column(12, "u1")

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        super().__init__(buffer, _SIZES)
        counts, rows, positions = self.places[::2], self.n_new, self.n_list
        fits = (
            counts[1] == rows * self.n_dense
            and counts[2] == rows
            and counts[3] == rows + 1
            and counts[4] in (0, rows + 1)
            and counts[5] == counts[6]
            and counts[7] == positions
            and counts[9] in (0, positions)
            and counts[10] in (0, positions + 1)
        )
        if not fits:
            raise ValueError("its arrays have inconsistent sizes")

    @property
    def n_dense(self) -> int:
        """Number of dense columns."""
        return self.first

    @property
    def n_new(self) -> int:
        """Number of hypotheses that this record holds itself."""
        return int(self.places[0])

    @property
    def n_list(self) -> int:
        """Number of positions of the list."""
        return int(self.places[16])

    @property
    def dense(self) -> NDArray[np.float32]:
        """Dense features, float32 ``[n_new, n_dense]``."""
        return self.flat_dense.reshape(self.n_new, self.n_dense)

    def sparse(self) -> SparseRows:
        """Return the sparse features of the hypotheses that the record holds.

        Raises:
            ValueError: the row offsets are invalid.
        """
        indptr = self.sparse_indptr.astype(np.int64)
        if not len(indptr):
            indptr = np.zeros(self.n_new + 1, dtype=np.int64)
        # Kernels do not check bounds.
        if indptr[0] or indptr[-1] != len(self.sparse_data) or (np.diff(indptr) < 0).any():
            raise ValueError("its sparse features have invalid offsets")
        return SparseRows(indptr, self.sparse_indices, self.sparse_data)

    def hypothesis(self, row: int) -> bytes:
        """Return the text of one of the hypotheses that the record holds."""
        offsets = self.text_offsets
        return self.text[offsets[row] : offsets[row + 1]].tobytes()

    def hypotheses(self) -> list[bytes]:
        """Return the texts of all hypotheses of the record.

        This is faster than one text at a time.

        Raises:
            ValueError: the texts overlap.
        """
        bounds, text = self.text_bounds().tolist(), self.text.tobytes()
        return [text[begin:end] for begin, end in itertools.pairwise(bounds)]

    def text_bounds(self) -> NDArray[np.int64]:
        """Return the text offsets of the hypotheses, int64 ``[n_new + 1]``.

        Raises:
            ValueError: they are out of order. Kernels do not check bounds, and overlapping texts
                can be much longer than the record.
        """
        bounds = self.text_offsets.astype(np.int64)
        if bounds[0] or bounds[-1] != len(self.text) or (bounds[1:] < bounds[:-1]).any():
            raise ValueError("its texts have invalid offsets")
        return bounds

    def list_extras(self) -> tuple[bytes, ...]:
        """Return the text after the score, for each position of the list.

        Raises:
            ValueError: the texts overlap.
        """
        offsets, extras = self.extra_offsets, self.extras.tobytes()
        if not len(offsets):
            return (b"",) * self.n_list
        if offsets[0] or offsets[-1] != len(extras) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError("the texts after its scores have invalid offsets")
        return tuple(extras[begin:end] for begin, end in itertools.pairwise(offsets.tolist()))

    def extra(self, rank: int) -> bytes:
        """Return the text after the score at one position of the list."""
        offsets = self.extra_offsets
        return self.extras[offsets[rank] : offsets[rank + 1]].tobytes() if len(offsets) else b""


_SIZES = tuple(column.size for column in vars(KbestRecord).values() if isinstance(column, Column))


def read_record(buffer: NDArray[np.uint8], iteration: int, sentence: int) -> KbestRecord:
    """Return the list of a sentence from its bytes, uint8.

    Raises:
        StoreError: the record is damaged.
    """
    with report_damage(iteration, sentence):
        return KbestRecord(buffer)


@contextmanager
def report_damage(iteration: int, sentence: int) -> Iterator[None]:
    """Convert errors of decoding a record to one message.

    Raises:
        StoreError: the record is damaged.
    """
    try:
        yield
    except (ValueError, IndexError) as error:
        raise corruption_error(iteration, sentence, str(error)) from None


def corruption_error(iteration: int, sentence: int, why: str, what: str = "the list") -> StoreError:
    """Return the error for a corrupt record."""
    return StoreError(
        f"the n-best store is damaged: {what} of sentence {sentence} in iteration {iteration}"
        f" is corrupt: {why}. Check the others (mosesplug nbest verify), use a copy, or start "
        "in an empty directory"
    )
