"""Every changed byte of a record is reported, with its iteration and sentence."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import lmdb
import pytest

from mosesplug.errors import StoreError
from mosesplug.store import NBestStore
from mosesplug.store.checksums import ChecksumReport
from tests.results.runs import GROUPS, read_graph
from tests.store.toys import Hypothesis, ToyMetric, make_list

REFERENCES = ((b"a", b"b", b"c"),)
METRIC = ToyMetric()
COMMON: dict[str, Any] = {
    "metric": METRIC, "references": METRIC.prepare(REFERENCES), "n_sentences": 3
}  # fmt: skip
LISTS = (
    [
        Hypothesis(0, b"x y", (1, 2), (("s_b", 0.25), ("s_a", 4)), -1.0, b" 0-0 "),
        Hypothesis(2, b"c", (1, 3), (), -2.0),
    ],
    [Hypothesis(0, b"z", (1, 2), (), -1.0), Hypothesis(2, b"c", (1, 3), (), -2.0)],
)
OWN = {
    0: "its commit record",
    1: "its record of weights and settings",
    2: "its record of the optimizer's result",
    3: "its record of sparse features",
}
DAMAGED = "is damaged: its checksum differs"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store of two iterations, with a search graph and statistics of two metrics."""
    other = ToyMetric(weight=3)
    with NBestStore.open(tmp_path / "store", writable=True) as store:
        store.add_graphs(1, [(2, read_graph(tmp_path))], groups=GROUPS)
        for number, lines in enumerate(LISTS, start=1):
            block = make_list(lines, GROUPS)
            store.add_iteration(number, [block], record={"weights": [0.5]}, **COMMON)
            store.record_result(number, {"score": 0.25})
        store.tuning_set(metric=other, references=other.prepare(REFERENCES))
    return tmp_path / "store"


@contextmanager
def raw(path: Path) -> Iterator[tuple[Any, dict[str, Any]]]:
    """LMDB itself: a transaction, and the databases by name."""
    with lmdb.open(str(path), max_dbs=8, sync=False) as environment:
        names = ("iterations", "kbest", "statistics", "forest")
        databases = {name: environment.open_db(name.encode(), create=False) for name in names}
        with environment.begin(write=True) as transaction:
            yield transaction, databases


def records(path: Path) -> list[tuple[str, bytes, bytes]]:
    """Database, key and value of every record that belongs to an iteration."""
    with raw(path) as (transaction, databases):
        found = [
            (name, key, value)
            for name, database in databases.items()
            for key, value in transaction.cursor(database)
        ]
    return [each for each in found if each[0] != "iterations" or each[1][4] < 4]


def put(path: Path, name: str, key: bytes, value: bytes) -> None:
    with raw(path) as (transaction, databases):
        transaction.put(key, value, db=databases[name])


def owner(name: str, key: bytes) -> tuple[int, int | None]:
    """Iteration and sentence of a record."""
    if name == "iterations":
        return int.from_bytes(key[:4]), None
    return int.from_bytes(key[-8:-4]), int.from_bytes(key[-4:])


def checked(path: Path) -> dict[int, ChecksumReport]:
    with NBestStore.open(path, compare=False) as store:
        return {number: store.verify_iteration(number) for number in (1, 2)}


def checked_or_refused(path: Path) -> tuple[dict[int, ChecksumReport], str]:
    """Return the result of the check, and the error if there is one."""
    try:
        return checked(path), ""
    except StoreError as error:
        return {}, str(error)


def test_sound_records(path: Path) -> None:
    """Four of each iteration, two lists with two kinds of statistics, and a graph."""
    assert checked(path) == {1: ChecksumReport((), 11, 0), 2: ChecksumReport((), 10, 0)}


def test_every_byte_counts(path: Path) -> None:
    everything = records(path)
    assert {name for name, _, _ in everything} == {"iterations", "kbest", "statistics", "forest"}
    for name, key, value in everything:
        iteration, sentence = owner(name, key)
        # Of iterations' own records every byte; else ends, and some between.
        step = 1 if name == "iterations" else 41
        for place in sorted({*range(0, len(value), step), *range(len(value))[-1:]}):
            spoilt = bytearray(value)
            spoilt[place] ^= 1 << place % 8
            put(path, name, key, bytes(spoilt))
            found, unreadable = checked_or_refused(path)
            if unreadable:
                # What tells whether there is an iteration at all.
                assert name == "iterations"
                assert f"a record of iteration {iteration} cannot be read" in unreadable
                continue
            ((blamed, said),) = found.pop(iteration).faults
            assert (blamed, found.popitem()[1].faults) == (sentence, ())
            assert said.endswith(DAMAGED)
            if name == "iterations":
                assert said.startswith(OWN[key[4]])
        put(path, name, key, value)
    assert all(not each.faults for each in checked(path).values())


