"""Only freed memory is returned to the system."""

from __future__ import annotations

import ctypes
from pathlib import Path

import pytest

from mosesplug.large_arrays import release_memory

SIZE, COUNT = 100_000, 400  # too small to be mapped one by one


def resident() -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith("RssAnon"))


def test_free_heap_memory_is_returned_to_the_system() -> None:
    library = ctypes.CDLL(None)
    if not hasattr(library, "malloc_trim"):
        pytest.skip("not the C library of GNU")
    library.malloc.restype = ctypes.c_void_p
    library.malloc.argtypes = [ctypes.c_size_t]
    library.free.argtypes = [ctypes.c_void_p]
    blocks = [library.malloc(SIZE) for _ in range(COUNT)]
    for number, block in enumerate(blocks):
        ctypes.memset(block, number % 256, SIZE)
    for block in blocks[:-1]:  # the last one keeps the heap from shrinking
        library.free(block)
    before = resident()

    release_memory()

    assert before - resident() > SIZE * COUNT / 2
    assert ctypes.string_at(blocks[-1], SIZE) == bytes([(COUNT - 1) % 256]) * SIZE
    library.free(blocks[-1])
