"""Time and memory of a run; no result depends on them.

GNU libc maps large arrays and unmaps them when they are freed, but each freed array raises the
size from which it does so, up to 32 MB. From the second iteration on, most arrays of a tuning set
therefore lie on the heap, where their memory stays with the process and fragments: the run would
grow without using more, and the decoder would have less room. To keep large arrays off the heap
altogether would be simpler, but every temporary array of an inner loop would then be mapped again.
"""

from __future__ import annotations

import ctypes
import time

__all__ = ["Clock", "release_memory"]


class Clock:
    """Seconds since it was made."""

    def __init__(self) -> None:
        self._start = time.monotonic()

    def seconds(self) -> float:
        """Wall time since the clock was made."""
        return time.monotonic() - self._start


def release_memory() -> None:
    """Return free pages of the heap to the system, holes included; milliseconds.

    This does nothing if the C library has no ``malloc_trim``, as on macOS and Alpine.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
