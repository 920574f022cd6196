"""How a store encodes plain data, and records of a header and arrays.

A record consists of the length of its header (uint32), the header (msgpack: a number, then the size
and the offset of each array), and the arrays, little-endian and padded to 8 bytes, so that they are
read as views of the memory map, without decoding.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from functools import reduce
from operator import add, mul, or_
from typing import Any, overload

import msgpack
import numpy as np
from numpy.typing import NDArray

_HEADER_LENGTH = struct.Struct("<I")
_PADDING = tuple(bytes(n) for n in range(8))
_ARRAY, _INTEGER = 1, 2
_DTYPE = re.compile(r"[<|][biuf](1|2|4|8|16)")


class Column:
    """One array of a record, created on access, since most readers need few of them."""

    def __init__(self, number: int, dtype: str) -> None:
        self._count = 2 * number
        self._dtype = np.dtype(dtype)
        self.size = self._dtype.itemsize

    @overload
    def __get__(self, record: None, owner: type[Record]) -> Column: ...

    @overload
    def __get__(self, record: Record, owner: type[Record]) -> NDArray[Any]: ...

    def __get__(self, record: Record | None, owner: type[Record]) -> Column | NDArray[Any]:
        return self if record is None else record.array(self._count, self._dtype)


class Record:
    """The header and the arrays of a record.

    Attributes:
        buffer: uint8; the bytes of the record.
        first: the first number of the header.
        places: size and offset of each array, in order.
        begin: offset of the first array, from which the others are counted.
    """

    __slots__ = ("begin", "buffer", "first", "places")

    def __init__(self, buffer: NDArray[np.uint8], sizes: Sequence[int]) -> None:
        """Read the header.

        Args:
            buffer: uint8; the bytes of the record.
            sizes: bytes of an item of each array.

        Raises:
            ValueError: the header is not one of so many arrays, or they are not in the record.
        """
        self.buffer = _align(buffer)
        numbers, self.begin = read_header(self.buffer)
        if len(numbers) != 1 + 2 * len(sizes):
            raise ValueError("its header belongs to another kind of record")
        self.first, self.places = numbers[0], numbers[1:]
        starts = self.places[1::2]
        ends = map(add, starts, map(mul, self.places[::2], sizes))
        # Kernels require aligned arrays, and do not check bounds.
        if max(ends) > len(buffer) - self.begin or reduce(or_, starts) & 7:
            raise ValueError("its arrays have inconsistent sizes")

    def array(self, place: int, dtype: Any) -> NDArray[Any]:
        """Return the array whose size is at ``places[place]``."""
        count, at = self.places[place : place + 2]
        return np.ndarray((count,), dtype, self.buffer, self.begin + at)


def _align(buffer: NDArray[np.uint8]) -> NDArray[np.uint8]:
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
    are_integers = isinstance(numbers, list) and set(map(type, numbers)) <= {int}
    if not are_integers or min(numbers, default=0) < 0:
        raise ValueError("its header is invalid")
    return numbers, 4 + length + -(4 + length) % 8


def encode_record(first: int, arrays: Sequence[NDArray[Any]]) -> bytes:
    """Return the bytes of a record: the first number of its header, and its arrays.

    The arrays are C-contiguous and little-endian, in the order of their record's table.
    """
    header = [first]
    parts: list[Any] = [b""]
    at = 0
    for array in arrays:
        size = array.nbytes
        header += (array.size, at)
        # Views of the map must be aligned for kernels; 8 bytes suit every type.
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
