"""Test what readers in other processes do to a store, and what they may read."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import lmdb
import pytest

from mosesplug.errors import StoreError
from mosesplug.store import NBestStore
from mosesplug.store.files import environment
from tests.store.files.test_environment import add, in_new_process, long_lists
from tests.store.test_sharing import REWRITE
from tests.store.toys import Hypothesis, ToyMetric

WRITE = """
import sys
from mosesplug.store import NBestStore
store = NBestStore.open(sys.argv[1], writable=True)
print("inside", flush=True)
sys.stdin.read()
"""

READ = """
import sys
from mosesplug.store import NBestStore
snapshot = NBestStore.open(sys.argv[1]).snapshot()
print("inside", flush=True)
sys.stdin.read()
"""


@contextmanager
def process_inside(code: str, path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that has a store open, and is killed at the end of the block."""
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-W", "ignore", "-c", code, str(path)]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        try:
            assert process.stdout.readline() == "inside\n"
            yield process
        finally:
            process.kill()


def write_whole(store: NBestStore, number: int) -> None:
    store.drop_last(2)
    add(store, long_lists(60, seed=number))


def write_parts(store: NBestStore, number: int) -> None:
    metric = ToyMetric()
    store.drop_open()
    store.add_part(
        3,
        [],
        metric=metric,
        references=metric.prepare(((b"a", b"b"),)),
        n_sentences=2,
        progress={"weights": os.urandom(60_000), "batch": number},
    )


def write_results(store: NBestStore, number: int) -> None:
    store.record_result(1, {"weights": os.urandom(60_000), "number": number})


@pytest.mark.parametrize("write", [write_whole, write_parts, write_results])
def test_a_killed_reader_does_not_make_the_store_grow(
    write: Callable[[NBestStore, int], None], tmp_path: Path
) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        for seed in range(2):
            add(store, long_lists(60, seed=seed))
        with process_inside(READ, tmp_path):
            write(store, 0)
        # The reader is dead now, and so is its entry in the table.
        for number in range(1, 10):
            write(store, number)
        grown = (tmp_path / "data.mdb").stat().st_size
        for number in range(10, 60):
            write(store, number)
        assert (tmp_path / "data.mdb").stat().st_size <= grown + 8 * 4096


