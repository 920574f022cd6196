"""Read arrays that ``numpy.save`` writes, without trust in their headers."""

from __future__ import annotations

import ast
import math
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.text import StrPath

NPY = b"\x93NUMPY"
"""The first bytes of such a file."""

_LARGEST_HEADER = 1 << 16
_TYPE = re.compile("[<>|=]?[biufcSU][0-9]{1,3}")


def load_array(
    path: StrPath, text: BinaryIO, dimensions: Collection[int], remedy: str
) -> NDArray[Any]:
    """Return the array of a file, mapped if it is not compressed.

    NumPy's own reader would allocate whatever the header says, and its errors are of many kinds.

    Args:
        text: the same, open and uncompressed, at its beginning.
        dimensions: the numbers of dimensions that the array may have.
        remedy: what to do about an array of another shape.

    Raises:
        FormatError: the file is no array of numbers, or one of another shape.
    """
    is_plain = Path(path).is_file() and not _is_compressed(path)
    data = None if is_plain else text.read()
    if data is None:
        with Path(path).open("rb") as file:
            head = file.read(_LARGEST_HEADER)
            size = os.fstat(file.fileno()).st_size
    else:
        head, size = data[:_LARGEST_HEADER], len(data)
    try:
        dtype, in_columns, shape, offset = _parse_header(head)
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError) as error:
        raise _array_error(path, f"its header cannot be parsed: {error}") from error
    if len(shape) not in dimensions or dtype.kind not in "biuf" or 0 in shape[1:]:
        spelled = "x".join(map(str, shape)) or "single number"
        raise FormatError(
            f"an array of {dtype} ({spelled})",
            path=path,
            remedy=remedy,
        )
    expected = math.prod(shape) * dtype.itemsize
    if size - offset != expected:
        raise _array_error(
            path, f"it has {max(size - offset, 0)} bytes of numbers, and its header says {expected}"
        )
    order: Literal["F", "C"] = "F" if in_columns else "C"
    rows: NDArray[Any]
    if not expected:
        rows = np.zeros(shape, dtype)
    elif data is None:
        rows = np.memmap(path, dtype, "r", offset, shape, order)
    else:
        rows = np.frombuffer(data, dtype, offset=offset).reshape(shape, order=order)
    return rows


def _is_compressed(path: StrPath) -> bool:
    with Path(path).open("rb") as file:
        return file.read(len(NPY)) != NPY


def _parse_header(head: bytes) -> tuple[np.dtype[Any], bool, tuple[int, ...], int]:
    """Return the type, whether columns are contiguous, the shape and the offset."""
    width = 2 if head[6:7] == b"\x01" else 4
    start = 8 + width
    offset = start + int.from_bytes(head[8:start], "little")
    if offset > len(head):
        raise ValueError("it is too long")
    header = ast.literal_eval(head[start:offset].decode("utf-8", "replace").strip())
    if not isinstance(header, dict) or header.keys() != {"descr", "fortran_order", "shape"}:
        raise ValueError("it has other keys")
    shape = header["shape"]
    if not isinstance(shape, tuple) or not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("its shape is not a tuple of sizes")
    if not isinstance(header["descr"], str) or not _TYPE.fullmatch(header["descr"]):
        return np.dtype(object), False, shape, offset
    return np.dtype(header["descr"]), bool(header["fortran_order"]), shape, offset


def _array_error(path: StrPath, message: str) -> FormatError:
    return FormatError(
        f"the array cannot be read: {message.splitlines()[0]}",
        path=path,
        remedy="Write it again with numpy.save",
    )
