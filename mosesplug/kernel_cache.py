"""Where compiled kernels are kept on disk, and how processes share them.

The cache is in ``NUMBA_CACHE_DIR``, beside the modules or in the user's cache directory, as Numba
chooses. If none of them can be written, as in a read-only container, it is in a private directory
of the user under the temporary directory; if that is impossible, kernels are not cached. Kernels
beside the modules are read even if nothing can be written there: whoever installs the package may
compile for all users. Numba executes what it finds in its cache, so a directory elsewhere that
belongs to another user, or that others can write, is not used. Damaged files of the cache are
replaced, and a full disk costs time only. Processes that want the same kernel at the same time
compile it once.
"""

from __future__ import annotations

import contextlib
import fcntl
import grp
import logging
import os
import pwd
import stat
import tempfile
import threading
import time
import zlib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Protocol

__all__ = [
    "COMPILING",
    "Semaphore",
    "has_home",
    "is_own_cache",
    "share_cache",
    "share_warning",
    "use_private_cache",
]

COMPILING = "mosesplug.compiling"
"""Name of the logger of kernels whose compilation begins and ends; silent by default."""


@cache
def has_home() -> bool:
    """Return whether the user's cache directory is known.

    If it is not, Numba creates one named ``~``.
    """
    import numba

    config: Any = numba.config
    if config.CACHE_DIR or os.environ.get("XDG_CACHE_HOME"):
        return True
    try:
        return Path.home().is_absolute()
    except RuntimeError:
        return False


@cache
def use_private_cache() -> bool:
    """Let Numba use a private temporary cache; warn and return False without one."""
    import numba

    config: Any = numba.config
    for place in _temporary_directories():
        directory = Path(place, f"mosesplug-kernels-{os.geteuid()}")
        if _is_private(directory):
            config.CACHE_DIR = str(directory)
            return True
    _warn(
        "no directory can be written to cache compiled code, so every command compiles it anew "
        "(10 seconds and more). Set NUMBA_CACHE_DIR to a writable directory."
    )
    return False


