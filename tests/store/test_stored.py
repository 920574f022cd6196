"""Numbers that memory would be taken by, and arrays that kernels would read beyond."""

from __future__ import annotations

import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lmdb
import numpy as np
import pytest

from formats.errors import FormatError
from formats.graphs.hypergraph_reader import read_hypergraph
from mosesplug.errors import DataError, StoreError
from mosesplug.store import NBestStore
from mosesplug.store.encoding import decode_value, encode_value
from mosesplug.store.stored import MOST_SENTENCES
from tests.store.test_maintenance import changed, edited, make
from tests.store.toys import GROUPS, Hypothesis, ToyMetric, make_list

COMMIT = struct.pack(">IB", 1, 0)
LIST = struct.pack(">II", 2, 0)
TINY = Path(__file__).parents[1] / "data/valid/search_graph/tiny.hypergraph"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("n_sentences", 10**12),
        ("n_sentences", -1),
        ("n_sentences", True),
        ("n_lists", 3),
        ("kind", 1),
        ("kind", -1),
        ("groups", [["LM0", 10**12]]),
        ("groups", [["LM0", -1], ["TM0", 4]]),
        ("groups", [["LM0", 1], [7, 2]]),
        ("new_hypotheses", 10**6),
        ("first_best_score", "0.5"),
    ],
)
def test_impossible_sums_of_iterations_are_rejected(name: str, value: Any, tmp_path: Path) -> None:
    path = make(tmp_path / "store", ToyMetric())
    changed(path, "iterations", COMMIT, lambda old: encode_value(decode_value(old) | {name: value}))
    with pytest.raises(StoreError, match="a record of iteration 1 cannot be read"):
        NBestStore.open(path)


@pytest.mark.parametrize(
    "kind",
    [
        [1, "WORDS", "x", 2, "<i4"],
        [0, "WORDS", "x", 0, "<i4"],
        [0, "WORDS", "x", 10**12, "<i4"],
        [0, "WORDS", "x", 2, "<i8"],
        [0, "WORDS", None, 2, "<i4"],
        [0, "WORDS"],
    ],
    ids=str,
)
def test_invalid_kinds_of_statistics_are_rejected(kind: list[Any], tmp_path: Path) -> None:
    path = make(tmp_path / "store", ToyMetric())
    changed(path, "meta", b"statistics", lambda _: encode_value([kind]))
    with pytest.raises(StoreError, match="its list of statistics or its fingerprints"):
        NBestStore.open(path)


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"sparse_indices": [1]}, "a sparse feature has no name"),
        ({"sparse_indices": [-1]}, "a sparse feature has no name"),
        ({"sparse_indptr": [1, 1]}, "its sparse features have invalid offsets"),
        ({"home_rows": [0, 9]}, "index 9 is out of bounds"),
        ({"home_iterations": [2, -1]}, "refers to iteration -1, which has none"),
        ({"text_offsets": [2, 1]}, "its texts have invalid offsets"),
        ({"extra_offsets": [5, 0, 5]}, "the texts after its scores have invalid offsets"),
    ],
)
def test_invalid_list_records_are_rejected(
    arrays: dict[str, Any], told: str, tmp_path: Path
) -> None:
    path = make(tmp_path / "store", ToyMetric(), ToyMetric())
    changed(path, "kbest", LIST, edited(**arrays))
    with NBestStore.open(path) as store:
        with pytest.raises(StoreError, match=told):
            store.iteration_list(2, 0)
        assert store.iteration_list(2, 1).texts == (b"c",)


def test_statistics_of_other_rows(tmp_path: Path) -> None:
    path = make(tmp_path / "store", ToyMetric())
    key = struct.pack(">III", 0, 1, 0)
    shortened: tuple[Callable[[bytes], bytes], ...] = (lambda old: old[:-8], lambda old: old[:-3])
    for change in shortened:
        changed(path, "statistics", key, change)
        with NBestStore.open(path) as store, pytest.raises(StoreError, match="sentence 0"):
            store.tuning_set()


def test_a_damaged_list_is_not_compared_with(tmp_path: Path) -> None:
    """The next iteration looks its hypotheses up in it, beyond its text if it were believed."""
    metric = ToyMetric()
    path = make(tmp_path / "store", metric)
    key = struct.pack(">II", 1, 0)
    changed(path, "kbest", key, edited(text_offsets=np.array([0, 2**32 - 4, 2**32 - 1])))
    with (
        NBestStore.open(path, writable=True) as store,
        pytest.raises(StoreError, match="the list of sentence 0 in iteration 1 is corrupt"),
    ):
        store.add_iteration(
            2, [make_list([Hypothesis(0, b"b", (1, 2, 3), (), -2.0)])], metric=metric,
            references=metric.prepare(((b"a b", b"c"),)), n_sentences=2, record={},
        )  # fmt: skip


def test_sentence_ids_beyond_the_limit_are_rejected(tmp_path: Path) -> None:
    graph = read_hypergraph(TINY)
    metric = ToyMetric()
    with NBestStore.open(tmp_path, writable=True) as store:
        for number in (MOST_SENTENCES, 10**18):
            with pytest.raises(FormatError, match=f"sentence {number} does not exist"):
                store.add_graphs(1, [(number, graph)])
        with pytest.raises(DataError, match="a store holds at most 10000000 sentences"):
            store.add_iteration(
                1, [make_list([], GROUPS)], metric=metric,
                references=metric.prepare(((b"a",),)), n_sentences=10**12, record={},
            )  # fmt: skip


def test_invalid_keys_are_rejected(tmp_path: Path) -> None:
    path = make(tmp_path / "store", ToyMetric())
    with lmdb.open(str(path), max_dbs=8) as raw, raw.begin(write=True) as transaction:
        database = raw.open_db(b"iterations", transaction)
        transaction.put(b"\0\0\0", b"x", db=database)
    with pytest.raises(StoreError, match="a key of its iterations cannot be read"):
        NBestStore.open(path)


THREADS = """
import sys, threading
from collections.abc import Mapping
from dataclasses import field, make_dataclass

from mosesplug.store.stored import convert

sys.setswitchinterval(1e-6)
number = (int | None, None)
for _ in range(60):
    inner = make_dataclass("Inner", [(f"a{place}", *number) for place in range(10)])
    fields = [(f"b{place}", Mapping[str, inner], field(default_factory=dict)) for place in range(6)]
    outer = make_dataclass("Outer", fields)
    record = {f"b{place}": {"x": {"a1": 1}} for place in range(6)}
    start = threading.Barrier(4)

    def work():
        start.wait()
        assert convert(record, outer).b5["x"].a1 == 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
"""


def test_threads_may_read_a_type_for_the_first_time_at_once() -> None:
    """msgspec alone crashes; hence another process."""
    subprocess.run([sys.executable, "-c", THREADS], check=True)
