"""Copy or compact a store: without free pages, with records in order."""

from __future__ import annotations

import os
import shutil
import tempfile
from os import PathLike
from pathlib import Path

import lmdb

from mosesplug.errors import StoreError, StoreFull
from mosesplug.store.environment import Environment

__all__ = ["compact", "copy"]

_DATA = "data.mdb"
_MAP_SIZE = 1 << 30


def copy(path: str | PathLike[str], target: str | PathLike[str]) -> int:
    """Write a compact copy of a store into a new directory, and return its size in bytes.

    Raises:
        StoreError: there is no store, or the target exists.
        StoreFull: the disk is full; no part of the copy is left.
    """
    target = Path(target)
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise StoreError(f"{target} already exists: give a new directory")
    environment = Environment(path, writable=False, map_size=_MAP_SIZE)
    try:
        target.mkdir(parents=True, exist_ok=True)
        _write(environment, target)
    except BaseException:
        shutil.rmtree(target, ignore_errors=True)
        raise
    finally:
        environment.close()
    return (target / _DATA).stat().st_size


def compact(path: str | PathLike[str]) -> tuple[int, int]:
    """Replace a store by a compact copy, and return the bytes before and after.

    No process may have the store open: LMDB's reader table belongs to the file that is replaced. If
    the process is killed, either the old or the new file is in place, and at most a temporary
    directory is left beside it.

    Raises:
        StoreError: there is no store, or another process has it open.
        StoreFull: the disk has no room for both; the store is unchanged.
    """
    path = Path(path)
    data = path / _DATA
    if not data.is_file():
        raise StoreError(f"there is no n-best store at {path}")
    environment = Environment(path, writable=True, map_size=_MAP_SIZE)
    draft = Path(tempfile.mkdtemp(prefix=".compact.", dir=path))
    try:
        if readers := environment.other_readers():
            raise StoreError(
                f"the n-best store at {path} is being read by process "
                f"{', '.join(map(str, readers))}: wait until it ends"
            )
        before = data.stat().st_size
        _write(environment, draft)
        (draft / _DATA).replace(data)
        return before, data.stat().st_size
    finally:
        environment.close()
        shutil.rmtree(draft, ignore_errors=True)


def _write(environment: Environment, directory: Path) -> None:
    """Write a compact copy and sync it."""
    try:
        environment.copy_to(directory)
        with (directory / _DATA).open("rb+") as file:
            os.fsync(file.fileno())
    except (OSError, lmdb.Error) as error:
        if "No space" in str(error):
            raise StoreFull(f"no room for a copy of the store in {directory}: {error}") from None
        raise StoreError(f"cannot copy the store into {directory}: {error}") from None