def test_a_record_that_is_missing(path: Path) -> None:
    with raw(path) as (transaction, databases):
        assert transaction.delete(struct.pack(">II", 2, 0), db=databases["kbest"])
        assert transaction.delete(struct.pack(">II", 1, 2), db=databases["forest"])
    found = checked(path)
    assert found[1].faults == ((2, "the record of its search graph is missing"),)
    assert found[2].faults == ((0, "the record of its list is missing"),)


def test_a_record_of_an_iteration_that_is_missing(path: Path) -> None:
    with raw(path) as (transaction, databases):
        assert transaction.delete(struct.pack(">IB", 1, 0), db=databases["iterations"])
    assert "a record of iteration 1 cannot be read" in checked_or_refused(path)[1]
    with raw(path) as (transaction, databases):
        for part in range(4):
            transaction.delete(struct.pack(">IB", 1, part), db=databases["iterations"])
    assert "iteration 1 has no record" in checked_or_refused(path)[1]


def test_damaged_checksums(path: Path) -> None:
    with raw(path) as (transaction, databases):
        items = list(transaction.cursor(databases["iterations"]))
    ours = [(key, value) for key, value in items if key[:5] == struct.pack(">IB", 2, 8)]
    for key, value in ours:
        for place in range(len(value)):
            spoilt = bytearray(value)
            spoilt[place] ^= 4
            put(path, "iterations", key, bytes(spoilt))
            ((sentence, said),) = checked(path)[2].faults
            assert (sentence, said) == (None, "its checksums are damaged")
        put(path, "iterations", key, value)
    for key in (struct.pack(">IBBII", 2, 8, 9, 0, 0), struct.pack(">IBB", 2, 8, 1)):
        put(path, "iterations", key, ours[0][1])
        assert checked(path)[2].faults == ((None, "its checksums are damaged"),)
        with raw(path) as (transaction, databases):
            transaction.delete(key, db=databases["iterations"])
    with NBestStore.open(path, writable=True) as store:
        store.add_part(3, [make_list(LISTS[0], GROUPS)], progress={}, **COMMON)
    key = struct.pack(">IBBII", 3, 8, 1, 0, 0)
    put(path, "iterations", key, b"\xc4\x01x")
    with (
        NBestStore.open(path, writable=True) as store,
        pytest.raises(StoreError, match="the checksums of iteration 3 cannot be read"),
    ):
        store.finish_iteration(3, {})


def test_a_store_without_checksums_can_be_used(path: Path) -> None:
    """As version 0.1 wrote them: neither checksums nor dates."""
    with raw(path) as (transaction, databases):
        keys = [key for key, _ in transaction.cursor(databases["iterations"])]
        for key in keys:
            if key[4] == 8:
                transaction.delete(key, db=databases["iterations"])
    assert checked(path) == {1: ChecksumReport((), 0, 11), 2: ChecksumReport((), 0, 10)}
    with NBestStore.open(path, writable=True) as store:
        store.record_result(2, {"score": 0.5})
        store.add_iteration(3, [make_list(LISTS[1], GROUPS)], record={}, **COMMON)
        assert store.verify_iteration(2) == ChecksumReport((), 1, 9)
        assert store.verify_iteration(3) == ChecksumReport((), 7, 0)


def test_parts_have_the_checksums_of_the_whole(path: Path) -> None:
    with NBestStore.open(path, writable=True) as store:
        for number, line in enumerate(LISTS[0]):
            store.add_part(3, [make_list([line], GROUPS)], progress={"n": number}, **COMMON)
        store.finish_iteration(3, {})
        assert store.verify_iteration(3) == ChecksumReport((), 7, 0)
        with store._environment.reading() as transaction:
            database = store._environment["iterations"]
            keys = [bytes(key) for key, _ in transaction.cursor(database)]
        # One value each of the iteration's own, its lists, and their statistics.
        assert sum(key[:5] == struct.pack(">IB", 3, 8) for key in keys) == 3


def test_graphs_of_an_interrupted_run_leave_no_checksum(path: Path, tmp_path: Path) -> None:
    with NBestStore.open(path, writable=True) as store:
        store.add_graphs(3, [(0, read_graph(tmp_path))], groups=GROUPS)
        store.add_graphs(3, [(1, read_graph(tmp_path))], groups=GROUPS)
        store.add_iteration(3, [make_list(LISTS[0], GROUPS)], record={}, **COMMON)
        assert store.verify_iteration(3) == ChecksumReport((), 8, 0)
        store.drop_last(3)
        with pytest.raises(StoreError, match="iteration 3 is not"):
            store.verify_iteration(3)


def test_the_date_is_that_of_the_commit(path: Path) -> None:
    with NBestStore.open(path) as store:
        for record in store.iterations():
            assert record.date is not None
            date = datetime.fromisoformat(record.date)
            assert date.utcoffset() == timedelta(0)
            assert date.microsecond == 0