def _temporary_directories() -> Iterator[str]:
    """Yield the directories of ``tempfile``, except the current directory."""
    named = (os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
    yield from (place for place in (*named, "/tmp", "/var/tmp") if place)


def _is_private(directory: Path) -> bool:
    """Create a missing directory; return whether only this user can read and write it."""
    user = os.geteuid()
    try:
        directory.mkdir(mode=0o700, exist_ok=True)
        status = directory.lstat()
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != user or status.st_mode & 0o077:
            return False
        tempfile.TemporaryFile(dir=directory).close()
    except OSError:
        return False
    return True


@cache
def is_own_cache(directory: str) -> bool:
    """Return whether only this user can write to a directory; warn if others can.

    Both the directory of a kernel and the one that holds those of all modules are looked at. A
    missing directory will be the user's.
    """
    for path in (Path(directory), Path(_find_named_cache() or directory)):
        if (problem := _describe_writers(path)) is not None:
            _warn(
                f"compiled code is not cached in {path}, which {problem}: whoever can write there"
                " could run programs as you. Set NUMBA_CACHE_DIR to a directory of your own that"
                " others cannot write (chmod go-w)."
            )
            return False
    return True


def _find_named_cache() -> str:
    import numba

    config: Any = numba.config
    return str(config.CACHE_DIR)


def _describe_writers(directory: Path) -> str | None:
    """Say who else can write to a directory; None if nobody can, or if it is missing."""
    try:
        status = directory.stat()
    except OSError:
        return None
    if status.st_uid not in (os.geteuid(), 0):
        return f"belongs to {_name_user(status.st_uid)}"
    if status.st_mode & stat.S_IWOTH:
        return "all users can write"
    if status.st_mode & stat.S_IWGRP and not _is_group_of_one(status.st_gid, status.st_uid):
        return "its group can write"
    return None


def _name_user(number: int) -> str:
    try:
        return pwd.getpwuid(number).pw_name
    except KeyError:
        return f"user {number}"


def _is_group_of_one(group: int, user: int) -> bool:
    """Return whether a group has only this user, and the user's name."""
    try:
        entry, name = grp.getgrgid(group), pwd.getpwuid(user).pw_name
    except KeyError:
        return False
    return entry.gr_name == name and set(entry.gr_mem) <= {name}


def share_cache(dispatcher: Any, modules: Path) -> None:
    """Let processes share the cached kernel of a dispatcher, and load it if they can.

    Args:
        dispatcher: Numba's, with a cache.
        modules: the directory of the module that defines the kernel.
    """
    _extend_cache(dispatcher._cache, modules)
    _take_turns(dispatcher)


def _extend_cache(kept: Any, modules: Path) -> None:
    """Let Numba work with a cache that it cannot read or write.

    Numba compiles what it cannot read, and runs what it cannot write. The files of the cache are
    replaced as a whole, but a crash of the machine may leave them empty. What is not in this cache
    is read from the one beside the modules.
    """
    load, save = kept.load_overload, kept.save_overload

    def load_overload(signature: Any, context: Any) -> Any:
        try:
            found = load(signature, context)
        except Exception:  # unpickling damaged bytes raises any error
            found = None
            with contextlib.suppress(OSError):
                kept.flush()
        if found is None and Path(kept.cache_path) != modules / "__pycache__":
            with contextlib.suppress(Exception):
                found = _load_beside(modules, kept, signature, context)
        return found

    def save_overload(*arguments: Any) -> None:
        try:
            save(*arguments)
        except OSError as error:
            _warn(
                f"compiled code cannot be cached ({error.strerror or error}: {kept.cache_path}), "
                "so the next command compiles it anew. Set NUMBA_CACHE_DIR to a directory with "
                "some space."
            )

    kept.load_overload, kept.save_overload = load_overload, save_overload


def _load_beside(modules: Path, kept: Any, signature: Any, context: Any) -> Any:
    """Load a compiled kernel from the cache beside the modules, or return None."""
    from numba.core import caching

    # The same names, stamps and keys as in the other directory.
    implementation = kept._impl
    stamp = implementation.locator.get_source_stamp()
    open_files: Any = caching.IndexDataCacheFile
    files = open_files(str(modules / "__pycache__"), implementation.filename_base, stamp)
    data = files.load(kept._index_key(signature, context.codegen()))
    return None if data is None else implementation.rebuild(context, data)


_PATIENCE = 60.0
"""Seconds after which a process compiles what another one has not finished."""

_waits = True
"""Whether to wait for other processes' kernels; False once a wait was too long."""


def _take_turns(dispatcher: Any) -> None:
    """Let one process compile what others want at the same time; they load it.

    Each kernel has a byte of a file in its cache directory, which the process that compiles it
    locks. The system unlocks the bytes of a process that dies, and forks do not inherit them.
    Without such locks, each process compiles.
    """
    from numba.core.compiler_lock import global_compiler_lock

    kept, compile_kernel = dispatcher._cache, dispatcher.compile
    load, byte = kept.load_overload, zlib.crc32(kept._impl.filename_base.encode())
    held: list[int] = []
    logger, name = logging.getLogger(COMPILING), dispatcher.py_func.__name__

    def load_overload(signature: Any, context: Any) -> Any:
        found = load(signature, context)
        if found is None and (file := _lock(kept, byte)) is not None:
            held.append(file)
            found = load(signature, context)
        if found is None:
            logger.debug("compiling %s", name)
        return found

    def compile_alone(signature: Any) -> Any:
        with global_compiler_lock:  # one thread of a process compiles at a time
            try:
                return compile_kernel(signature)
            finally:
                logger.debug("compiled %s", name)
                while held:
                    with contextlib.suppress(OSError):
                        fcntl.lockf(held.pop(), fcntl.LOCK_UN, 1, byte)

    kept.load_overload, dispatcher.compile = load_overload, compile_alone


def _lock(kept: Any, byte: int) -> int | None:
    """Lock a byte of the file of locks in a cache; return the file, or None.

    None means that the byte stays unlocked. Kernels do not call each other in circles, so that
    processes do not wait for each other. Patience ends once for all kernels: a process that is
    stopped while it compiles one holds those that call it, too.
    """
    global _waits
    end = time.monotonic() + _PATIENCE
    with contextlib.suppress(OSError):
        kept._impl.locator.ensure_cache_path()
        file = _open_locks(kept.cache_path)
        while True:
            try:
                fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, byte)
                return file
            except BlockingIOError:
                _waits = _waits and time.monotonic() < end
                if not _waits:
                    break
                time.sleep(0.02)
    return None


@cache
def _open_locks(directory: str) -> int:
    """Open the file of locks of a cache.

    The file stays open, since closing it unlocks all its bytes.
    """
    return os.open(Path(directory, "kernels.lock"), os.O_RDWR | os.O_CREAT, 0o666)


class Semaphore(Protocol):
    """A semaphore of threads or of processes."""

    def acquire(self, block: bool, /) -> bool:
        """Decrease a positive count and return True; without blocking, return False at 0."""


_warnings_left: Semaphore = threading.Semaphore(1)


def share_warning(semaphore: Semaphore) -> None:
    """Warn of the cache only once in all processes that share a semaphore.

    Args:
        semaphore: counts the warnings that are left. It becomes 0 if this process has warned.
    """
    global _warnings_left
    if not _warnings_left.acquire(False):
        semaphore.acquire(False)
    _warnings_left = semaphore


def _warn(problem: str) -> None:
    if _warnings_left.acquire(False):
        logging.getLogger(__name__).warning("warning: %s", problem)
