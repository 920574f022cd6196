"""A writer of stores whose system calls are watched, fail when they are to, and are logged.

``watched_calls.c`` is loaded into ``tests/store/writer.py`` and watches the calls that change
``data.mdb``. Its log is a sequence of ``kind, offset, size`` (one byte and two uint64) and ``size``
bytes: ``w`` is a write, ``d`` a write through a descriptor with ``O_DSYNC``, ``s`` a sync, ``t`` a
truncation to ``offset``, ``r`` the new file that was put in place, and ``a`` says that a commit was
acknowledged.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import lmdb

from mosesplug.errors import StoreError
from mosesplug.store import NBestStore
from tests.long_running.system import ROOT
from tests.waiting import LIMIT

TASKS = ({"iterations": (1, 2)}, {"iterations": (3, 3), "parts": True})
"""Iterations that are written as a whole, and in parts."""

_HEAD = struct.Struct("<cQQ")


class Call(NamedTuple):
    """One call of the log.

    Attributes:
        kind: of the log.
        offset: in the file.
        data: that were written.
    """

    kind: str
    offset: int
    data: bytes


def read_calls(log: Path) -> list[Call]:
    """Return the calls of a log."""
    found, data, place = [], log.read_bytes(), 0
    while place < len(data):
        kind, offset, size = _HEAD.unpack_from(data, place)
        place += _HEAD.size
        found.append(Call(kind.decode(), offset, data[place : place + size]))
        place += size
    return found


def is_possible() -> bool:
    """Whether there is a compiler, and a loader that knows ``LD_PRELOAD``."""
    return sys.platform == "linux" and shutil.which("cc") is not None


class Writer:
    """Writes stores, each in a forked child.

    Attributes:
        directory: of its own files.
    """

    def __init__(self, directory: Path, process: subprocess.Popen[str]) -> None:
        self.directory = directory
        self._process = process

    def run(self, path: Path, *, environment: Mapping[str, str], **task: Any) -> int:
        """Do a task of ``tests/store/writer.py``, and return its exit code."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        task |= {"path": str(path), "environment": dict(environment)}
        print(json.dumps(task), file=self._process.stdin, flush=True)
        return int(self._process.stdout.readline())


@contextmanager
def open_writer(directory: Path) -> Iterator[Writer]:
    """Start a writer whose calls are watched.

    Args:
        directory: an empty one, for its files.
    """
    library = directory / "watched_calls.so"
    source = Path(__file__).with_name("watched_calls.c")
    subprocess.run(["cc", "-O1", "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    script = ROOT / "tests" / "store" / "writer.py"
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script), str(directory / "first")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT), "LD_PRELOAD": str(library)},
    )
    try:
        yield Writer(directory, process)
    finally:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.wait(LIMIT)
        process.stdout.close()


def read_records(path: Path) -> dict[tuple[bytes, bytes], bytes] | None:
    """Return all records of a store by database and key; None if it has no databases yet."""
    found = {}
    try:
        with lmdb.open(str(path), max_dbs=8, readonly=True, lock=False, create=False) as opened:
            with opened.begin() as transaction:
                names = [bytes(key) for key, _ in transaction.cursor()]
            for name in names:
                database = opened.open_db(name, create=False)
                with opened.begin(db=database) as transaction:
                    found |= {(name, bytes(k)): bytes(v) for k, v in transaction.cursor()}
    except lmdb.Error:
        return None
    return found or None


def list_faults(path: Path) -> list[str]:
    """Return what is wrong with a store; a new one may not be there yet."""
    try:
        with NBestStore.open(path) as store:
            return [
                fault
                for record in store.iterations()
                for _, fault in store.verify_iteration(record.iteration).faults
            ]
    except StoreError as error:
        return [] if read_records(path) is None else [str(error)]


def continue_writing(writer: Writer, path: Path, expected: object) -> bool:
    """Whether the writer ends with the expected iterations on this disk."""
    try:
        with NBestStore.open(path) as store:
            finished = len(store.iterations())
            results = sum(record.result is not None for record in store.iterations())
    except StoreError:
        finished = results = 0
    if finished > results:
        with NBestStore.open(path, writable=True) as store:
            store.record_result(finished, {"done": finished})
    for task in TASKS:
        first, last = task["iterations"]
        if finished < last:
            wanted = {**task, "iterations": (max(first, finished + 1), last)}
            if writer.run(path, environment={}, **wanted):
                return False
    found = read_records(path)
    return found is not None and without_times(found) == without_times(expected)


def without_times(records: object) -> dict[tuple[bytes, bytes], bytes]:
    """Leave out what has dates: commit records, and the checksums of an iteration's own."""
    assert isinstance(records, dict)
    return {
        (name, key): value
        for (name, key), value in records.items()
        if name != b"iterations" or key[4] not in (0, 8)
    }
