"""Only freed memory is returned to the system, and some is kept for the next arrays."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import sys
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


REUSE = """
import resource
import numpy as np
from mosesplug.large_arrays import keep_freed_memory

keep_freed_memory()
np.empty(1 << 20)[:] = 1
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(50):
    np.empty(1 << 20)[:] = 1
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def test_freed_arrays_are_reused() -> None:
    """A process that keeps memory does not ask the system again for each array of 8 MB."""
    if platform.libc_ver()[0] != "glibc":
        pytest.skip("not the C library of GNU")
    done = subprocess.run([sys.executable, "-c", REUSE], capture_output=True, check=True, text=True)
    assert int(done.stdout) < 50  # at least one for each array that is mapped again