@contextmanager
def as_another_user(path: Path) -> Iterator[None]:
    """Be a user who may read all files of a directory, and write none."""
    for directory in (path, *path.parents[:-2]):
        directory.chmod(directory.stat().st_mode | 0o555)
    if os.geteuid():  # the owner without permissions is as good
        for place in (*path.iterdir(), path):
            place.chmod(0o555 if place.is_dir() else 0o444)
        yield
        path.chmod(0o755)
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.parametrize("table", [True, False])
def test_a_store_of_somebody_else_is_read_without_a_lock(
    table: bool, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
    if not table:
        (tmp_path / "lock.mdb").unlink()
    before = {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    with as_another_user(tmp_path):
        with NBestStore.open(tmp_path) as store, NBestStore.open(tmp_path):
            assert store.hypotheses(0) == (b"a",)
        with pytest.raises(StoreError, match=r"writer.lock|cannot make"):
            NBestStore.open(tmp_path, writable=True)
    (said,) = caplog.messages
    assert f"{tmp_path} is read without LMDB's lock (Permission denied)" in said
    assert {path.name: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_store_of_somebody_else_is_not_read_beside_its_writer(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
    with (
        process_inside(WRITE, tmp_path) as writer,
        as_another_user(tmp_path),
        pytest.raises(StoreError, match=f"is being written by process {writer.pid} on"),
    ):
        NBestStore.open(tmp_path)


def test_a_store_that_is_written_meanwhile_is_an_error_without_a_lock(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
    with as_another_user(tmp_path):
        store = NBestStore.open(tmp_path)
    with (
        pytest.raises(StoreError, match="was written while it was read"),
        store._environment.reading(),
    ):
        in_new_process(REWRITE, str(tmp_path), "1")
    # What is committed now can be read.
    assert len(store.hypotheses(0)) == 1
    store.close()


def test_data_that_may_not_be_read(tmp_path: Path) -> None:
    NBestStore.open(tmp_path, writable=True).close()
    (tmp_path / "data.mdb").chmod(0o200)
    message = r"Permission denied\. Ask the owner of data.mdb"
    with as_another_user(tmp_path), pytest.raises(StoreError, match=message):
        NBestStore.open(tmp_path)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.EOPNOTSUPP])
def test_a_file_system_without_locks(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
    real = lmdb.open

    def refuse(path: str, *, lock: bool, **settings: Any) -> Any:
        if lock:
            raise lmdb.Error(f"{path}: {os.strerror(number)}")
        return real(path, lock=lock, **settings)

    monkeypatch.setattr(lmdb, "open", refuse)
    with NBestStore.open(tmp_path) as store:
        assert store.hypotheses(0) == (b"a",)
    assert os.strerror(number) in caplog.text
    with pytest.raises(StoreError, match=r"has no locks, .* Use a directory on another file"):
        NBestStore.open(tmp_path, writable=True)


LOCK_NUMBER = """
import fcntl, os, subprocess, sys
from mosesplug.errors import StoreError
from mosesplug.store import NBestStore
if len(sys.argv) > 2:
    fcntl.lockf(os.open(sys.argv[1], os.O_RDWR), fcntl.LOCK_EX, 1, int(sys.argv[2]))
    print("locked", flush=True)
    sys.stdin.read()
    sys.exit()
code = open("/proc/self/cmdline").read().split("\\0")[4]
command = [sys.executable, "-W", "ignore", "-c", code, sys.argv[1] + "/lock.mdb", str(os.getpid())]
with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
    other.stdout.readline()
    for writable in (False, True):
        try:
            NBestStore.open(sys.argv[1], writable=writable)
        except StoreError as error:
            print(os.getpid(), error)
"""


def test_a_process_of_the_same_number_in_another_container(tmp_path: Path) -> None:
    NBestStore.open(tmp_path, writable=True).close()
    lines = in_new_process(LOCK_NUMBER, str(tmp_path)).splitlines()
    assert len(lines) == 2  # of a reader and a writer
    for line in lines:
        number = line.split()[0]
        assert f"another process {number}, in another container, has this store open" in line


IN_LITTLE_SPACE = """
import resource, sys
from pathlib import Path
from mosesplug.errors import StoreError
from mosesplug.store import NBestStore
from tests.store.files.test_environment import add, long_lists
with NBestStore.open(sys.argv[1], writable=True) as store:
    add(store, long_lists(10))  # compiles
used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (150 << 20),) * 2)
with NBestStore.open(sys.argv[1], writable=True) as store:
    add(store, long_lists(10, seed=1))
with NBestStore.open(sys.argv[1]) as store:
    print(len(store.hypotheses(0)))
resource.setrlimit(resource.RLIMIT_AS, (1 << 20,) * 2)
try:
    NBestStore.open(sys.argv[1])
except StoreError as error:
    print(error)
"""


def test_little_address_space(tmp_path: Path) -> None:
    first, last = in_new_process(IN_LITTLE_SPACE, str(tmp_path)).splitlines()
    assert first == "20"
    assert "do not fit the address space" in last
    assert last.endswith("Raise the limit (ulimit -v)")


def test_the_map_grows_by_what_the_address_space_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    size = 1 << 20
    monkeypatch.setattr(environment, "has_room", lambda extra: extra <= size // 4)
    with NBestStore.open(tmp_path, writable=True, map_size=size) as store:
        add(store, long_lists(4000))
        assert store._environment._open_handle().environment.info()["map_size"] < 2 * size
        monkeypatch.setattr(environment, "has_room", lambda extra: False)
        with pytest.raises(StoreError, match="Raise the limit"):
            add(store, long_lists(8000, seed=1))
        assert len(store.iterations()) == 1
