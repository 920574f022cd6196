"""Memory between the phases of an iteration: what was freed goes back to the system.

The C library of GNU maps large arrays, and unmaps them when they are freed; but each one that is
freed raises the size from which it does so, up to 32 MB. From the second iteration on, most arrays
of a tuning set therefore lie in its heap. There their memory stays with the process when they are
freed, and where some small object comes to lie between two holes, the next array fits into neither
and the heap grows. So a run's memory would rise by the size of an array now and then, without one
byte more in use, and the decoder would run beside what the optimizer before it had needed.

To forbid large arrays the heap once for all would be simpler; but then every passing array of an
optimizer's inner loop would be mapped anew, and be filled with zeros by the system first.
"""

from __future__ import annotations

import ctypes

__all__ = ["give_back"]


def give_back() -> None:
    """Return free pages of the heap to the system, holes included; milliseconds.

    Nothing is done where the C library has no ``malloc_trim``, as those of macOS and of Alpine.
    """
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(ctypes.c_size_t(0))
