"""Arrays as text inside a page: bytes by significance, deflated, in base64.

``scripts/data.js`` reads them. Numbers that lie close together differ in their low bytes only: the
bytes of the same significance compress to less than whole numbers do.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_LEVEL = 5
"""Compression level of zlib; higher ones take twice the time to save a few percent."""

_TYPES = {"u1": "Uint8", "u2": "Uint16", "i4": "Int32", "u4": "Uint32", "f4": "Float32"}
_TYPES["f8"] = "Float64"


@dataclass(frozen=True)
class PackedArray:
    """An array as the page holds it.

    Attributes:
        type: the prefix of JavaScript's typed array, as ``Float32``.
        length: number of elements.
        text: base64 of the deflated bytes.
    """

    type: str
    length: int
    text: str

    @property
    def document(self) -> dict[str, Any]:
        """The array as an object of the page's JSON."""
        return {"type": self.type, "length": self.length, "data": self.text}


def pack_arrays(arrays: Mapping[str, NDArray[Any]], threads: int) -> dict[str, PackedArray]:
    """Pack arrays as text; each is flattened in C order.

    Args:
        arrays: uint8, uint16, uint32, int32, float32 or float64.
        threads: number of threads.
    """
    with ThreadPoolExecutor(max(threads, 1)) as pool:
        packed = list(pool.map(pack_array, arrays.values()))
    return dict(zip(arrays, packed, strict=True))


def pack_array(array: NDArray[Any]) -> PackedArray:
    """Pack one array as text; see ``pack_arrays``."""
    size = array.dtype.itemsize
    little = np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<"))
    planes = little.reshape(-1).view(np.uint8).reshape(-1, size).T
    text = base64.b64encode(zlib.compress(planes.tobytes(), _LEVEL)).decode("ascii")
    return PackedArray(_TYPES[f"{array.dtype.kind}{size}"], array.size, text)
