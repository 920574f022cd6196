"""Who may work in a directory: one run, and none that another machine's run is in."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mosesplug.errors import DataError
from mosesplug.tuning.workdir import lock as lock_module
from mosesplug.tuning.workdir.lock import lock_directory

HOST = socket.gethostname()


def ended_process() -> int:
    child = subprocess.Popen(["true"])
    child.wait()
    return child.pid


def test_an_error_names_the_first_run(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    with (
        lock_directory(lock),
        pytest.raises(DataError, match=f"process {os.getpid()} on {HOST}"),
        lock_directory(lock),
    ):
        pass
    assert lock.read_bytes() == b""
    with lock_directory(lock):
        assert lock.read_text() == f"process {os.getpid()} on {HOST}\n"


def test_the_lock_of_a_killed_run_is_ignored(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    for note in (f"process {ended_process()} on {HOST}\n", "process 1 on elsewhere\n", "\0\0"):
        lock.write_text(note)
        with lock_directory(lock):
            assert f"process {os.getpid()} " in lock.read_text()


FORKS_AND_WAITS = """
import os, sys, time
from pathlib import Path
from mosesplug.tuning.workdir.lock import lock_directory
with lock_directory(Path(sys.argv[1])):
    if os.fork():
        print("forked", flush=True)
        time.sleep(3600)
    sys.stdin.read()
    os._exit(0)
"""


@pytest.fixture
def killed(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    """A killed run, whose forked process keeps the lock until its input ends."""
    command = [sys.executable, "-c", FORKS_AND_WAITS, str(tmp_path / "lock")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "forked\n"
        process.kill()
        process.wait()
        yield process


def test_the_next_run_waits_for_processes_of_a_killed_one(
    killed: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end_process(seconds: float) -> None:
        assert killed.stdin is not None
        killed.stdin.close()
        time.sleep(seconds)

    clock = SimpleNamespace(monotonic=lambda: 0.0, sleep=end_process)
    monkeypatch.setattr(lock_module, "time", clock)
    with lock_directory(tmp_path / "lock"):
        pass
    assert killed.stdin is not None
    assert killed.stdin.closed


def test_processes_of_a_killed_run_that_do_not_end(
    killed: subprocess.Popen[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    waits: list[float] = []
    clock = SimpleNamespace(monotonic=lambda: 3600.0 * len(waits), sleep=waits.append)
    monkeypatch.setattr(lock_module, "time", clock)
    message = f"process {killed.pid} on {HOST}, which was killed but started processes that still"
    with pytest.raises(DataError, match=message), lock_directory(tmp_path / "lock"):
        pass
    assert len(waits) == 1


@pytest.fixture
def forked() -> Iterator[Callable[[Callable[[], object]], None]]:
    """A function that forks processes, which run an action first and end with the test."""
    wait, end = os.pipe()
    children = []

    def fork(action: Callable[[], object]) -> None:
        ready, done = os.pipe()
        if not (child := os.fork()):
            os.close(end)
            action()
            os.write(done, b"x")
            os.read(wait, 1)
            os._exit(0)
        children.append(child)
        os.close(done)
        assert os.read(ready, 1) == b"x"
        os.close(ready)

    yield fork
    os.close(end)
    for child in children:
        os.waitpid(child, 0)
    os.close(wait)


def test_processes_forked_during_a_run_do_not_keep_the_lock(
    forked: Callable[[Callable[[], object]], None], tmp_path: Path
) -> None:
    """As the workers of a pool that lives longer than a tuner."""
    with lock_directory(tmp_path / "lock"):
        forked(lambda: None)
    with lock_directory(tmp_path / "lock"):
        pass


def test_a_forked_process_does_not_release_its_parents_lock(
    forked: Callable[[Callable[[], object]], None], tmp_path: Path
) -> None:
    with contextlib.ExitStack() as stack:
        stack.enter_context(lock_directory(tmp_path / "lock"))
        forked(stack.close)
        with pytest.raises(DataError, match=f"process {os.getpid()} on {HOST}: wait"):
            lock_directory(tmp_path / "lock").__enter__()


def without_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refuse(file: Any, operation: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)


def with_local_locks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mounts = tmp_path / "mounts"
    mounts.write_text(
        f"disk / ext4 rw 0 0\nserver:/a {tmp_path.resolve()} nfs rw,local_lock=flock,hard 0 0\n"
        f"server:/b {tmp_path.resolve()}x nfs rw 0 0\n"
    )
    monkeypatch.setattr(lock_module, "_MOUNTS", mounts)


@pytest.mark.parametrize("kind", [without_locks, with_local_locks])
def test_where_locks_do_not_reach_words_count(
    kind: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind(monkeypatch, tmp_path)
    lock = tmp_path / "lock"
    for living in (f"process 1 on {HOST}\n", f"process {os.getppid()} on {HOST}\n"):
        lock.write_text(living)
        with (
            pytest.raises(DataError, match="in use by another tuning run, process"),
            lock_directory(lock),
        ):
            pass
    lock.write_text("process 12345 on elsewhere\n")
    with pytest.raises(DataError, match=r"process 12345 on elsewhere, .* remove this file"):
        lock_directory(lock).__enter__()
    assert lock.read_text() == "process 12345 on elsewhere\n"
    lock.write_text(f"process {ended_process()} on {HOST}\n")
    with lock_directory(lock):
        pass
    with lock_directory(lock):  # nobody is named after a run that ended by itself
        pass


def test_other_disk_errors_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(file: Any, operation: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(fcntl, "flock", fail)
    with pytest.raises(OSError, match="Input/output"), lock_directory(tmp_path / "lock"):
        pass


def test_the_lock_of_a_removed_file_is_ignored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that was refused removes its directory while another one waits at the door."""
    lock, flock = tmp_path / "lock", fcntl.flock
    removed = []

    def remove_first(file: Any, operation: int) -> None:
        if not removed:
            lock.unlink()
            removed.append(lock)
        flock(file, operation)

    monkeypatch.setattr(fcntl, "flock", remove_first)
    with lock_directory(lock), pytest.raises(DataError, match="in use"), lock_directory(lock):
        pass
    assert removed
