"""Test that threads, processes and a cluster run the same functions."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from concurrent.futures import CancelledError
from pathlib import Path

import pytest

from mosesplug import kernel_cache
from mosesplug.errors import DataError, UsageError
from mosesplug.tuning.parallel import executors
from mosesplug.tuning.parallel.cluster import open_cluster
from mosesplug.tuning.parallel.executors import (
    StopSignal,
    open_executor,
    open_processes,
    open_threads,
)
from tests.waiting import LIMIT


def test_threads_are_of_this_process() -> None:
    with open_executor("threads", 2) as executor:
        assert executor.submit(os.getpid).result() == os.getpid()


def test_threads_end_at_once_or_before_the_next_thing() -> None:
    signal, closed = StopSignal(), []
    signal.on_stop(lambda: closed.append("before"))
    signal.soon.set()
    signal.check()
    assert not closed
    signal.stop_now()
    with pytest.raises(CancelledError):
        signal.check()
    signal.on_stop(lambda: closed.append("after"))
    assert closed == ["before", "after"]


def test_processes_are_others_and_end_with_the_block() -> None:
    with open_executor("processes", 1) as executor:
        worker = executor.submit(os.getpid).result()
        assert worker != os.getpid()
    with pytest.raises(ProcessLookupError):
        os.kill(worker, 0)


def test_a_process_that_dies_is_one_clear_error() -> None:
    with pytest.raises(DataError, match="a worker process died"), open_processes(1) as executor:
        executor.submit(os._exit, 1).result()


def test_nothing_is_imported_from_the_current_directory(tmp_path: Path) -> None:
    """Neither by workers nor by the process that tracks their semaphores."""
    script, here = tmp_path / "bin" / "program.py", tmp_path / "here"
    script.parent.mkdir()
    here.mkdir()
    script.write_text(
        "import os\nfrom mosesplug.tuning.parallel.executors import open_processes\n"
        "if __name__ == '__main__':\n"
        "    with open_processes(2) as executor:\n"
        "        print(executor.submit(os.getenv, 'PYTHONSAFEPATH').result())\n"
    )
    for name in ("multiprocessing", "concurrent", "numpy", "mosesplug"):
        (here / f"{name}.py").write_text(f"open({str(tmp_path / name)!r}, 'w')\n")
    environment = {name: value for name, value in os.environ.items() if "SAFEPATH" not in name}
    ended = subprocess.run(
        [sys.executable, script], cwd=here, env=environment, capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "None\n", "")
    assert {path.name for path in tmp_path.iterdir()} == {"bin", "here"}


@pytest.mark.parametrize("parent_is_first", [False, True])
def test_workers_and_their_parent_warn_of_the_cache_once(
    parent_is_first: bool,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel_cache, "_warnings_left", threading.Semaphore(1))
    executors._count_warnings.cache_clear()
    if parent_is_first:
        kernel_cache._warn("nothing is cached")
    with open_processes(1) as one, open_processes(1) as two:
        for executor in (one, two):
            executor.submit(kernel_cache._warn, "nothing is cached").result()
    kernel_cache._warn("nothing is cached")
    lines = [*capfd.readouterr().err.splitlines(), *caplog.messages]
    assert lines == ["warning: nothing is cached"]
    assert len(caplog.messages) == parent_is_first


def test_queued_tasks_are_not_started_after_a_failure() -> None:
    begun: list[int] = []
    canceled = threading.Event()

    def fails() -> None:
        with open_threads(1) as executor:
            executor.submit(canceled.wait, LIMIT)
            waiting = executor.submit(begun.append, 1)
            waiting.add_done_callback(lambda _: canceled.set())
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    assert begun == []


def test_processes_end_at_once_after_a_failure() -> None:
    known: list[int] = []

    def fails() -> None:
        with open_processes(1) as executor:
            known.append(executor.submit(os.getpid).result())
            executor.submit(time.sleep, 600)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fails()
    with pytest.raises(ProcessLookupError):
        os.kill(known[0], 0)


def test_without_the_package_an_error_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(UsageError, match=r"mosesplug\[dask\]"), open_cluster("tcp://localhost:1"):
        pass


def test_an_address_is_an_address() -> None:
    pytest.importorskip("distributed", reason="the extra mosesplug[dask] is not installed")
    with pytest.raises(UsageError, match="tcp://HOST:PORT"), open_cluster("localhost"):
        pass
