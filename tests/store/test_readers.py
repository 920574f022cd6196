"""Test what readers in other processes do to a store, and what they may read."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from mosesplug.store import NBestStore
from tests.store.test_environment import add, long_lists
from tests.store.toys import ToyMetric

READ = """
import sys
from mosesplug.store import NBestStore
snapshot = NBestStore.open(sys.argv[1]).snapshot()
print("inside", flush=True)
sys.stdin.read()
"""


@contextmanager
def reader_inside(path: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that is inside a snapshot of a store, and is killed at the end of the block."""
    root = Path(__file__).parent.parent.parent
    command = [sys.executable, "-W", "ignore", "-c", READ, str(path)]
    with subprocess.Popen(
        command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as reader:
        assert reader.stdout is not None
        try:
            assert reader.stdout.readline() == "inside\n"
            yield reader
        finally:
            reader.kill()


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
        with reader_inside(tmp_path):
            write(store, 0)
        # The reader is dead now, and so is its entry in the table.
        for number in range(1, 10):
            write(store, number)
        grown = (tmp_path / "data.mdb").stat().st_size
        for number in range(10, 60):
            write(store, number)
        assert (tmp_path / "data.mdb").stat().st_size <= grown + 8 * 4096
