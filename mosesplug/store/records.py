"""The record of one sentence's list: a small header, then raw arrays that need no decoding.

A record is the length of its header (uint32), the header (msgpack: the dense columns, then the
number of elements and the place of each array), and the arrays, little-endian and padded to 8
bytes, so that they are read as views on the map::

    hashes           uint64   [n_new]           of text and features, to find duplicates by
    dense            float32  [n_new, n_dense]
    lengths          int32    [n_new]           tokens
    text_offsets     uint32   [n_new + 1]
    sparse_indptr    uint32   [n_new + 1]       empty where a block of lists has no sparse ones
    sparse_indices   int32    [nnz]
    sparse_data      float32  [nnz]
    home_iterations  int32    [n_list]          the record that holds each hypothesis of the list
    home_rows        int32    [n_list]          and its row there
    scores           float64  [n_list]          the decoder's; empty where the list has none
    extra_offsets    uint32   [n_list + 1]      empty where nothing follows the scores
    text             uint8                      hypotheses, byte for byte
    extras           uint8                      what followed the scores, byte for byte

The first ``n_new`` rows are the hypotheses that no earlier iteration had for this sentence; the
list itself, in the decoder's order, is a gather over such rows.
"""

from __future__ import annotations

import itertools
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, overload

import msgpack
import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import StoreError
from mosesplug.tuning_set import SparseRows

__all__ = [
    "KbestRecord",
    "align",
    "corruption_error",
    "decode_value",
    "encode_record",
    "encode_value",
    "read_header",
    "read_record",
    "report_damage",
]

_HEADER_LENGTH = struct.Struct("<I")
_PADDING = tuple(bytes(n) for n in range(8))
_ARRAY, _INTEGER = 1, 2
_DTYPE = re.compile(r"[<|][biuf](1|2|4|8|16)")


class _Field:
    """One array of a record, made when it is asked for: most readers want few of them."""

    def __init__(self, number: int, dtype: str) -> None:
        self._count = 2 * number
        self._dtype = np.dtype(dtype)
        self.size = self._dtype.itemsize

    @overload
    def __get__(self, record: None, owner: type[KbestRecord]) -> _Field: ...

    @overload
    def __get__(self, record: KbestRecord, owner: type[KbestRecord]) -> NDArray[Any]: ...

    def __get__(
        self, record: KbestRecord | None, owner: type[KbestRecord]
    ) -> _Field | NDArray[Any]:
        if record is None:
            return self
        count, at = record.places[self._count : self._count + 2]
        return np.ndarray((count,), self._dtype, record.buffer, record.begin + at)


