"""Open LMDB's files, with or without locks, and with a map that fits."""

from __future__ import annotations

import errno
import logging
import mmap
import os
from pathlib import Path
from typing import Any

import lmdb

from formats.text import sync_directory
from mosesplug.errors import StoreError, StoreInUse
from mosesplug.store.files.locks import find_lock

DATABASES = ("meta", "iterations", "kbest", "statistics", "forest")
"""The named databases of every store."""
_MOST_DATABASES = 8

MORE_FILES = f"{os.strerror(errno.EMFILE)}. Allow more (ulimit -n); finished iterations are kept"
NO_LOCKS = tuple(map(os.strerror, (errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP)))
_FORBIDDEN = tuple(map(os.strerror, (errno.EACCES, errno.EPERM, errno.EROFS)))
_NO_ROOM = os.strerror(errno.ENOMEM)
_SMALLEST_MAP = 1 << 20


def reject_links(path: Path, *, writable: bool) -> None:
    """Reject pipes and links in the place of the files that LMDB writes.

    Opening a pipe waits for its other end. Behind a link is a file of somebody else: even a reader
    writes the table of readers.

    Args:
        path: the directory of the store.
        writable: whether the data file is written, too.

    Raises:
        StoreError: there is one.
    """
    written = {"data.mdb": writable, "writer.lock": writable, "lock.mdb": True}
    for name, is_written in written.items():
        file = path / name
        if (file.is_symlink() and is_written) or (file.exists() and not file.is_file()):
            raise StoreError(
                f"{file} is a link or a pipe, not a regular file. Put the file of the store in its"
                " place"
            )


def open_files(path: Path, *, writable: bool, map_size: int) -> tuple[Any, bool]:
    """Open the files of a store.

    A reader who may not write LMDB's table of readers, or whose file system has no locks, reads
    without it, unless a writer is at work.

    Args:
        writable: whether to write.
        map_size: address space in bytes; less is taken if there is not so much.

    Returns:
        LMDB's environment; and whether the table of readers protects what it reads.

    Raises:
        StoreError: the files cannot be opened.
        lmdb.Error: the disk is full.
    """
    try:
        return _open(path, writable, map_size, lock=True), True
    except lmdb.Error as error:
        if writable or not any(reason in str(error) for reason in (*_FORBIDDEN, *NO_LOCKS)):
            raise
        why = str(error).removeprefix(f"{path}: ")
    _check_access(path)
    environment = _open(path, writable, map_size, lock=False)
    logging.getLogger(__name__).warning(
        "note: the n-best store at %s is read without LMDB's lock (%s): a run that begins to write"
        " it meanwhile ends this command with an error",
        path,
        why,
    )
    return environment, False


def create_data(path: Path) -> None:
    """Create the file of data of a new store, whole or not at all.

    LMDB writes the first pages in place: after a loss of power, a part of them would be neither
    a store nor nothing. Only the writer may call this.

    Raises:
        lmdb.Error, OSError: the file cannot be written.
    """
    draft = path / "data.new"
    draft.unlink(missing_ok=True)
    lmdb.open(str(draft), subdir=False, lock=False, map_size=_SMALLEST_MAP).close()
    with draft.open("rb+") as file:
        os.fsync(file.fileno())
    draft.rename(path / "data.mdb")
    sync_directory(path)


def _check_access(path: Path) -> None:
    """Check that a store can be read without locks.

    Raises:
        StoreError: the data may not be read, or a writer is at work.
    """
    try:
        os.close(os.open(path / "data.mdb", os.O_RDONLY))
    except OSError as error:
        raise StoreError(
            f"the n-best store at {path} cannot be read: {error.strerror}. Ask the owner of "
            "data.mdb for permission to read it"
        ) from None
    if find_lock(path / "writer.lock"):
        holder = (path / "writer.lock").read_text(errors="replace").strip()
        raise StoreError(
            f"the n-best store at {path} is being written by {holder or 'another process'}, and "
            "may be read beside it only by those who may write into its directory: wait until it "
            "ends, or ask its owner for that permission or for a copy (mosesplug nbest copy)"
        )


def _open(path: Path, writable: bool, map_size: int, *, lock: bool) -> Any:
    """Open an environment with the largest map that fits."""
    data = path / "data.mdb"
    stored = data.stat().st_size if data.is_file() else 0
    size = max(map_size, stored)
    while True:
        try:
            return lmdb.open(
                str(path),
                max_dbs=_MOST_DATABASES,
                map_size=size,
                readonly=not writable,
                readahead=True,
                max_spare_txns=2,
                lock=lock,
            )
        except lmdb.MemoryError:
            if size <= max(stored, _SMALLEST_MAP):
                raise
            size = max(size // 2, stored, _SMALLEST_MAP)


def has_room(extra: int) -> bool:
    """Return whether the address space has room for so many bytes more."""
    if extra <= 0:
        return True
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    try:
        mmap.mmap(-1, extra, flags=flags, prot=mmap.PROT_READ).close()
    except (OSError, OverflowError):
        return False
    return True


def explain_failure(path: Path, error: Exception) -> StoreError:
    """Return the error for a store that LMDB cannot open."""
    text = str(error).removeprefix(f"{path}: ")
    if "already open" in text:
        return in_use_error(path)
    head = f"the n-best store at {path} cannot be opened: {text}"
    if os.strerror(errno.EMFILE) in text:
        return StoreError(f"the n-best store at {path} cannot be opened: {MORE_FILES}")
    if os.strerror(errno.EAGAIN) in text:
        return StoreError(
            f"{head}. LMDB tells its users apart by their process numbers, and another process"
            f" {os.getpid()}, in another container, has this store open. Start the container with"
            " the host's process numbers, or read a copy (mosesplug nbest copy)"
        )
    if _NO_ROOM in text:
        return no_room_error(path)
    if any(reason in text for reason in NO_LOCKS):
        return no_locks_error(path)
    if any(reason in text for reason in _FORBIDDEN):
        return StoreError(f"{head}. Ask the owner of its directory for permission to write there")
    if isinstance(error, lmdb.InvalidError | lmdb.CorruptedError | lmdb.VersionMismatchError):
        return StoreError(f"{head}. Its files are damaged: use a copy, or an empty directory")
    return StoreError(head)


def in_use_error(path: Path) -> StoreInUse:
    """Return the error for a store that this process has open."""
    return StoreInUse(
        f"the n-best store at {path} is already open in this process: "
        "close it (an open Tuner: tuner.close()) and release its arrays, or read it from "
        "another process"
    )


def no_locks_error(path: Path) -> StoreError:
    """Return the error for a writer on a file system without locks."""
    return StoreError(
        f"the n-best store at {path} cannot be written: its file system has no locks, without "
        "which two runs could write it at once. Use a directory on another file system, as a "
        "local disk"
    )


def no_room_error(path: Path) -> StoreError:
    """Return the error for an address space that is too small for the map."""
    size = (path / "data.mdb").stat().st_size if (path / "data.mdb").is_file() else 0
    return StoreError(
        f"the n-best store at {path} cannot be mapped into memory: its {max(size >> 20, 1)} MB of "
        "data do not fit the address space that this process may use. Raise the limit (ulimit -v)"
    )
