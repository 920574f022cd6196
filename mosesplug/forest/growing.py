"""Arrays that grow or are sorted inside kernels."""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel, lean_kernel

Number = TypeVar("Number", np.int32, np.int64)


@kernel
def double_length(array: NDArray[Number]) -> NDArray[Number]:
    """Return a copy of twice the length whose first half is the array."""
    larger = np.empty(2 * len(array), dtype=array.dtype)
    for place in range(len(array)):
        larger[place] = array[place]
    return larger


@lean_kernel
def sift_down(heap: NDArray[Any], place: int, size: int) -> None:
    """Restore a heap (maximum first) after the value at ``place`` decreased.

    Args:
        heap: input and output; its first ``size`` values are the heap.
    """
    value = heap[place]
    while 2 * place + 1 < size:
        child = 2 * place + 1
        if child + 1 < size and heap[child + 1] > heap[child]:
            child += 1
        if not heap[child] > value:
            break
        heap[place] = heap[child]
        place = child
    heap[place] = value


@lean_kernel
def sort_ascending(values: NDArray[Any], size: int) -> None:
    """Sort the first ``size`` values in place; ``np.sort`` compiles slowly."""
    for place in range(size // 2 - 1, -1, -1):
        sift_down(values, place, size)
    for last in range(size - 1, 0, -1):
        values[0], values[last] = values[last], values[0]
        sift_down(values, 0, last)
