"""Test the faults found in records, apart from checksums."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest

from mosesplug.store import NBestStore
from mosesplug.store.encoding import encode_record
from mosesplug.store.records import KbestRecord
from mosesplug.store.state import CHECKSUMS
from tests.store.toys import Hypothesis, ToyMetric, make_list

REFERENCES = ((b"a b", b"c"),)
FIELDS = (
    *("hashes", "flat_dense", "lengths", "text_offsets", "sparse_indptr", "sparse_indices"),
    *("sparse_data", "home_iterations", "home_rows", "scores", "extra_offsets", "text", "extras"),
)


def make(path: Path, *metrics: ToyMetric) -> Path:
    """An iteration for each metric, of two sentences; the last hypothesis is in all of them."""
    with NBestStore.open(path, writable=True) as store:
        for number, metric in enumerate(metrics, start=1):
            lines = [
                Hypothesis(0, b"a %d" % number, (1, 2, 3), (("s_a", 1.0),), -1.0, b" 0-0"),
                Hypothesis(0, b"b", (1, 2, 3), (), -2.0),
                Hypothesis(1, b"c", (1, 2, 3), (), -2.0),
            ]
            store.add_iteration(
                number, [make_list(lines)], metric=metric,
                references=metric.prepare(REFERENCES), n_sentences=2, record={},
            )  # fmt: skip
    return path


def changed(path: Path, name: str, key: bytes, change: Callable[[bytes], bytes | None]) -> None:
    """Change a record of a store without checksums, as version 0.1 wrote it."""
    forget_checksums(path)
    with lmdb.open(str(path), max_dbs=8, sync=False) as raw:
        database = raw.open_db(name.encode(), create=False)
        with raw.begin(write=True) as transaction:
            value = change(transaction.get(key, db=database))
            if value is None:
                transaction.delete(key, db=database)
            else:
                transaction.put(key, value, db=database)


def forget_checksums(path: Path) -> None:
    with lmdb.open(str(path), max_dbs=8, sync=False) as raw, raw.begin(write=True) as transaction:
        iterations = raw.open_db(b"iterations", transaction, create=False)
        for key in [key for key, _ in transaction.cursor(iterations) if key[4] == CHECKSUMS]:
            transaction.delete(key, db=iterations)
        transaction.delete(b"checksums", db=raw.open_db(b"meta", transaction, create=False))


def edited(**arrays: Any) -> Callable[[bytes], bytes]:
    """A record with other arrays."""

    def edit(data: bytes) -> bytes:
        record = KbestRecord(np.frombuffer(data, np.uint8))
        every = {name: np.array(getattr(record, name)) for name in FIELDS}
        for name, values in arrays.items():
            every[name] = np.array(values, dtype=every[name].dtype)
        return encode_record(record.n_dense, list(every.values()))

    return edit


def faults(path: Path, iteration: int, sentence: int) -> list[str]:
    with NBestStore.open(path) as store:
        return store.faults(iteration, sentence)


@pytest.mark.parametrize(
    ("arrays", "fault"),
    [
        ({"home_iterations": [2, 3]}, "it refers to hypotheses of a later iteration"),
        ({"home_rows": [0, 2]}, "it refers to missing hypotheses of iteration 1"),
        ({"home_rows": [1, 1]}, "it refers to missing hypotheses of iteration 2"),
        ({"flat_dense": [1.0, np.nan, 3.0]}, "a feature is not a finite number"),
        ({"scores": [-1.0, np.inf]}, "a model score is infinite"),
        ({"scores": [-1.0]}, "its arrays have inconsistent sizes"),
        ({"lengths": []}, "its arrays have inconsistent sizes"),
        ({"text_offsets": [0, 9]}, "it cannot be read: its texts have invalid offsets"),
        (
            {"extra_offsets": [0, 5, 4]},
            "it cannot be read: the texts after its scores have invalid offsets",
        ),
        ({"text": list(b"a\n2")}, "a hypothesis has a line break"),
        (
            {"sparse_indices": [1]},
            "a sparse feature is not a finite number, or has no name",
        ),
    ],
)
def test_faults_of_lists(arrays: dict[str, Any], fault: str, tmp_path: Path) -> None:
    path = make(tmp_path / "store", ToyMetric(), ToyMetric())
    assert [faults(path, 2, sentence) for sentence in (0, 1)] == [[], []]
    changed(path, "kbest", struct.pack(">II", 2, 0), edited(**arrays))
    assert faults(path, 2, 0) == [fault]
    assert faults(path, 2, 1) == []


def test_references_to_missing_lists_are_reported(tmp_path: Path) -> None:
    path = make(tmp_path / "store", ToyMetric(), ToyMetric())
    changed(path, "kbest", struct.pack(">II", 1, 1), lambda value: None)
    assert faults(path, 2, 1) == ["it refers to missing hypotheses of iteration 1"]


def test_statistics_of_an_earlier_metric_may_end(tmp_path: Path) -> None:
    """The second iteration has none of the first one's metric, and needs none."""
    path = make(tmp_path / "store", ToyMetric(), ToyMetric(weight=2))
    assert [faults(path, 2, sentence) for sentence in (0, 1)] == [[], []]
    changed(path, "statistics", struct.pack(">III", 1, 2, 0), lambda value: None)
    assert faults(path, 2, 0) == ["statistics of WORDS|weight:2 are missing"]
    changed(path, "statistics", struct.pack(">III", 1, 1, 0), lambda value: value[:-8])
    assert faults(path, 1, 0) == ["2 hypotheses have 1 statistics"]
