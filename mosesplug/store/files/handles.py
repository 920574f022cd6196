"""The LMDB environments that this process has open, which its readers share.

LMDB allows one environment for each file in a process, and threads may read through one at the same
time. Only its map must not be replaced meanwhile.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import os
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.store.files.locks import FileLock

_PATIENCE = 10.0
"""Seconds that a larger map waits for the transactions of other threads."""
_PAUSE = 0.005


class PinnedTransaction:
    """A read transaction that stays open as long as an array of ``view`` exists."""

    def __init__(self, transaction: Any, handle: Handle) -> None:
        self.transaction = transaction
        self.thread = threading.get_ident()
        self._handle = handle
        self._pid = os.getpid()

    def end(self) -> None:
        """End the transaction now, unless this is a forked child of its owner."""
        if os.getpid() == self._pid:
            self.transaction.abort()

    def view(self, buffer: memoryview) -> NDArray[np.uint8]:
        """Return the bytes as a read-only array, without a copy."""
        return np.asarray(_View(buffer, self))


class _View:
    """The owner of mapped memory, with the array interface of NumPy."""

    def __init__(self, buffer: memoryview, owner: PinnedTransaction) -> None:
        self.owner = owner
        self.__array_interface__ = np.frombuffer(buffer, np.uint8).__array_interface__


@dataclass(eq=False)
class Handle:
    """An open environment.

    Attributes:
        environment: LMDB's object.
        writable: whether it was opened to write; such a handle has one user.
        guard: holds the lock by which LMDB knows that the store is open.
        key: device and inode of the file of data.
        is_locked: whether the table of readers protects what its readers read.
        users: objects that have it open.
        databases: handles of the named databases.
        pins: the read transactions that have not ended.
    """

    environment: Any
    writable: bool
    guard: FileLock | None
    key: tuple[int, int]
    is_locked: bool = True
    users: int = 1
    databases: dict[str, Any] = field(default_factory=dict)
    pins: weakref.WeakSet[PinnedTransaction] = field(default_factory=weakref.WeakSet)
    _lock: threading.RLock = field(default_factory=threading.RLock)

    def __post_init__(self) -> None:
        _registry.handles[self.key] = self

    def begin(self) -> PinnedTransaction:
        """Return a new read transaction.

        Raises:
            lmdb.Error: there are too many readers, or another process has enlarged the map.
        """
        with self._lock:
            pinned = PinnedTransaction(self.environment.begin(buffers=True), self)
            self.pins.add(pinned)
            if self.guard is not None:
                # LMDB locks the byte of this number once; a copy of the file ends that lock, and
                # the writer would take this reader for dead.
                fcntl.lockf(self.guard.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, os.getpid())
            return pinned

    def end(self, pinned: PinnedTransaction) -> None:
        """End a read transaction."""
        pinned.end()
        self.pins.discard(pinned)

    def resize(self, size: int) -> bool:
        """Replace the map by one of another size in bytes.

        It waits for the transactions of other threads.

        Returns:
            Whether no array of the map was in use, so that it was replaced.
        """
        end = time.monotonic() + _PATIENCE
        with self._lock:
            while len(self.pins):
                own = threading.get_ident()
                if any(pinned.thread == own for pinned in self.pins) or time.monotonic() > end:
                    return False
                time.sleep(_PAUSE)
            self.environment.set_mapsize(size)
            return True

    def release(self) -> None:
        """Close the environment if this was its last user and no array of it is in use."""
        with _registry.lock:
            self.users -= 1
            if self.users or len(self.pins):
                return
            _registry.handles.pop(self.key, None)
            # The other way round, LMDB would lose its own locks of the file while it is open.
            self.environment.close()
            if self.guard is not None:
                self.guard.release()


def share_handle(path: Path, *, writable: bool, open_new: Callable[[], Handle]) -> Handle:
    """Return the open handle of a file of data for one more reader, or a new one.

    Args:
        writable: whether the user writes; writers do not share.
        open_new: opens the environment.

    Raises:
        Whatever ``open_new`` raises.
    """
    with _registry.lock:
        if not writable:
            with contextlib.suppress(OSError):
                opened = _registry.handles.get(find_key(path))
                if opened is not None and not opened.writable:
                    opened.users += 1
                    return opened
        return open_new()


def find_key(path: Path) -> tuple[int, int]:
    """Return what identifies a file.

    Raises:
        OSError: there is no such file.
    """
    status = path.stat()
    return status.st_dev, status.st_ino


def delete_prefix(transaction: Any, database: Any, prefix: bytes) -> None:
    """Delete all records of a database whose keys have a prefix."""
    cursor = transaction.cursor(database)
    is_there = cursor.set_range(prefix)
    while is_there and bytes(cursor.key()).startswith(prefix):
        is_there = cursor.delete()


def guard_table(path: Path) -> FileLock | None:
    """Keep LMDB's own lock of the table of readers, which says that the store is open.

    LMDB holds it as a record lock, which ends when this process copies the file. The next process
    would then take the store for closed and empty the table of readers.

    Args:
        path: the table of an open environment. No descriptor of it may be closed before that
            environment.

    Returns:
        The lock, or None where the system has no other kind of locks.
    """
    with contextlib.suppress(OSError):
        return FileLock(os.open(path, os.O_RDWR | os.O_CLOEXEC), exclusive=False, length=1)
    return None


@dataclass
class _Registry:
    """The handles of this process by their files."""

    lock: threading.RLock = field(default_factory=threading.RLock)
    handles: weakref.WeakValueDictionary[tuple[int, int], Handle] = field(
        default_factory=weakref.WeakValueDictionary
    )


_registry = _Registry()
"""LMDB's rule of one environment for each file holds for the process, so this is its state."""


def _forget_handles() -> None:
    """Leak the parent's environments in a forked child."""
    for handle in list(_registry.handles.values()):
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(handle.environment))
    _registry.__init__()  # type: ignore[misc]


os.register_at_fork(after_in_child=_forget_handles)
