"""The memory of large arrays: temporary files mapped into memory, and the heap.

Arrays that are too large for the heap are in files. The kernel writes their pages to disk and drops
them when memory is short. The files are in the directory for temporary files (``TMPDIR``) and have
no name, so that they vanish with their arrays.

GNU libc maps large arrays and unmaps them when they are freed, but each freed array raises the size
from which it does so, up to 32 MB. From the second iteration of a run on, most arrays of a tuning
set therefore lie on the heap, where their memory stays with the process and fragments: the run
would grow without using more, and the decoder would have less room. To keep all of them off the
heap would be simpler, but every temporary array of an inner loop would then be mapped again.
"""

from __future__ import annotations

import ctypes
import math
import mmap
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

__all__ = [
    "HEAP_BYTES",
    "allocate",
    "concatenate",
    "keep_freed_memory",
    "release_memory",
    "take_rows",
    "take_runs",
]

HEAP_BYTES = 64 << 20
"""Size of an array from which it is in a file."""

_KEPT_BYTES = 31 << 20  # with its header below the 32 MB up to which libc adapts


def allocate(
    shape: tuple[int, ...], dtype: DTypeLike, heap_bytes: int | None = None
) -> NDArray[Any]:
    """Return an array of undefined content, contiguous and writable.

    It is on the heap if it is small, or if no file of its size can be made.

    Args:
        shape: its shape.
        dtype: its type.
        heap_bytes: size from which it is in a file; None: ``HEAP_BYTES``.
    """
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if not _is_large(size, heap_bytes):
        return np.empty(shape, dtype)
    try:
        return np.ndarray(shape, dtype, _map_file(size))
    except OSError:
        return np.empty(shape, dtype)


def _is_large(size: int, heap_bytes: int | None) -> bool:
    limit = HEAP_BYTES if heap_bytes is None else heap_bytes
    return size >= max(1, limit) and hasattr(os, "posix_fallocate")


def _map_file(size: int) -> mmap.mmap:
    """Return a new file of so many bytes as memory.

    Raises:
        OSError: the disk is full, or files cannot be so large.
    """
    with tempfile.TemporaryFile(prefix="mosesplug-") as file:
        # Without room on the disk, writing to the memory would kill the process.
        os.posix_fallocate(file.fileno(), 0, size)
        return mmap.mmap(file.fileno(), size)


def concatenate(
    arrays: Sequence[NDArray[Any]], dtype: DTypeLike, heap_bytes: int | None = None
) -> NDArray[Any]:
    """Return the rows of one or more arrays, in an array of ``allocate``."""
    shape = (sum(map(len, arrays)), *arrays[0].shape[1:])
    result = allocate(shape, dtype, heap_bytes)
    np.concatenate(arrays, out=result)
    return result


def take_rows(
    array: NDArray[Any], rows: NDArray[np.int64], heap_bytes: int | None = None
) -> NDArray[Any]:
    """Return ``array[rows]`` in an array of ``allocate``.

    Args:
        array: ``[n, ...]``.
        rows: int64, from 0 to ``n - 1``.
        heap_bytes: as for ``allocate``.

    Raises:
        IndexError: a row is outside of the array.
    """
    shape = (len(rows), *array.shape[1:])
    if not _is_large(math.prod(shape) * array.itemsize, heap_bytes):
        return array[rows]
    if len(rows) and not (rows.min() >= 0 and rows.max() < len(array)):
        raise IndexError("a row is outside of the array")
    result = allocate(shape, array.dtype, heap_bytes)
    # With another mode, NumPy would first collect the result on the heap.
    np.take(array, rows, axis=0, out=result, mode="clip")
    return result


def take_runs(
    array: NDArray[Any], starts: NDArray[np.int64], stops: NDArray[np.int64]
) -> NDArray[Any]:
    """Return the rows ``starts[i]:stops[i]`` of each run, in an array of ``allocate``.

    Long runs are copied in a fraction of the time of ``take_rows``.
    """
    runs = zip(starts.tolist(), stops.tolist(), strict=True)
    return concatenate([array[:0], *(array[start:stop] for start, stop in runs)], array.dtype)


def keep_freed_memory() -> None:
    """Let this process keep the memory of freed arrays up to 31 MB for the next ones.

    For processes that end soon and make many arrays of some megabytes, such as parsers: the system
    need not map and clear their pages again for each array. GNU libc keeps memory up to the size of
    the largest array freed so far. One array of 31 MB, never written to, raises that limit; with
    other libraries it changes nothing.
    """
    np.empty(_KEPT_BYTES, dtype=np.uint8)


def release_memory() -> None:
    """Return free pages of the heap to the system, holes included; milliseconds.

    This does nothing if the C library has no ``malloc_trim``, as on macOS and Alpine.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
