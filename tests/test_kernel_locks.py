"""Kernels that share a cache: locks, other processors, and damaged files."""

from __future__ import annotations

import fcntl
import importlib
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numba
import pytest
from numba.core import event

from mosesplug import kernel_cache


@pytest.fixture
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Any]:
    """Run a module of kernels in this process, with an empty cache in ``tmp_path``."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path / "cache"))

    def run(text: str) -> Any:
        path = tmp_path / "kernels_of_test.py"
        program = "from mosesplug.kernels import kernel\n" + text
        if not path.exists() or path.read_text() != program:
            path.write_text(program)  # The cached kernels of an older file are not used.
        monkeypatch.syspath_prepend(tmp_path)
        monkeypatch.delitem(sys.modules, path.stem, raising=False)
        return importlib.import_module(path.stem)

    return run


def locked_files(cache: Path) -> list[bool]:
    """Return, for each file of locks, whether another process finds something locked."""
    program = """
import fcntl, sys
for path in sys.argv[1:]:
    try:
        fcntl.lockf(open(path, "r+"), fcntl.LOCK_EX | fcntl.LOCK_NB)
        print("free")
    except BlockingIOError:
        print("locked")
"""
    paths = [str(path) for path in cache.rglob("kernels.lock")]
    command = [sys.executable, "-IS", "-c", program, *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line == "locked" for line in done.stdout.splitlines()]


def test_kernels_are_locked_while_they_are_compiled(
    modules: Callable[[str], Any], tmp_path: Path
) -> None:
    """Also while another one is compiled that they call, and never after errors."""
    module = modules("""
@kernel
def inner(number):
    return number + 1
@kernel
def outer(number):
    return inner(number) + inner(1.5)
@kernel
def broken(number):
    return number + undefined
""")
    found = []

    class Looking(event.Listener):
        def on_start(self, event: Any) -> None:
            pass

        def on_end(self, event: Any) -> None:
            found.append(locked_files(tmp_path / "cache"))

    with event.install_listener("numba:compile", Looking()):
        assert module.outer(1) == 4.5
        assert found == [[True]] * 3
        with pytest.raises(numba.TypingError):
            module.broken(1)
    assert locked_files(tmp_path / "cache") == [False]


def test_kernels_are_compiled_without_locks(
    modules: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel_cache, "_open_locks", lambda directory: os.open(tmp_path, os.O_RDWR))
    module = modules("@kernel\ndef add_one(number):\n    return number + 1\n")
    assert module.add_one(1) == 2
    assert list((tmp_path / "cache").rglob("*.nbc"))


def test_a_stopped_process_is_waited_for_once(
    modules: Callable[[str], Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not once for each kernel that it holds, with the compiler locked for all threads."""
    naps: list[float] = []

    def refuse(*_: Any) -> None:
        raise BlockingIOError

    clock = SimpleNamespace(monotonic=lambda: sum(naps), sleep=naps.append)
    monkeypatch.setattr(kernel_cache, "time", clock)
    monkeypatch.setattr(kernel_cache, "_PATIENCE", 1.0)
    monkeypatch.setattr(kernel_cache, "_waits", True)
    module = modules("""
@kernel
def inner(number):
    return number + 1
@kernel
def middle(number):
    return inner(number) + 1
@kernel
def outer(number):
    return middle(number) + 1
""")
    with monkeypatch.context() as held:
        held.setattr(fcntl, "lockf", refuse)
        assert module.outer(1) == 4
    assert 1.0 <= sum(naps) < 1.1
    assert len(list((tmp_path / "cache").rglob("*.nbc"))) == 3


@pytest.fixture
def hits(modules: Callable[[str], Any]) -> Callable[[], int]:
    """Run a kernel as a new process would; return how often it was read from the cache."""

    def run() -> int:
        add_one = modules("@kernel\ndef add_one(number):\n    return number + 1\n").add_one
        assert add_one(1) == 2
        return sum(add_one.dispatcher.stats.cache_hits.values())

    return run


def test_processors_share_a_directory(
    hits: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each finds its own code, whichever machine ran first."""
    found = [hits()]
    with monkeypatch.context() as other:
        other.setattr(numba.config, "CPU_NAME", "generic")
        found += [hits(), hits()]
    assert [*found, hits()] == [0, 0, 1, 1]


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
@pytest.mark.parametrize("left", [0, 40])
def test_damaged_files_are_replaced(
    suffix: str,
    left: int,
    hits: Callable[[], int],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """A machine that lost power has files of the right name without their content."""
    assert hits() == 0
    for path in (tmp_path / "cache").rglob(f"*.{suffix}"):
        path.write_bytes(path.read_bytes()[:left])
    assert [hits(), hits()] == [0, 1]
    assert not caplog.records
