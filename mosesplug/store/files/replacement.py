"""Replace or remove the files of a store beside processes that open it.

LMDB opens ``data.mdb`` and ``lock.mdb`` by name, one after the other. Whoever opens the new file of
data with the old table of readers, or the other way round, reads by the transaction number of
another file: iterations vanish, and a writer reuses pages that are being read. So a process holds a
shared lock (``flock``) on the store's directory while it opens the files, and whoever replaces them
an exclusive one.

As long as a process has a store open, LMDB holds a shared lock on the first byte of ``lock.mdb``.
Compaction, which changes what these processes read, requires that there is none. Removing a store
does not: they keep both of its files.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from formats.text import sync_directory
from mosesplug.errors import StoreError, StoreInUse
from mosesplug.scratch import ScratchDirectory
from mosesplug.store.files.locks import BUSY, FileLock

DRAFT = ".compact."
"""Prefix of directories with a copy that is being made."""

_PATIENCE = 10.0
"""Seconds to wait for processes that open a store, and for those that only look at it."""
_PAUSE = 0.01


@contextmanager
def keep_files(directory: Path) -> Iterator[None]:
    """Keep the files of a store in place while the block opens them.

    Raises:
        StoreInUse: another process replaces them, and does not finish.
        OSError: the directory cannot be opened.
    """
    with _lock(directory, fcntl.LOCK_SH, is_required=False):
        yield


@contextmanager
def _lock(directory: Path, kind: int, *, is_required: bool) -> Iterator[None]:
    """Lock a directory; where that is impossible, fail only if it is required."""
    end = time.monotonic() + _PATIENCE
    while (descriptor := _open_locked(directory, kind, is_required=is_required)) is None:
        if time.monotonic() > end:
            raise StoreInUse(
                f"another process is opening, compacting or removing the n-best store at "
                f"{directory}: try again when it has finished"
            )
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        with suppress(OSError):
            # Closing is not enough: a forked process may hold the descriptor.
            fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _open_locked(directory: Path, kind: int, *, is_required: bool) -> int | None:
    """Return the descriptor of the locked directory, or None if it is in use."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        is_locked = _try_lock(descriptor, kind, is_required=is_required)
        # It may have been removed, and made again, since it was opened.
        if is_locked and os.path.samestat(os.fstat(descriptor), directory.stat()):
            kept, descriptor = descriptor, -1
            return kept
    except FileNotFoundError:
        pass
    finally:
        if descriptor >= 0:
            os.close(descriptor)
    return None


def _try_lock(descriptor: int, kind: int, *, is_required: bool) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in BUSY:
            return False
        if is_required:
            raise
    return True


def replace_data(directory: Path, new: Path) -> bool:
    """Replace a store's data by a new file, unless a process has the store open.

    This process may not have it open. It waits some seconds for processes that only look at it.

    Args:
        directory: the store.
        new: the new data, in a directory beside it.

    Returns:
        Whether the data were replaced.

    Raises:
        StoreInUse: another process is opening the store, and does not finish.
        OSError: the file cannot be replaced, or the file system has no locks.
    """
    end = time.monotonic() + _PATIENCE
    while True:
        with _lock(directory, fcntl.LOCK_EX, is_required=True), _claim(directory) as is_free:
            if is_free:
                new.replace(directory / "data.mdb")
                # Its transaction number is that of the old data.
                (directory / "lock.mdb").unlink(missing_ok=True)
                sync_directory(directory)
                return True
        if time.monotonic() > end:
            return False
        time.sleep(_PAUSE)


@contextmanager
def _claim(directory: Path) -> Iterator[bool]:
    """Take LMDB's own lock, which tells whether any process has the store open."""
    descriptor = os.open(directory / "lock.mdb", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        lock = FileLock(descriptor, exclusive=True, length=1)
    except OSError as error:
        os.close(descriptor)
        if error.errno not in BUSY:
            raise
        yield False
        return
    try:
        yield True
    finally:
        lock.release()


@contextmanager
def make_store(target: Path) -> Iterator[Path]:
    """Yield a place for a new store, which gets its name when it is complete.

    Nothing is left of it after an error; if this process is killed, the next attempt removes what
    is left.

    Args:
        target: the new store; at most an empty directory.

    Raises:
        StoreError: there is something, or its directory cannot be written.
    """
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target} exists already: name a new directory")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch = ScratchDirectory(f".{target.name}.", target.parent)
    except OSError as error:
        raise StoreError(f"cannot make the n-best store at {target}: {error.strerror}") from None
    with scratch as directory:
        draft = Path(directory) / target.name
        yield draft
        draft.rename(target)
        sync_directory(target.parent)


def remove_store(directory: Path) -> None:
    """Remove a store at once: if this is killed, it is there or gone.

    Processes that have it open keep what they read. Of a link, only the link is removed.

    Raises:
        StoreInUse: another process is opening the store, and does not finish.
        OSError: it cannot be removed.
    """
    remove_discarded(directory)
    if directory.is_symlink() or directory.is_file():
        directory.unlink()
    elif directory.is_dir():
        with _lock(directory, fcntl.LOCK_EX, is_required=False):
            directory.rename(_discarded(directory))
        remove_discarded(directory)


def remove_discarded(directory: Path) -> None:
    """Remove what a killed process left of a store that it removed."""
    discarded = _discarded(directory)
    if discarded.is_symlink():
        discarded.unlink()
    elif discarded.is_dir():
        shutil.rmtree(discarded)


def _discarded(directory: Path) -> Path:
    return directory.with_name(f".{directory.name}.removed")


def remove_drafts(directory: Path) -> None:
    """Remove copies that killed processes left; only the store's writer may call this."""
    for draft in directory.glob(f"{DRAFT}*"):
        shutil.rmtree(draft, ignore_errors=True)