class KbestRecord:
    """One sentence's list of one iteration; the arrays are those of the module's table.

    Raises ValueError where the bytes are not those of such a record: an array that does not lie
    in them, or has not as many elements as the others ask for.

    The arrays are read-only. They are views on the memory map where the record is aligned there,
    and keep their transaction open for as long as one of them lives.

    Attributes:
        buffer: uint8, all of the record.
        n_dense: dense columns.
        places: number of elements and first byte of each array, in the order of the table.
        begin: where the arrays begin, from which those bytes count.
    """

    __slots__ = ("begin", "buffer", "n_dense", "places")

    hashes = _Field(0, "<u8")
    flat_dense = _Field(1, "<f4")
    lengths = _Field(2, "<i4")
    text_offsets = _Field(3, "<u4")
    sparse_indptr = _Field(4, "<u4")
    sparse_indices = _Field(5, "<i4")
    sparse_data = _Field(6, "<f4")
    home_iterations = _Field(7, "<i4")
    home_rows = _Field(8, "<i4")
    scores = _Field(9, "<f8")
    extra_offsets = _Field(10, "<u4")
    text = _Field(11, "u1")
    extras = _Field(12, "u1")

    def __init__(self, buffer: NDArray[np.uint8]) -> None:
        self.buffer = align(buffer)
        numbers, self.begin = read_header(self.buffer)
        if len(numbers) != 1 + 2 * len(_FIELDS):
            raise ValueError("its header is that of something else")
        self.n_dense, self.places = numbers[0], numbers[1:]
        self._check_counts()

    def _check_counts(self) -> None:
        """Refuse arrays that lie outside of the record or do not fit together."""
        counts, rows, positions = self.places[::2], self.n_new, self.n_list
        room = len(self.buffer) - self.begin
        sizes = (field.size for field in _FIELDS)
        ends = map(_end_of_array, counts, self.places[1::2], sizes)
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
        # Kernels are made for arrays that are aligned.
        if not fits or max(ends) > room or any(place & 7 for place in self.places[1::2]):
            raise ValueError("its arrays do not fit together")

    @property
    def n_new(self) -> int:
        """Hypotheses that this record holds itself."""
        return int(self.places[0])

    @property
    def n_list(self) -> int:
        """Positions of the list."""
        return int(self.places[16])

    @property
    def dense(self) -> NDArray[np.float32]:
        """Dense features, float32 ``[n_new, n_dense]``."""
        return self.flat_dense.reshape(self.n_new, self.n_dense)

    def sparse(self) -> SparseRows:
        """Sparse features of the hypotheses that the record holds.

        Raises:
            ValueError: rows that are out of order, or are not of all values.
        """
        indptr = self.sparse_indptr.astype(np.int64)
        if not len(indptr):
            indptr = np.zeros(self.n_new + 1, dtype=np.int64)
        # Kernels look at no bounds.
        if indptr[0] or indptr[-1] != len(self.sparse_data) or (np.diff(indptr) < 0).any():
            raise ValueError("its sparse features are out of order")
        return SparseRows(indptr, self.sparse_indices, self.sparse_data)

    def hypothesis(self, row: int) -> bytes:
        """Return text of one of the hypotheses that the record holds."""
        offsets = self.text_offsets
        return self.text[offsets[row] : offsets[row + 1]].tobytes()

    def hypotheses(self) -> list[bytes]:
        """Texts of all hypotheses that the record holds; much faster than one at a time.

        Raises:
            ValueError: they overlap.
        """
        bounds, text = self.text_bounds().tolist(), self.text.tobytes()
        return [text[begin:end] for begin, end in itertools.pairwise(bounds)]

    def text_bounds(self) -> NDArray[np.int64]:
        """Offsets of the text of each hypothesis; int64 ``[n_new + 1]``.

        Raises:
            ValueError: they are out of order. Kernels look at no bounds, and texts that overlap
                are many times as long as the record.
        """
        bounds = self.text_offsets.astype(np.int64)
        if bounds[0] or bounds[-1] != len(self.text) or (bounds[1:] < bounds[:-1]).any():
            raise ValueError("its texts are out of order")
        return bounds

    def list_extras(self) -> tuple[bytes, ...]:
        """Return what followed the score, for each position of the list.

        Raises:
            ValueError: they overlap.
        """
        offsets, extras = self.extra_offsets, self.extras.tobytes()
        if not len(offsets):
            return (b"",) * self.n_list
        if offsets[-1] > len(extras) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError("what follows its scores is out of order")
        return tuple(extras[begin:end] for begin, end in itertools.pairwise(offsets.tolist()))

    def extra(self, rank: int) -> bytes:
        """Return what followed the score at one position of the list."""
        offsets = self.extra_offsets
        return self.extras[offsets[rank] : offsets[rank + 1]].tobytes() if len(offsets) else b""


_FIELDS = tuple(field for field in vars(KbestRecord).values() if isinstance(field, _Field))


def read_record(buffer: NDArray[np.uint8], iteration: int, sentence: int) -> KbestRecord:
    """Return the list of a sentence out of a store.

    Raises:
        StoreError: it is damaged.
    """
    with report_damage(iteration, sentence):
        return KbestRecord(buffer)


