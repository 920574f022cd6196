"""One run at a time in a directory, on whatever machine.

The lock is the kernel's (``flock``): it ends with the process that holds it, however that ends, and
over NFS with its machine's lease. So a lock that a dead process left is no lock, and one that is
held elsewhere is respected. The file also says in words who holds it, for messages; and where the
kernel's lock does not exist or counts on one machine only, as some mounts have it, these words are
all there is: a process of this machine is looked up, of another one they are believed.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mosesplug.errors import DataError

__all__ = ["lock_directory"]

_HOLDER = re.compile(r"process (\d+) on (\S+)")
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_LOCKS_OF_ONE_MACHINE = frozenset({"nolock", "local_lock=all", "local_lock=flock", "localflock"})
"""Options of mounts: those of NFS, and that of Lustre."""
_MOUNTS = Path("/proc/mounts")


@contextlib.contextmanager
def lock_directory(path: Path) -> Iterator[None]:
    """Hold the directory of a lock file until the block ends.

    Args:
        path: the lock file, which stays. The directory is there.

    Raises:
        DataError: another run holds it; says which process on which machine.
        OSError: the file cannot be written.
    """
    with _locked(path) as file:
        try:
            file.truncate(0)
            # Not by way of a buffer, which would be written again when the file is closed.
            os.write(file.fileno(), f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        except OSError as error:
            error.filename = str(path)  # a write that finds no room does not say where
            raise
        try:
            yield
        finally:
            file.truncate(0)  # who comes next need not ask whether that process lives


def _locked(path: Path) -> BinaryIO:
    """The lock file, locked as well as it can be."""
    while True:
        file = path.open("a+b")
        try:
            _lock(file, path)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except BaseException:
            file.close()
            raise
        # Whoever held it has removed it: another file has this name now, or will have.
        file.close()


def _lock(file: BinaryIO, path: Path) -> None:
    """Lock the open file.

    Raises:
        DataError: another run holds it.
    """
    trusted = not _is_of_one_machine(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise _in_use(path, _note(file)) from error
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        trusted = False
    note = _note(file)
    if not trusted and _may_live(note):
        raise _in_use(
            path,
            note,
            f", as {path} says; this file system has no locks that other machines see, so if that"
            " run is over, remove this file",
        )


def _note(file: BinaryIO) -> str:
    """Who holds it, in the file's own words."""
    file.seek(0)
    return file.read(1000).decode(errors="replace").strip()


def _may_live(note: str) -> bool:
    """Whether the process of a note may be at work."""
    found = _HOLDER.fullmatch(note)
    if found is None:
        return False
    if found[2] != socket.gethostname():
        return True
    try:
        os.kill(int(found[1]), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True  # another user's
    return int(found[1]) != os.getpid()


def _in_use(path: Path, note: str, more: str = "") -> DataError:
    return DataError(
        f"{path.parent} is in use by another tuning run, {note or 'which has just begun'}{more}:"
        " wait for its end, or use another working directory"
    )


def _is_of_one_machine(path: Path) -> bool:
    """Whether locks there are known to count on this machine only."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:
        return False
    place, depth, options = path.parent.resolve(), 0, ""
    for _, point, _, found, *_ in mounts:
        # The innermost counts; of several in one place, the last.
        if place.is_relative_to(point) and len(Path(point).parts) >= depth:
            depth, options = len(Path(point).parts), found
    return not _LOCKS_OF_ONE_MACHINE.isdisjoint(options.split(","))
