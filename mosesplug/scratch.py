"""Temporary directories that a later run removes if their process was killed.

A file in the directory is locked (``flock``) as long as the process lives, or one that it forked.
Whoever makes another directory beside it removes those of this user that nobody has locked. The
file names the start of the machine: on a file system that machines share, locks may count on one of
them only, so directories of others are left alone.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import socket
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

__all__ = ["ScratchDirectory"]

_MARK = ".in-use"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


class ScratchDirectory(tempfile.TemporaryDirectory[str]):
    """A temporary directory; see ``tempfile.TemporaryDirectory``.

    Args:
        prefix: the begin of its name; abandoned directories with this begin are removed.
        directory: where it is made; default: the directory for temporary files.
    """

    def __init__(
        self, prefix: str = "mosesplug-", directory: str | os.PathLike[str] | None = None
    ) -> None:
        parent = Path(tempfile.gettempdir() if directory is None else directory)
        _remove_abandoned(parent, prefix)
        super().__init__(prefix=prefix, dir=parent, ignore_cleanup_errors=True)
        self._mark = _mark(Path(self.name))

    def cleanup(self) -> None:
        """Remove the directory."""
        super().cleanup()
        if self._mark >= 0:
            os.close(self._mark)
            self._mark = -1


def _describe_machine() -> bytes:
    try:
        return _BOOT.read_bytes()
    except OSError:
        return socket.gethostname().encode()


def _mark(directory: Path) -> int:
    """Mark a directory as in use; return the descriptor that holds the lock, or -1.

    The file gets its name when it is locked: without one, a directory is left alone.
    """
    draft = directory / f"{_MARK}.new"
    descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.write(descriptor, _describe_machine())
        draft.rename(directory / _MARK)
    except OSError:  # without locks, or on a full disk, it is an ordinary temporary directory
        os.close(descriptor)
        draft.unlink(missing_ok=True)
        return -1
    return descriptor


def _remove_abandoned(parent: Path, prefix: str) -> None:
    with suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and _is_own(entry) and _is_abandoned(entry.path):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_own(entry: os.DirEntry[str]) -> bool:
    status = entry.stat(follow_symlinks=False)
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()


def _is_abandoned(directory: str) -> bool:
    """Return whether a process of this machine marked a directory and has ended."""
    try:
        descriptor = os.open(Path(directory, _MARK), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.read(descriptor, 1000) == _describe_machine()
    except OSError:
        return False
    finally:
        os.close(descriptor)
