"""Test processes, locks, forks, the growing map, and full disks."""

from __future__ import annotations

import gc
import os
import resource
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import lmdb
import numpy as np
import pytest

from mosesplug.errors import StoreError, StoreFull, StoreMismatch
from mosesplug.store import NBestStore, writing
from mosesplug.store.encoding import encode_value
from mosesplug.store.records import KbestRecord
from mosesplug.store.state import kbest_key
from tests.store.checks import check_store
from tests.store.toys import Hypothesis, StoreModel, ToyMetric, make_list

REFERENCES = ((b"a b", b"c"),)


def add(store: NBestStore, lines: list[Hypothesis], metric: ToyMetric | None = None) -> None:
    metric = metric or ToyMetric()
    store.add_iteration(
        len(store.iterations()) + 1,
        [make_list(lines)],
        metric=metric,
        references=metric.prepare(REFERENCES),
        n_sentences=2,
        record={},
    )


def long_lists(n: int, words: int = 50, seed: int = 0) -> list[Hypothesis]:
    """Lists of two sentences whose records do not fit a page."""
    rng = np.random.default_rng(seed)
    return [
        Hypothesis(sentence, bytes(rng.integers(97, 123, words).tolist()))
        for sentence in range(2)
        for _ in range(n)
    ]


def in_child(action: Callable[[], object]) -> str:
    """What ``action`` raises or gives in a forked child, as text."""
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        try:
            said = repr(action())
        except BaseException as error:
            said = f"{type(error).__name__}: {error}"
        os.write(writable, said.encode())
        os._exit(0)
    os.close(writable)
    with open(readable, "rb") as pipe:  # noqa: PTH123
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said


def in_new_process(code: str, *arguments: str) -> str:
    root = Path(__file__).parents[3]
    return subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code, *arguments],
        check=True, capture_output=True, text=True, cwd=root, env={"PYTHONPATH": str(root)},
    ).stdout  # fmt: skip


TRY_TO_WRITE = """
import sys
from mosesplug.errors import StoreError
from mosesplug.store import NBestStore, writing
try:
    NBestStore.open(sys.argv[1], writable=True).close()
except StoreError as error:
    print(error)
"""


def test_an_error_names_the_current_writer(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True):
        said = in_new_process(TRY_TO_WRITE, str(tmp_path))
        assert f"process {os.getpid()} on {socket.gethostname()}" in said
        assert "open the store to read" in said
    assert in_new_process(TRY_TO_WRITE, str(tmp_path)) == ""


def test_the_lock_of_a_dead_writer_is_replaced(tmp_path: Path) -> None:
    # A killed writer leaves its name in the file, but no lock.
    tmp_path.joinpath("writer.lock").write_text("process 1 on elsewhere\n")
    with NBestStore.open(tmp_path, writable=True):
        held = tmp_path.joinpath("writer.lock").read_text()
        assert held == f"process {os.getpid()} on {socket.gethostname()}\n"


def test_children_do_not_inherit_the_lock(tmp_path: Path) -> None:
    store = NBestStore.open(tmp_path, writable=True)
    readable, writable = os.pipe()
    child = os.fork()
    if not child:
        os.close(writable)
        os.read(readable, 1)
        os._exit(0)
    try:
        store.close()
        assert in_new_process(TRY_TO_WRITE, str(tmp_path)) == ""
    finally:
        os.write(writable, b"x")
        os.waitpid(child, 0)
        os.close(readable)
        os.close(writable)


def test_one_environment_per_path(tmp_path: Path) -> None:
    alias = tmp_path / "alias"
    alias.symlink_to(tmp_path / "store")
    with NBestStore.open(tmp_path / "store", writable=True) as store:
        for path in (tmp_path / "store", alias):
            with pytest.raises(StoreError, match="already open in this process"):
                NBestStore.open(path)
        add(store, [Hypothesis(0, b"a")])
    with NBestStore.open(alias) as store:
        assert store.hypotheses(0) == (b"a",)


