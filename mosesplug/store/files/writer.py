"""The one writer of a store, around LMDB: its directory, lock and errors."""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path

from mosesplug.errors import StoreError, StoreFull
from mosesplug.store.files.locks import BUSY, FileLock
from mosesplug.store.files.opening import MORE_FILES, in_use_error, no_locks_error

_TABLE_BYTES = 1 << 14
_FULL = ("No space left", "Disk quota", "File too large", "Input/output error")


def make_directory(path: Path) -> None:
    """Create the directory and LMDB's reader table in it.

    LMDB creates the table as a sparse file and maps it; on a full disk, writing to the map
    kills the process. Writing zeros first raises an error instead. The file is renamed into
    place and not opened again: closing it would drop LMDB's own locks.
    """
    table = path / "lock.mdb"
    draft = path / f"lock.{os.getpid()}"
    try:
        path.mkdir(parents=True, exist_ok=True)
        if not table.exists():
            try:
                draft.write_bytes(bytes(_TABLE_BYTES))
                with suppress(FileExistsError):
                    os.link(draft, table)
            except FileNotFoundError:
                if not table.exists():  # else another process made it and removed this draft
                    raise
            finally:
                draft.unlink(missing_ok=True)
        for left in path.glob("lock.*"):
            if left.name.removeprefix("lock.").isdecimal():
                left.unlink(missing_ok=True)  # of a process that was killed
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise writing_error(path, error) from None
        raise StoreError(f"cannot make the n-best store at {path}: {error.strerror}") from None


def lock_for_writing(path: Path) -> FileLock:
    """Take the writer's lock, and write into its file who has it."""
    own = f"process {os.getpid()} on {socket.gethostname()}"
    try:
        descriptor = os.open(path / "writer.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
    except OSError as error:
        raise writing_error(path, error) from None
    try:
        lock = FileLock(descriptor, exclusive=True)
    except OSError as error:
        holder = os.read(descriptor, 1000).decode(errors="replace").strip()
        os.close(descriptor)
        if error.errno not in BUSY:
            raise no_locks_error(path) from None
        if holder == own:
            raise in_use_error(path) from None
        raise StoreError(
            f"the n-best store at {path} is being written by "
            f"{holder or 'another process'}: wait for it, or open the store to read"
        ) from None
    try:
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{own}\n".encode())
    except OSError as error:
        lock.release()
        raise writing_error(path, error) from None
    return lock


def is_full(error: Exception) -> bool:
    """Return whether an error says that the disk is full or failing."""
    return any(reason in str(error) for reason in _FULL)


def writing_error(path: Path, error: Exception) -> StoreError:
    """Return the error for a store that cannot be written."""
    if is_full(error):
        return StoreFull(
            f"no room to write the n-best store at {path} ({error}): the disk is full "
            "or failing. Free some space and continue; finished iterations are kept"
        )
    why = MORE_FILES if os.strerror(errno.EMFILE) in str(error) else error
    return StoreError(f"cannot write the n-best store at {path}: {why}")
