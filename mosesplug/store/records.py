"""What one sentence's list is on disk: a small header, then raw arrays that need no decoding.

A record is the length of its header (uint32), the header (msgpack: the counts below), and the
arrays, each little-endian and padded to 8 bytes, so that they are read as views on the map::

    hashes           uint64   [n_new]           of text and features, to find duplicates by
    dense            float32  [n_new, n_dense]
    lengths          int32    [n_new]           tokens
    text_offsets     uint32   [n_new + 1]
    sparse_indptr    int32    [n_new + 1]       the three of them empty where nnz is 0
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

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
from numpy.typing import NDArray

from mosesplug.tuning_set import SparseRows

__all__ = ["KbestRecord", "decode_record", "decode_value", "encode_record", "encode_value"]

_HEADER_LENGTH = struct.Struct("<I")
_PADDING = tuple(bytes(n) for n in range(8))
_ARRAY, _INTEGER = 1, 2
_U1, _U4, _U8, _I4, _F4, _F8 = (
    np.dtype(code) for code in ("u1", "<u4", "<u8", "<i4", "<f4", "<f8")
)


@dataclass(frozen=True, slots=True)
class KbestRecord:
    """One sentence's list of one iteration; the arrays are those of the module's table.

    The arrays are read-only. They are views on the memory map where the record is aligned there,
    and keep their transaction open for as long as one of them lives.
    """

    hashes: NDArray[np.uint64]
    dense: NDArray[np.float32]
    lengths: NDArray[np.int32]
    text_offsets: NDArray[np.uint32]
    sparse_indptr: NDArray[np.int32]
    sparse_indices: NDArray[np.int32]
    sparse_data: NDArray[np.float32]
    home_iterations: NDArray[np.int32]
    home_rows: NDArray[np.int32]
    scores: NDArray[np.float64]
    extra_offsets: NDArray[np.uint32]
    text: NDArray[np.uint8]
    extras: NDArray[np.uint8]

    @property
    def n_new(self) -> int:
        """Hypotheses that this record holds itself."""
        return len(self.hashes)

    @property
    def n_list(self) -> int:
        """Positions of the list."""
        return len(self.home_rows)

    def sparse(self) -> SparseRows:
        """Sparse features of the hypotheses that the record holds."""
        if not len(self.sparse_indptr):
            return SparseRows(
                np.zeros(self.n_new + 1, dtype=np.int64), self.sparse_indices, self.sparse_data
            )
        return SparseRows(
            self.sparse_indptr.astype(np.int64), self.sparse_indices, self.sparse_data
        )

    def hypothesis(self, row: int) -> bytes:
        """Text of one of the hypotheses that the record holds."""
        return self.text[self.text_offsets[row] : self.text_offsets[row + 1]].tobytes()

    def extra(self, rank: int) -> bytes:
        """What followed the score at one position of the list."""
        if not len(self.extra_offsets):
            return b""
        return self.extras[self.extra_offsets[rank] : self.extra_offsets[rank + 1]].tobytes()


def encode_record(n_new: int, n_list: int, n_dense: int, arrays: Iterable[Any]) -> bytes:
    """Bytes of a record.

    Args:
        n_new: hypotheses that the record holds.
        n_list: positions of the list.
        n_dense: dense columns.
        arrays: the thirteen C-contiguous arrays of the module's table, in its order and types.
    """
    parts: list[Any] = [b""]
    sizes = []
    for array in arrays:
        size = array.nbytes
        sizes.append(size)
        parts += (array, _PADDING[-size % 8])
    nnz, scored, extended, text, extras = (
        sizes[6] // 4,
        sizes[9] > 0,
        sizes[10] > 0,
        sizes[11],
        sizes[12],
    )
    header = msgpack.packb((n_new, n_list, n_dense, nnz, scored, extended, text, extras))
    parts[0] = _HEADER_LENGTH.pack(len(header)) + header + _PADDING[-(len(header) + 4) % 8]
    return b"".join(parts)


def decode_record(buffer: NDArray[np.uint8]) -> KbestRecord:
    """Views on the bytes of a record, uint8; on a copy of them where they are not aligned."""
    if not np.frombuffer(buffer, np.uint64, 1).flags.aligned:
        # LMDB aligns values that fill a page of their own; small ones may lie anywhere.
        buffer = buffer.copy()
        buffer.flags.writeable = False
    (header_length,) = _HEADER_LENGTH.unpack_from(buffer.data)
    n_new, n_list, n_dense, nnz, scored, extended, text, extras = msgpack.unpackb(
        buffer[4 : 4 + header_length].data
    )
    arrays: list[NDArray[Any]] = []
    at = 4 + header_length + -(header_length + 4) % 8
    for dtype, count in (
        (_U8, n_new),
        (_F4, n_new * n_dense),
        (_I4, n_new),
        (_U4, n_new + 1),
        (_I4, n_new + 1 if nnz else 0),
        (_I4, nnz),
        (_F4, nnz),
        (_I4, n_list),
        (_I4, n_list),
        (_F8, n_list if scored else 0),
        (_U4, n_list + 1 if extended else 0),
        (_U1, text),
        (_U1, extras),
    ):
        array = np.frombuffer(buffer, dtype, count, at)
        arrays.append(array)
        at += array.nbytes + -array.nbytes % 8
    arrays[1] = arrays[1].reshape(n_new, n_dense)
    return KbestRecord(*arrays)


def encode_value(value: Any) -> bytes:
    """Bytes of plain data: None, numbers of any size, text, bytes, lists, mappings, arrays.

    Raises:
        TypeError: something else.
    """
    return bytes(msgpack.packb(value, default=_extended, unicode_errors="surrogateescape"))


def decode_value(data: Any) -> Any:
    """The inverse of ``encode_value``; tuples come back as lists, arrays as copies."""
    return msgpack.unpackb(
        data, ext_hook=_restored, unicode_errors="surrogateescape", strict_map_key=False
    )


def _extended(value: object) -> object:
    """What msgpack has no spelling for: arrays, NumPy's numbers, integers beyond 64 bits."""
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
    """The inverse of ``_extended``."""
    if code == _ARRAY:
        dtype, shape, raw = msgpack.unpackb(data)
        return np.frombuffer(raw, dtype).reshape(shape).copy()
    if code == _INTEGER:
        return int(data)
    return msgpack.ExtType(code, data)