@contextmanager
def report_damage(iteration: int, sentence: int) -> Iterator[None]:
    """Errors of taking a record apart, as one message.

    Raises:
        StoreError: it is damaged.
    """
    try:
        yield
    except (ValueError, IndexError) as error:
        raise corruption_error(iteration, sentence, str(error)) from None


def corruption_error(iteration: int, sentence: int, why: str) -> StoreError:
    """Return the error for a corrupt record."""
    return StoreError(
        f"the n-best store is damaged: the list of sentence {sentence} in iteration {iteration}"
        f" is corrupt: {why}. Check the others (mosesplug nbest verify), and use a copy, or "
        "start in an empty directory"
    )


def _end_of_array(count: int, at: int, size: int) -> int:
    return at + count * size


def align(buffer: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the bytes themselves, or a copy where arrays could not be views on them.

    LMDB aligns values that fill a page of their own; small ones may lie anywhere.
    """
    if len(buffer) < 8 or np.frombuffer(buffer, np.uint64, 1).flags.aligned:
        return buffer
    return np.frombuffer(buffer.tobytes(), np.uint8)


def read_header(buffer: NDArray[np.uint8]) -> tuple[list[int], int]:
    """Return the numbers in the header of a record, and where its arrays begin.

    Raises:
        ValueError: there is no such header.
    """
    try:
        (length,) = _HEADER_LENGTH.unpack_from(buffer.data)
        numbers = msgpack.unpackb(buffer[4 : 4 + length])
    except (struct.error, msgpack.UnpackException) as error:
        raise ValueError(f"it has no header ({error})") from error
    # A boolean counts as an integer, but not in the shape of an array.
    if not isinstance(numbers, list) or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError("its header is invalid")
    return numbers, 4 + length + -(4 + length) % 8


def encode_record(first: int, arrays: Sequence[NDArray[Any]]) -> bytes:
    """Return bytes of a record: what its header begins with, and its arrays.

    The arrays are C-contiguous and little-endian. Those of a list are of the types and in the
    order of the module's table, and its header begins with the number of dense columns.
    """
    header = [first]
    parts: list[Any] = [b""]
    at = 0
    for array in arrays:
        size = array.nbytes
        header += (array.size, at)
        parts += (array, _PADDING[-size % 8])
        at += size + -size % 8
    packed = msgpack.packb(header)
    parts[0] = _HEADER_LENGTH.pack(len(packed)) + packed + _PADDING[-(len(packed) + 4) % 8]
    return b"".join(parts)


def encode_value(value: Any) -> bytes:
    """Return bytes of plain data: None, numbers of any size, text, bytes, lists, mappings, arrays.

    Raises:
        TypeError: something else.
    """
    return bytes(msgpack.packb(value, default=_extended, unicode_errors="surrogateescape"))


def decode_value(data: Any) -> Any:
    """Return the inverse of ``encode_value``; tuples come back as lists, arrays as copies.

    Raises:
        ValueError: these are not the bytes of such a value.
    """
    try:
        return msgpack.unpackb(
            data, ext_hook=_restored, unicode_errors="surrogateescape", strict_map_key=False
        )
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _extended(value: object) -> object:
    """Return what msgpack has no spelling for: arrays, NumPy's numbers, integers beyond 64 bits."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        little = value.astype(value.dtype.newbyteorder("<"), order="C", copy=False)
        return msgpack.ExtType(
            _ARRAY, msgpack.packb((little.dtype.str, list(little.shape), little.tobytes()))
        )
    if isinstance(value, int):
        return msgpack.ExtType(_INTEGER, str(value).encode())
    raise TypeError(f"cannot store a {type(value).__name__} in an iteration's record: {value!r}")


def _restored(code: int, data: bytes) -> object:
    """Return the inverse of ``_extended``."""
    if code == _ARRAY:
        dtype, shape, raw = msgpack.unpackb(data)
        if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
            raise ValueError(f"there is no type {dtype!r} of numbers")
        return np.frombuffer(raw, dtype).reshape(shape).copy()
    if code == _INTEGER:
        return int(data)
    return msgpack.ExtType(code, data)
