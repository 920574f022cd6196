"""Temporary directories of killed processes are removed, and no others."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from mosesplug import scratch
from mosesplug.scratch import ScratchDirectory


def names(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir()}


def start(directory: Path) -> tuple[int, str]:
    """A process with a directory that waits to be killed; the name of the directory."""
    readable, writable = os.pipe()
    pid = os.fork()
    if not pid:
        made = ScratchDirectory("test-", directory)
        (Path(made.name) / "lists").write_bytes(b"x")
        os.write(writable, Path(made.name).name.encode())
        signal.pause()
    os.close(writable)
    name = os.read(readable, 1000).decode()
    os.close(readable)
    return pid, name


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)


def test_directories_of_killed_processes_are_removed(tmp_path: Path) -> None:
    pid, name = start(tmp_path)
    with ScratchDirectory("test-", tmp_path) as own:
        assert names(tmp_path) == {name, Path(own).name}
    assert names(tmp_path) == {name}
    kill(pid)
    assert names(tmp_path) == {name}
    with ScratchDirectory("other-", tmp_path):
        assert name in names(tmp_path)
    with ScratchDirectory("test-", tmp_path) as own:
        assert names(tmp_path) == {Path(own).name}
    assert not names(tmp_path)


def test_other_directories_are_left_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a mark, of another machine, of another user, and behind a link."""
    (tmp_path / "test-unmarked").mkdir()
    pid, name = start(tmp_path)
    kill(pid)
    (tmp_path / name).rename(tmp_path / "elsewhere")
    (tmp_path / "test-link").symlink_to(tmp_path / "elsewhere", target_is_directory=True)
    pid, ours = start(tmp_path)
    kill(pid)
    left = {"test-unmarked", "test-link", "elsewhere", ours}
    with monkeypatch.context() as patch:
        patch.setattr(scratch, "_describe_machine", lambda: b"another")
        with ScratchDirectory("test-", tmp_path):
            pass
        assert names(tmp_path) == left
    with monkeypatch.context() as patch:
        patch.setattr(os, "geteuid", lambda: os.getuid() + 1)
        with ScratchDirectory("test-", tmp_path):
            pass
        assert names(tmp_path) == left
    with ScratchDirectory("test-", tmp_path):
        pass
    assert names(tmp_path) == left - {ours}
    assert (tmp_path / "elsewhere" / "lists").is_file()