def test_a_store_does_not_cross_a_fork(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
        for action in (store.tuning_set, lambda: add(store, []), store.snapshot):
            said = in_child(action)
            assert said.startswith("StoreError"), said
            assert f"opened by process {os.getpid()}, before a fork" in said
        assert in_child(store.close) == "None"
        # The child's end took nothing from its parent.
        add(store, [Hypothesis(0, b"b")])
        assert store.hypotheses(0) == (b"a", b"b")
        assert "being written by" in in_new_process(TRY_TO_WRITE, str(tmp_path))


def test_a_child_does_not_end_its_parents_transactions(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        environment = store._environment
        add(store, long_lists(50))
        truth = store.hypotheses(0)
        pinned = environment.pin()
        value = pinned.transaction.get(kbest_key(1, 0), db=environment["kbest"])
        assert in_child(pinned.end) == "None"
        for seed in range(1, 6):
            store.drop_last(1)
            add(store, long_lists(50, seed=seed))
        record = KbestRecord(pinned.view(value))
        assert tuple(map(record.hypothesis, range(50))) == truth != store.hypotheses(0)


def test_a_closed_store_raises_an_error(tmp_path: Path) -> None:
    store = NBestStore.open(tmp_path, writable=True)
    store.close()
    store.close()
    with pytest.raises(StoreError, match="is closed"):
        store.iterations()


def test_a_store_opened_to_read_is_not_written(tmp_path: Path) -> None:
    metric = ToyMetric(weight=5)
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
    before = tmp_path.joinpath("data.mdb").read_bytes()
    with NBestStore.open(tmp_path) as store:
        store.require({"input": "x"})
        for action in (
            lambda: add(store, []),
            lambda: store.drop_last(1),
            lambda: store.record_result(1, {}),
        ):
            with pytest.raises(StoreError, match="open read-only"):
                action()
        with pytest.raises(StoreError, match=r"no statistics of WORDS\|weight:5"):
            store.tuning_set(metric=metric, references=metric.prepare(REFERENCES))
    assert tmp_path.joinpath("data.mdb").read_bytes() == before


def test_the_map_grows_by_itself(tmp_path: Path) -> None:
    metric = ToyMetric()
    model = StoreModel(2)
    with NBestStore.open(tmp_path, writable=True, map_size=1 << 15) as store:
        for seed in range(4):
            lines = long_lists(300, seed=seed)
            add(store, lines, metric)
            model.add(lines)
        check_store(store, model, metric, metric.prepare(REFERENCES))
    assert tmp_path.joinpath("data.mdb").stat().st_size > 4 << 15


def test_arrays_outlive_their_snapshot_and_store(tmp_path: Path) -> None:
    lines = long_lists(200)
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, lines)
        with store.snapshot() as snapshot:
            record = snapshot.record(1, 0)
            assert record is not None
            assert snapshot.record(2, 0) is None
            text, dense = record.text, record.dense
        assert not text.flags.owndata
        assert not text.flags.writeable
        with pytest.raises(StoreError, match="snapshot is closed"):
            snapshot.record(1, 0)
        truth = b"".join(line.text for line in lines if line.sentence == 0)
        # Their pages are not reused while they exist.
        for seed in range(1, 6):
            add(store, long_lists(200, seed=seed))
            store.drop_last(2)
        assert text.tobytes() == truth
    gc.collect()
    assert text.tobytes() == truth
    assert not dense.any()
    with pytest.raises(StoreError, match="release its arrays"):
        NBestStore.open(tmp_path)
    del record, text, dense, snapshot
    gc.collect()
    with NBestStore.open(tmp_path) as store:
        assert b"".join(store.hypotheses(0)) == truth


def test_the_map_does_not_grow_under_arrays_in_use(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True, map_size=1 << 18) as store:
        add(store, long_lists(20))
        with store.snapshot() as snapshot:
            record = snapshot.record(1, 1)
            assert record is not None
            with pytest.raises(StoreError, match="close snapshots before writing"):
                add(store, long_lists(3000, seed=1))
            assert record.hypothesis(0) == store.hypotheses(1)[0]
        del record
        add(store, long_lists(3000, seed=1))
        assert len(store.iterations()) == 2


@pytest.mark.parametrize("transaction_bytes", [writing.TRANSACTION_BYTES, 1])
def test_a_full_disk_loses_no_finished_iteration(
    transaction_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writing, "TRANSACTION_BYTES", transaction_bytes)
    metric = ToyMetric()
    model = StoreModel(2)

    def fill(store: NBestStore) -> None:
        limit = tmp_path.joinpath("data.mdb").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        add(store, long_lists(3000, seed=9))

    with NBestStore.open(tmp_path, writable=True) as store:
        lines = long_lists(100)
        add(store, lines, metric)
        model.add(lines)

    def run() -> None:
        with NBestStore.open(tmp_path, writable=True) as store:
            fill(store)

    said = in_child(run)
    assert said.startswith(StoreFull.__name__), said
    assert str(tmp_path) in said
    assert "finished iterations are kept" in said
    with NBestStore.open(tmp_path, writable=True) as store:
        check_store(store, model, metric, metric.prepare(REFERENCES))
        add(store, lines, metric)
        model.add(lines)
        check_store(store, model, metric, metric.prepare(REFERENCES))


def test_the_table_of_readers_has_no_holes(tmp_path: Path) -> None:
    # A hole in a mapped file ends the process when the disk is full.
    with NBestStore.open(tmp_path, writable=True):
        table = tmp_path.joinpath("lock.mdb").stat()
    assert table.st_blocks * 512 >= table.st_size > 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["data.mdb", "lock.mdb", "writer.lock"]


def test_temporary_files_of_killed_processes_are_removed(tmp_path: Path) -> None:
    """Whether the table of readers was made after all, or was not."""
    for number in range(2):
        (tmp_path / "lock.12345").write_bytes(b"\0")
        (tmp_path / "lock.txt").write_bytes(b"another's")
        with NBestStore.open(tmp_path, writable=True):
            names = {path.name for path in tmp_path.iterdir()}
            assert names == {"data.mdb", "lock.mdb", "lock.txt", "writer.lock"}, number


def test_a_newer_store_is_rejected(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True):
        pass
    with lmdb.open(str(tmp_path), max_dbs=5) as raw, raw.begin(write=True) as transaction:
        transaction.put(b"schema", encode_value(99), db=raw.open_db(b"meta", transaction))
    for writable in (False, True):
        with pytest.raises(StoreError, match=r"newer mosesplug \(its schema is 99"):
            NBestStore.open(tmp_path, writable=writable)


def test_other_files_are_rejected(tmp_path: Path) -> None:
    tmp_path.joinpath("data.mdb").write_bytes(b"not a database" * 1000)
    for writable in (False, True):
        with pytest.raises(StoreError, match="not an LMDB file"):
            NBestStore.open(tmp_path, writable=writable)
    tmp_path.joinpath("file").touch()
    with pytest.raises(StoreError, match="cannot make the n-best store"):
        NBestStore.open(tmp_path / "file", writable=True)


def test_truncated_files_are_rejected(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        for seed in range(3):
            add(store, long_lists(100, seed=seed))
        truth = store.hypotheses(0)
    data = tmp_path.joinpath("data.mdb").read_bytes()
    for length in (3 * 4096, len(data) // 2, len(data) - 4096, len(data) - 1):
        tmp_path.joinpath("data.mdb").write_bytes(data[:length])
        for writable in (False, True):
            with pytest.raises(
                StoreError, match=rf"truncated: data.mdb has {length} bytes, and .*"
            ):
                NBestStore.open(tmp_path, writable=writable)
    tmp_path.joinpath("data.mdb").write_bytes(data)
    with NBestStore.open(tmp_path) as store:
        assert store.hypotheses(0) == truth


def test_another_number_of_sentences_is_rejected(tmp_path: Path) -> None:
    metric = ToyMetric()
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
        with pytest.raises(StoreMismatch, match=r"has 3 sentences, but .* has 2"):
            store.add_iteration(
                2,
                [],
                metric=metric,
                references=metric.prepare(((b"a", b"b", b"c"),)),
                n_sentences=3,
                record={},
            )


def test_reading_does_not_load_numba(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
    code = (
        "import sys; from mosesplug.store import NBestStore\n"
        "with NBestStore.open(sys.argv[1]) as store: print(store.tuning_set().n_hyps)\n"
        "print('numba' in sys.modules)"
    )
    assert in_new_process(code, str(tmp_path)).split() == ["1", "False"]


def test_paths_that_lmdb_does_not_support_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="requires a path that is text"):
        NBestStore.open(tmp_path / os.fsdecode(b"\xff"), writable=True)
