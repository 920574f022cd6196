"""Test the content on disk with LMDB itself, without the store."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import lmdb
import msgpack
import numpy as np
import pytest

from mosesplug.errors import StoreError
from mosesplug.store import NBestStore
from tests.store.test_maintenance import forget_checksums
from tests.store.toys import Hypothesis, ToyMetric, make_list

DATE = "2020-02-02T20:20:02+00:00"
NAMES = (b"meta", b"iterations", b"kbest", b"statistics", b"forest")


@pytest.fixture(autouse=True)
def _one_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mosesplug.store.writing._now", lambda: DATE)


def write(path: Path, iterations: list[list[Hypothesis]]) -> None:
    metric = ToyMetric()
    references = metric.prepare(((b"a", b"b", b"c"),))
    with NBestStore.open(path, writable=True) as store:
        for number, lines in enumerate(iterations, start=1):
            store.add_iteration(
                number, [make_list(lines)], metric=metric, references=references, n_sentences=3,
                record={"weights": [0.5]},
            )  # fmt: skip


def everything(path: Path) -> dict[bytes, dict[bytes, bytes]]:
    with lmdb.open(str(path), max_dbs=8, readonly=True) as raw, raw.begin() as transaction:
        names = [key for key, _ in transaction.cursor()]
        assert sorted(names) == sorted(NAMES)
        return {
            name: dict(transaction.cursor(raw.open_db(name, transaction, create=False)))
            for name in names
        }


def arrays_of(record: bytes) -> tuple[int, list[bytes], list[int]]:
    """Dense columns; the bytes and the number of elements of each array."""
    (length,) = struct.unpack_from("<I", record)
    n_dense, *places = msgpack.unpackb(record[4 : 4 + length])
    begin = (4 + length + 7) // 8 * 8
    starts = [begin + at for at in places[1::2]]
    assert all(start % 8 == 0 for start in starts)
    ends = [*starts[1:], len(record)]
    return (
        n_dense,
        [record[start:end] for start, end in zip(starts, ends, strict=True)],
        places[::2],
    )


def test_records_hold_new_hypotheses_and_refer_to_others(tmp_path: Path) -> None:
    first = [
        Hypothesis(0, b"x\x00 \xff", (1, 2, 3), (("s_b", 0.25), ("s_a", 4)), -1.0, b" 0-0 "),
        Hypothesis(0, b"b", (1, 2, 3), (), -2.0),
        Hypothesis(2, b"", (0, 0, 0), (), -3.0),
    ]
    second = [Hypothesis(0, b"c", (1, 2, 3), (), -4.0), first[1]._replace(score=-5.0)]
    write(tmp_path, [first, second])
    databases = everything(tmp_path)
    kbest = databases[b"kbest"]
    assert list(kbest) == [struct.pack(">II", *key) for key in ((1, 0), (1, 2), (2, 0))]
    n_dense, arrays, counts = arrays_of(kbest[struct.pack(">II", 1, 0)])
    assert n_dense == 3
    assert counts == [2, 6, 2, 3, 3, 2, 2, 2, 2, 2, 3, 5, 5]
    assert arrays[1] == np.array([1, 2, 3, 1, 2, 3], "<f4").tobytes()
    assert arrays[2] == np.array([2, 1], "<i4").tobytes()
    # Features are numbered as they appear, and sorted within a hypothesis.
    assert arrays[5] == np.array([0, 1], "<i4").tobytes()
    assert arrays[6] == np.array([0.25, 4], "<f4").tobytes()
    assert arrays[9] == np.array([-1.0, -2.0], "<f8").tobytes()
    assert arrays[11][:5] == b"x\x00 \xffb"
    assert arrays[12][:5] == b" 0-0 "
    _, arrays, counts = arrays_of(kbest[struct.pack(">II", 2, 0)])
    assert counts == [1, 3, 1, 2, 0, 0, 0, 2, 2, 2, 0, 1, 0]
    assert arrays[11][:1] == b"c"
    assert arrays[7] == np.array([2, 1], "<i4").tobytes()
    assert arrays[8] == np.array([0, 1], "<i4").tobytes()
    statistics = databases[b"statistics"]
    assert list(statistics) == [struct.pack(">III", 0, *struct.unpack(">II", key)) for key in kbest]
    assert statistics[struct.pack(">III", 0, 1, 0)] == np.array([0, 2, 0, 1], "<i4").tobytes()


def test_meta_and_iterations(tmp_path: Path) -> None:
    write(tmp_path, [[Hypothesis(1, b"a", sparse=(("s_a", 1.0),))]])
    with NBestStore.open(tmp_path, writable=True) as store:
        store.require({"input": "1a"})
        store.record_result(1, {"score": 0.5})
    databases = everything(tmp_path)
    meta = {key: msgpack.unpackb(value) for key, value in databases[b"meta"].items()}
    assert meta[b"schema"] == 2
    assert meta[b"fingerprints"] == {"input": "1a"}
    ((number, signature, _, width, dtype),) = meta[b"statistics"]
    assert (number, signature, width, dtype) == (0, "WORDS|weight:1", 2, "<i4")
    parts: dict[bytes, Any] = {
        key: msgpack.unpackb(value) for key, value in databases[b"iterations"].items()
    }
    places = ((0, 0), (0, 2), (1, 1), (2, 1))
    assert list(parts) == [
        *(struct.pack(">IB", 1, part) for part in range(4)),
        *(struct.pack(">IBBII", 1, 8, area, 0, first) for area, first in places),
    ]
    commit, record, result, sparse, *_ = parts.values()
    assert commit["date"] == DATE
    assert commit["groups"] == [["LM0", 1], ["TM0", 2]]
    assert (record, result, sparse) == ({"weights": [0.5]}, {"score": 0.5}, ["s_a"])


def test_invalid_references_are_reported(tmp_path: Path) -> None:
    lines = [Hypothesis(1, b"a")]
    write(tmp_path, [lines, lines])
    with lmdb.open(str(tmp_path), max_dbs=8) as raw, raw.begin(write=True) as transaction:
        kbest = raw.open_db(b"kbest", transaction, create=False)
        assert transaction.delete(struct.pack(">II", 1, 1), db=kbest)
    forget_checksums(tmp_path)
    with (
        NBestStore.open(tmp_path) as store,
        pytest.raises(StoreError, match="sentence 1 refers to iteration 1"),
    ):
        store.iteration_set(2)


def test_a_dropped_iteration_leaves_nothing(tmp_path: Path) -> None:
    lines = [Hypothesis(1, b"a", sparse=(("s_a", 1.0),))]
    write(tmp_path / "one", [lines])
    write(tmp_path / "two", [lines, [Hypothesis(1, b"b", sparse=(("s_b", 1.0),))]])
    with NBestStore.open(tmp_path / "two", writable=True) as store:
        store.record_result(2, {"x": 1})
        store.drop_last(2)
    assert everything(tmp_path / "one") == everything(tmp_path / "two")


def test_an_open_iteration_on_disk(tmp_path: Path) -> None:
    write(tmp_path, [[Hypothesis(1, b"a", sparse=(("s_a", 1.0),))]])
    metric = ToyMetric()
    common: dict[str, Any] = {
        "metric": metric, "references": metric.prepare(((b"a", b"b", b"c"),)), "n_sentences": 3
    }  # fmt: skip
    parts = [
        [Hypothesis(2, b"c", sparse=(("s_b", 1.0), ("s_a", 1.0)))],
        [Hypothesis(0, b"a")],
        [Hypothesis(1, b"x", sparse=(("s_c", 1.0),))],
    ]
    with NBestStore.open(tmp_path, writable=True) as store:
        for number, part in enumerate(parts):
            store.add_part(2, [make_list(part)], progress={"done": number}, **common)
    before = everything(tmp_path)
    iterations = before[b"iterations"]
    keys = [key[4:] for key in iterations if key.startswith(struct.pack(">I", 2))]
    assert keys[:4] == [b"\4", b"\5", b"\6" + struct.pack(">I", 1), b"\6" + struct.pack(">I", 2)]
    # Of sums and progress, of names by their first column, and of each part, lists and statistics.
    areas = [(key[0], key[1], int.from_bytes(key[2:6])) for key in keys[4:]]
    assert areas == [(8, 0, 0), (8, 0, 1), (8, 0, 2), *[(8, 1, 0)] * 3, *[(8, 2, 0)] * 3]
    assert msgpack.unpackb(iterations[struct.pack(">IB", 2, 5)]) == {"done": 2}
    assert msgpack.unpackb(iterations[struct.pack(">IBI", 2, 6, 2)]) == ["s_c"]
    with NBestStore.open(tmp_path, writable=True) as store:
        store.finish_iteration(2, {"weights": [0.5]})
    parted = everything(tmp_path)
    # The result equals that of adding it whole, except for the order of features.
    write(tmp_path / "whole", [[Hypothesis(1, b"a", sparse=(("s_a", 1.0),))], parts[1]])
    whole = everything(tmp_path / "whole")
    assert list(parted[b"iterations"]) == list(whole[b"iterations"])
    assert msgpack.unpackb(parted[b"iterations"][struct.pack(">IB", 2, 3)]) == ["s_b", "s_c"]
    key = struct.pack(">II", 2, 0)
    assert parted[b"kbest"][key] == whole[b"kbest"][key]
    assert list(parted[b"kbest"]) == [
        struct.pack(">II", *k) for k in ((1, 1), (2, 0), (2, 1), (2, 2))
    ]
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_part(3, [make_list(parts[2])], progress={}, **common)
        store.drop_open()
    assert everything(tmp_path) == parted


def test_a_store_of_the_first_schema_can_be_used(tmp_path: Path) -> None:
    lines = [Hypothesis(1, b"a", sparse=(("s_a", 1.0),))]
    write(tmp_path, [lines])
    with lmdb.open(str(tmp_path), max_dbs=8) as raw, raw.begin(write=True) as transaction:
        meta = raw.open_db(b"meta", transaction, create=False)
        transaction.put(b"schema", msgpack.packb(1), db=meta)
    forget_checksums(tmp_path)
    with NBestStore.open(tmp_path) as store:
        assert store.tuning_set().n_hyps == 1
        assert store.open_iteration() is None
    # Adding whole iterations makes nothing that its software could not read.
    metric = ToyMetric()
    common: dict[str, Any] = {
        "metric": metric, "references": metric.prepare(((b"a", b"b", b"c"),)), "n_sentences": 3
    }  # fmt: skip
    with NBestStore.open(tmp_path, writable=True) as store:
        store.add_iteration(2, [make_list(lines)], record={}, **common)
        assert everything_of(store)[b"meta"][b"schema"] == msgpack.packb(1)
        store.add_part(3, [make_list(lines)], progress={}, **common)
        assert everything_of(store)[b"meta"][b"schema"] == msgpack.packb(2)


def everything_of(store: NBestStore) -> dict[bytes, dict[bytes, bytes]]:
    """The same of a store that is open: a process opens a path once."""
    environment = store._environment
    with environment.reading() as transaction:
        return {
            name: {bytes(k): bytes(v) for k, v in transaction.cursor(environment[name.decode()])}
            for name in NAMES
        }
