"""The record of one sentence's list: a small header, then raw arrays.

The arrays need no decoding.

A record consists of the length of its header (uint32), the header (msgpack: the number of dense
columns, then the size and the offset of each array), and the arrays, little-endian and padded to 8
bytes, so that they can be read as views of the memory map::

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

_HEADER_LENGTH = struct.Struct("<I")
_PADDING = tuple(bytes(n) for n in range(8))
_ARRAY, _INTEGER = 1, 2
_DTYPE = re.compile(r"[<|][biuf](1|2|4|8|16)")


class _Field:
    """One array of a record, created on access, since most readers need few of them."""

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
    """One sentence's list of one iteration; the module's docstring lists its arrays.

    Raises ValueError if the bytes are not such a record: an array is outside of them, or has a size
    that does not match the others.

    The arrays are read-only. They are views of the memory map if the record is aligned, and keep
    their transaction open as long as one of them exists.

    Attributes:
        buffer: uint8; the bytes of the record.
        n_dense: number of dense columns.
        places: size and offset of each array, in the order of the table.
        begin: offset of the first array, from which the others are counted.
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
            raise ValueError("its header belongs to another kind of record")
        self.n_dense, self.places = numbers[0], numbers[1:]
        self._check_counts()

    def _check_counts(self) -> None:
        """Check that the arrays are inside the record and have matching sizes."""
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
        # Kernels require aligned arrays.
        if not fits or max(ends) > room or any(place & 7 for place in self.places[1::2]):
            raise ValueError("its arrays have inconsistent sizes")

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
        if offsets[-1] > len(extras) or (offsets[1:] < offsets[:-1]).any():
            raise ValueError("the texts after its scores have invalid offsets")
        return tuple(extras[begin:end] for begin, end in itertools.pairwise(offsets.tolist()))

    def extra(self, rank: int) -> bytes:
        """Return the text after the score at one position of the list."""
        offsets = self.extra_offsets
        return self.extras[offsets[rank] : offsets[rank + 1]].tobytes() if len(offsets) else b""


_FIELDS = tuple(field for field in vars(KbestRecord).values() if isinstance(field, _Field))


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


def _end_of_array(count: int, at: int, size: int) -> int:
    return at + count * size


def align(buffer: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Return the bytes, uint8, or an aligned copy if arrays cannot be views of them.

    LMDB aligns values that fill whole pages; small ones may be anywhere.
    """
    if len(buffer) < 8 or np.frombuffer(buffer, np.uint64, 1).flags.aligned:
        return buffer
    return np.frombuffer(buffer.tobytes(), np.uint8)


def read_header(buffer: NDArray[np.uint8]) -> tuple[list[int], int]:
    """Return the numbers in a record's header, and the offset of its arrays.

    Raises:
        ValueError: the header is missing or invalid.
    """
    try:
        (length,) = _HEADER_LENGTH.unpack_from(buffer.data)
        numbers = msgpack.unpackb(buffer[4 : 4 + length])
    except (struct.error, msgpack.UnpackException) as error:
        raise ValueError(f"its header cannot be read ({error})") from error
    # A boolean counts as an integer, but not in the shape of an array.
    if not isinstance(numbers, list) or not all(type(n) is int and n >= 0 for n in numbers):
        raise ValueError("its header is invalid")
    return numbers, 4 + length + -(4 + length) % 8


def encode_record(first: int, arrays: Sequence[NDArray[Any]]) -> bytes:
    """Return the bytes of a record: the first number of its header, and its arrays.

    The arrays are C-contiguous and little-endian. Those of a list have the types and the order of
    the module's table, and its first number is the number of dense columns.
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
    """Encode plain data.

    Plain data are None, numbers of any size, text, bytes, lists, mappings and arrays.

    Raises:
        TypeError: a value of another type.
    """
    return bytes(msgpack.packb(value, default=_encode_extension, unicode_errors="surrogateescape"))


def decode_value(data: Any) -> Any:
    """Decode the result of ``encode_value``; tuples become lists, arrays are copies.

    Raises:
        ValueError: the bytes are not an encoded value.
    """
    try:
        return msgpack.unpackb(
            data, ext_hook=_decode_extension, unicode_errors="surrogateescape", strict_map_key=False
        )
    except (ValueError, TypeError, msgpack.UnpackException) as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _encode_extension(value: object) -> object:
    """Encode what msgpack cannot: arrays, NumPy numbers, integers over 64 bits."""
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


def _decode_extension(code: int, data: bytes) -> object:
    """Decode the result of ``_encode_extension``."""
    if code == _ARRAY:
        dtype, shape, raw = msgpack.unpackb(data)
        if not isinstance(dtype, str) or not _DTYPE.fullmatch(dtype):
            raise ValueError(f"unknown dtype {dtype!r}")
        return np.frombuffer(raw, dtype).reshape(shape).copy()
    if code == _INTEGER:
        return int(data)
    return msgpack.ExtType(code, data)
