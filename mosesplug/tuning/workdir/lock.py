"""Lock a working directory: one run at a time, on any machine.

The kernel's lock (``flock``) ends when it is released, or with the process that holds it and those
that it forked, over NFS with the lease of its machine. Forked processes of a killed run end soon
after it, so the next run waits for them. The lock file also names the holder, for messages. On file
systems without locks, or whose locks count on one machine only, this name decides: a process of
this machine is looked up, one of another machine is assumed to be alive.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import re
import socket
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from mosesplug.errors import DataError

_HOLDER = re.compile(r"process (\d+) on (\S+)")
_PATIENCE = 30.0
"""Seconds to wait for processes that a killed run forked: each ends after its current sentence."""
_NO_LOCKS = frozenset({errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL})
_LOCKS_OF_ONE_MACHINE = frozenset({"nolock", "local_lock=all", "local_lock=flock", "localflock"})
"""Options of mounts: those of NFS, and that of Lustre."""
_MOUNTS = Path("/proc/mounts")


@contextlib.contextmanager
def lock_directory(path: Path) -> Iterator[None]:
    """Lock the directory of a lock file until the block ends.

    Args:
        path: the lock file, which is not removed. Its directory exists.

    Raises:
        DataError: another run has locked it, whose process and machine the message names; or it is
            not a regular file.
        OSError: the file cannot be written.
    """
    owner = os.getpid()
    with _open_locked(path) as file:
        try:
            file.truncate(0)
            # Unbuffered: a buffer would be written again when the file is closed.
            os.write(file.fileno(), f"process {os.getpid()} on {socket.gethostname()}\n".encode())
        except OSError as error:
            error.filename = str(path)  # "no space left" does not name the file
            raise
        try:
            yield
        finally:
            if os.getpid() == owner:  # a forked child may close what it inherited
                file.truncate(0)  # the next run need not look the process up
                with contextlib.suppress(OSError):  # on file systems without locks
                    # Closing is not enough: forked processes share the lock while they live.
                    fcntl.flock(file, fcntl.LOCK_UN)


def _open_locked(path: Path) -> BinaryIO:
    while True:
        file = _open_unlinked(path)
        try:
            _lock(file, path)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), path.stat()):
                    return file
        except BaseException:
            file.close()
            raise
        # The last holder removed the file, so this lock is on a file without a name.
        file.close()


def _open_unlinked(path: Path) -> BinaryIO:
    """Open or create the file, without following a link or waiting for a pipe."""
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK
    try:
        descriptor = os.open(path, flags, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _irregular_error(path) from None
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _irregular_error(path)
    return os.fdopen(descriptor, "a+b")


def _irregular_error(path: Path) -> DataError:
    return DataError(f"{path} is a link or a pipe, not a regular file. Remove it")


def _lock(file: BinaryIO, path: Path) -> None:
    trusted = not _is_of_one_machine(path)
    try:
        _wait_for_lock(file, path)
    except OSError as error:
        if error.errno not in _NO_LOCKS:
            raise
        trusted = False
    note = _note(file)
    if not trusted and _may_live(note):
        raise _in_use_error(
            path,
            note,
            f", as {path} says; this file system has no locks that other machines see, so if that"
            " run is over, remove this file",
        )


def _wait_for_lock(file: BinaryIO, path: Path) -> None:
    """Take the kernel's lock; wait for it only while the process that took it is dead."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            note = _note(file)
            if not _is_dead(note):
                raise _in_use_error(path, note) from error
            if time.monotonic() > end:
                more = ", which was killed but started processes that still run"
                raise _in_use_error(path, note, more) from error
            time.sleep(0.05)
        else:
            return


def _note(file: BinaryIO) -> str:
    file.seek(0)
    return file.read(1000).decode(errors="replace").strip()


def _may_live(note: str) -> bool:
    """Return whether the process that a note names may be running."""
    match = _HOLDER.fullmatch(note)
    if match is None or _is_dead(note):
        return False
    return match[2] != socket.gethostname() or int(match[1]) != os.getpid()


def _is_dead(note: str) -> bool:
    """Return whether a note names a process of this machine that has ended."""
    match = _HOLDER.fullmatch(note)
    if match is None or match[2] != socket.gethostname():
        return False
    try:
        os.kill(int(match[1]), 0)
    except PermissionError:
        return False  # another user's
    except ProcessLookupError:
        return True
    return False


def _in_use_error(path: Path, note: str, more: str = "") -> DataError:
    return DataError(
        f"{path.parent} is in use by another tuning run, {note or 'which has just begun'}{more}:"
        " wait for its end, or use another working directory"
    )


def _is_of_one_machine(path: Path) -> bool:
    """Return whether locks on this file system count on this machine only."""
    try:
        mounts = [line.split() for line in _MOUNTS.read_text(errors="replace").splitlines()]
    except OSError:
        return False
    place, depth, options = path.parent.resolve(), 0, ""
    for _, point, _, kind, *_ in mounts:
        # The innermost mount counts; of several at one point, the last.
        if place.is_relative_to(point) and len(Path(point).parts) >= depth:
            depth, options = len(Path(point).parts), kind
    return not _LOCKS_OF_ONE_MACHINE.isdisjoint(options.split(","))
