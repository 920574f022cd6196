"""Flip bits of a store's file: each is an error, or changes nothing that is read."""

from __future__ import annotations

import random
import re
import zlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mosesplug.cli.main import main
from mosesplug.errors import StoreError
from mosesplug.results.views.exporting import export_lists
from mosesplug.results.views.run import open_run
from mosesplug.store import NBestStore, sums
from mosesplug.store.encoding import encode_value
from tests.results.runs import GROUPS, LISTS, REFERENCE, make_run, read_graph
from tests.store.test_maintenance import forget_checksums
from tests.store.toys import Hypothesis, ToyMetric, make_list

METRIC = ToyMetric()
COMMON: dict[str, Any] = {
    "metric": METRIC, "references": METRIC.prepare((tuple(b"a" for _ in range(9)),)),
    "n_sentences": 9,
}  # fmt: skip


def make(path: Path, scratch: Path) -> Path:
    """A store of two iterations and one that grows, with graphs, free pages and sparse features."""
    with NBestStore.open(path, writable=True) as store:
        store.require({"input": "1a2b"})
        store.keep_sentence_ids([f"text-{i}" for i in range(9)])
        for number in (1, 2):
            store.add_graphs(number, [(4, read_graph(scratch))], groups=GROUPS)
            lists = [make_list(list_lines(number, range(9)), GROUPS)]
            store.add_iteration(number, lists, record={"weights": [0.5, 0.25]}, **COMMON)
            store.record_result(number, {"dense": [0.5, 0.125]})
        for sentences in (range(4), range(4, 7)):
            part = [make_list(list_lines(3, sentences), GROUPS)]
            store.add_part(3, part, progress={"state": np.arange(40.0)}, **COMMON)
    return path


def list_lines(iteration: int, sentences: range) -> list[Hypothesis]:
    return [
        Hypothesis(i, b"%d %d" % (iteration, rank) + b" a" * i * 40, (rank, iteration * i),
                   ((f"s_{iteration}", 0.5 + rank),), -float(rank), b" 0-0")
        for i in sentences for rank in range(12)
    ]  # fmt: skip


def read_all(path: Path) -> bytes:
    """All that a store holds."""
    with NBestStore.open(path) as store:
        records = store.iterations()
        opened = store.open_iteration()
        values: list[Any] = [dict(store.fingerprints), list(store.sentence_ids), str(store.space)]
        if opened is not None:
            values += [opened.iteration, opened.sentences, dict(opened.progress)]
            values += list_arrays(store.open_batch(opened.sentences))
        values.append(str(records))
        for record in records:
            lists = store.iteration_set(record.iteration)
            values += [lists.scores, *list_arrays(lists.tuning_set)]
            for sentence in range(9):
                found = store.iteration_list(record.iteration, sentence)
                values += [list(found.texts), list(found.extras)]
            with store.graphs(record.iteration) as graphs:
                graph = graphs.graph(record.iteration, 4)
                assert graph is not None
                values += [graph.feature_values, graph.tails, list(graph.words)]
        return encode_value(values)


def list_arrays(lists: Any) -> list[Any]:
    return [lists.dense, lists.stats, lists.lengths, lists.sparse.indices, lists.sparse.data]


def test_random_bits(tmp_path: Path) -> None:
    path = make(tmp_path / "store", tmp_path)
    truth = read_all(path)
    file = path / "data.mdb"
    data = file.read_bytes()
    chance = random.Random(5)
    refused = 0
    for _ in range(80):
        damaged = bytearray(data)
        for _ in range(chance.choice((1, 2))):
            damaged[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        file.write_bytes(damaged)
        try:
            assert read_all(path) == truth
        except StoreError:
            refused += 1
    assert 20 < refused < 76
    file.write_bytes(data)
    assert read_all(path) == truth


def test_every_record_is_compared(tmp_path: Path) -> None:
    """Also those that the file of the random bits is too small to hit."""
    path = make(tmp_path / "store", tmp_path)
    file = path / "data.mdb"
    data = file.read_bytes()
    step, value = np.arange(40.0).tobytes()[8:64], np.float32(16).tobytes()
    for what in (b"text-3", b"1a2b", b"s_1", step, b"LM0", b"weights", value):
        for change in (1, 4):
            damaged = bytearray(data)
            begin = damaged.find(what)
            assert begin >= 0
            while begin >= 0:
                damaged[begin + len(what) // 2] ^= change
                begin = damaged.find(what, begin + 1)
            file.write_bytes(damaged)
            with pytest.raises(StoreError, match="damaged"):
                read_all(path)


def test_a_store_without_checksums_is_read(tmp_path: Path) -> None:
    path = make(tmp_path / "store", tmp_path)
    truth = read_all(path)
    forget_checksums(path)
    assert read_all(path) == truth


def test_a_record_is_compared_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And again if its iteration was dropped and added again, by another process, too."""
    path = make(tmp_path / "store", tmp_path)
    compared = 0

    def count(value: bytes) -> int:
        nonlocal compared
        compared += 1
        return zlib.crc32(value)

    monkeypatch.setattr(sums, "zlib", SimpleNamespace(crc32=count))
    with NBestStore.open(path, writable=True) as store:
        store.drop_open()
        first = store.tuning_set()
        assert compared >= 2 * 2 * 9
        before = compared
        store.tuning_set()
        assert compared == before
        store.drop_last(2)
        lists = [make_list(list_lines(2, range(1, 9)), GROUPS)]
        store.add_iteration(2, lists, record={}, **COMMON)
        assert store.tuning_set().n_hyps == first.n_hyps - 12
        assert compared > before


@pytest.mark.parametrize("without", [False, True], ids=["with checksums", "without"])
def test_no_other_weights_are_learned(
    without: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Two bits of one feature, so that it remains a number."""
    (tmp_path / "reference").write_bytes(b"\n".join(REFERENCE) + b"\n")
    lists = [[line._replace(dense=(line.dense[0], 1.25)) for line in LISTS[0]]]
    work = make_run(tmp_path / "work", lists=lists)
    file = work / "nbests.lmdb" / "data.mdb"
    if without:
        forget_checksums(work / "nbests.lmdb")
    data = file.read_bytes()
    value = np.float32(1.25).tobytes()
    assert value in data
    file.write_bytes(data.replace(value, np.float32(1.75).tobytes()))
    if without:  # the value in the file is what is read
        with open_run(work) as run:
            assert (run.store.tuning_set().dense[:, 1] == 1.75).all()
        return
    match = r"the list of sentence 0 in iteration 1 is corrupt: its checksum differs"
    with open_run(work) as run:
        with pytest.raises(StoreError, match=match):
            run.store.tuning_set()
        with pytest.raises(StoreError, match=match):
            list(export_lists(run, tmp_path / "out", 1, range(3), 9))
    command = ["optimize", "--from", work, "--refs", tmp_path / "reference", "-o", tmp_path / "w"]
    with pytest.raises(SystemExit) as end:
        main([*map(str, command), "--algorithm", "kbmira"])
    assert end.value.code == 1
    assert re.search(match, capsys.readouterr().err)
    assert not (tmp_path / "w").exists()
