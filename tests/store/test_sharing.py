"""Test stores that threads, copies and forked processes of one process share."""

from __future__ import annotations

import os
import shutil
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mosesplug.errors import StoreError, StoreInUse
from mosesplug.store import NBestStore
from tests.store.files.test_environment import TRY_TO_WRITE, add, in_new_process, long_lists
from tests.store.toys import Hypothesis

REWRITE = """
import sys
from mosesplug.store import NBestStore
from tests.store.files.test_environment import add, long_lists
with NBestStore.open(sys.argv[1], writable=True) as store:
    for seed in range(1, 6):
        store.drop_last(1)
        add(store, long_lists(int(sys.argv[2]), seed=seed))
"""


def test_threads_share_a_store(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, long_lists(50))
        truth = store.hypotheses(0)
    together = threading.Barrier(4)

    def read(_: int) -> bool:
        together.wait()
        same = True
        for _ in range(20):
            with NBestStore.open(tmp_path) as store:
                same &= store.hypotheses(0) == truth
        return same

    with ThreadPoolExecutor(4) as threads:
        assert all(threads.map(read, range(4)))


def test_closing_a_store_does_not_close_that_of_another_reader(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
    first = NBestStore.open(tmp_path)
    second = NBestStore.open(tmp_path)
    first.close()
    with pytest.raises(StoreError, match="is closed"):
        first.iterations()
    assert second.hypotheses(0) == (b"a",)
    with pytest.raises(StoreInUse):
        NBestStore.open(tmp_path, writable=True)
    second.close()
    NBestStore.open(tmp_path, writable=True).close()


def test_a_reader_waits_for_others_before_it_enlarges_the_map(tmp_path: Path) -> None:
    size = 1 << 18
    with NBestStore.open(tmp_path, writable=True, map_size=size) as store:
        add(store, long_lists(20))
    with NBestStore.open(tmp_path, map_size=size) as store, NBestStore.open(tmp_path) as other:
        snapshot = other.snapshot()
        in_new_process(REWRITE, str(tmp_path), "3000")
        inside = threading.Event()

        def hold() -> None:
            with other._environment.reading():
                inside.set()
                threading.Event().wait(0.2)

        snapshot.close()
        holder = threading.Thread(target=hold)
        holder.start()
        inside.wait()
        assert len(store.hypotheses(0)) == 3000
        holder.join()


def test_a_copy_by_the_writer_does_not_release_its_lock(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with NBestStore.open(path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
        shutil.copytree(path, tmp_path / "copy")
        assert "being written by" in in_new_process(TRY_TO_WRITE, str(path))
        with store.snapshot() as snapshot:
            in_new_process(
                "import sys, mosesplug.store as s; s.NBestStore.open(sys.argv[1])", str(path)
            )
            assert snapshot.record(1, 0) is not None
        add(store, [Hypothesis(0, b"b")])
        assert store.hypotheses(0) == (b"a", b"b")
    with NBestStore.open(tmp_path / "copy") as copy:
        assert copy.hypotheses(0) == (b"a",)


def test_a_copy_by_a_reader_does_not_let_a_writer_reuse_its_pages(tmp_path: Path) -> None:
    path = tmp_path / "store"
    with NBestStore.open(path, writable=True) as store:
        add(store, long_lists(200))
        truth = store.hypotheses(0)
    with NBestStore.open(path) as store:
        store.hypotheses(0)
        shutil.copytree(path, tmp_path / "copy")
        with store.snapshot() as snapshot:
            record = snapshot.record(1, 0)
            assert record is not None
            in_new_process(REWRITE, str(path), "200")
            assert tuple(map(record.hypothesis, range(200))) == truth
        del record, snapshot


def test_forked_processes_of_a_killed_writer_do_not_keep_its_lock(tmp_path: Path) -> None:
    ready, opened = os.pipe()
    wait, end = os.pipe()
    writer = os.fork()
    if not writer:
        os.close(end)
        store = NBestStore.open(tmp_path, writable=True)
        if not os.fork():
            os.write(opened, b"x")
            os.read(wait, 1)
            os._exit(0)
        signal.pause()
        store.close()
    try:
        os.read(ready, 1)
        assert "being written by" in in_new_process(TRY_TO_WRITE, str(tmp_path))
        os.kill(writer, signal.SIGKILL)
        os.waitpid(writer, 0)
        assert in_new_process(TRY_TO_WRITE, str(tmp_path)) == ""
    finally:
        for descriptor in (ready, opened, wait, end):
            os.close(descriptor)
