"""Locks of files that belong to the process that took them.

A POSIX record lock (``lockf``) ends as soon as the process closes any descriptor of the file:
copying the directory of an open store from Python would end it unnoticed. A lock of an open file
description, where the system has them, ends with its own descriptor only, but forked processes
share it. So it is released explicitly, and every new child closes what it inherited. Both kinds
exclude each other.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import struct
import weakref
from pathlib import Path

BUSY = (errno.EAGAIN, errno.EACCES)
"""Numbers of the error that another process has locked the file."""

_FLOCK = struct.Struct("hhqqi0q")
"""``struct flock`` of Linux: type, whence, start, length, and process id, which must be 0."""


class FileLock:
    """A lock on a range of bytes of a file, or on the whole file.

    Args:
        descriptor: the open file, which the lock closes in the end.
        exclusive: whether no other process may have a lock of this range.
        length: number of bytes from the first; 0 for the whole file.

    Raises:
        OSError: another process has locked it, or the file system has no locks. The descriptor is
            still the caller's.
    """

    def __init__(self, descriptor: int, *, exclusive: bool, length: int = 0) -> None:
        self.descriptor = descriptor
        self._pid = os.getpid()
        self._length = length
        self._is_held = False
        self._set(fcntl.F_WRLCK if exclusive else fcntl.F_RDLCK)
        self._is_held = True
        _held.add(self)

    def _set(self, kind: int) -> None:
        if hasattr(fcntl, "F_OFD_SETLK"):
            request = _FLOCK.pack(kind, os.SEEK_SET, 0, self._length, 0)
            fcntl.fcntl(self.descriptor, fcntl.F_OFD_SETLK, request)
            return
        kinds = {fcntl.F_WRLCK: fcntl.LOCK_EX, fcntl.F_RDLCK: fcntl.LOCK_SH}
        fcntl.lockf(self.descriptor, kinds.get(kind, fcntl.LOCK_UN) | fcntl.LOCK_NB, self._length)

    def release(self) -> None:
        """Release the lock, also if a forked process still has the descriptor.

        In a forked process, and in a second call, it does nothing.
        """
        if not self._is_held or os.getpid() != self._pid:
            return
        with contextlib.suppress(OSError):
            self._set(fcntl.F_UNLCK)
        self._close()

    def _close(self) -> None:
        if self._is_held:
            self._is_held = False
            os.close(self.descriptor)

    def __del__(self) -> None:
        self.release()


def find_lock(path: Path) -> bool:
    """Return whether another process is known to have an exclusive lock on a file."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        lock = FileLock(descriptor, exclusive=False)
    except OSError as error:
        os.close(descriptor)
        return error.errno in BUSY
    lock.release()
    return False


_held: weakref.WeakSet[FileLock] = weakref.WeakSet()
"""The locks of this process, for its forked children: descriptors belong to the process, too."""


def _close_inherited() -> None:
    for lock in list(_held):
        lock._close()
    _held.clear()


os.register_at_fork(after_in_child=_close_inherited)
