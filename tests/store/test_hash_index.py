"""Test that finding duplicates takes constant work and finds the same ones."""

from __future__ import annotations

from pathlib import Path

import lmdb
import numpy as np
import pytest

from mosesplug.store import NBestStore, hash_index
from mosesplug.store.merge import Reader
from mosesplug.store.stored import IterationRecord
from tests.store.files.test_environment import add
from tests.store.toys import Hypothesis, StoreModel, ToyMetric


def lists(iteration: int, best: int = 6) -> list[Hypothesis]:
    """Lists of two sentences, some of whose hypotheses are of earlier iterations, near or far."""
    rng = np.random.default_rng(iteration)
    near = iteration + rng.integers(0, 5, best // 2)
    far = rng.integers(0, iteration + 1, best - best // 2)
    return [
        Hypothesis(sentence, f"{sentence} {word}".encode())
        for sentence in range(2)
        for word in [*near, *far]
    ]


@pytest.fixture
def short_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs of two iterations, so that few iterations have several levels."""
    monkeypatch.setattr(hash_index, "UNIT", 2)
    monkeypatch.setattr(hash_index, "_TRANSACTION_BYTES", 1)


def check_lists(store: NBestStore, model: StoreModel) -> None:
    n_distinct = 0
    for sentence in range(2):
        merged = [line.text for line in model.merged(sentence, range(1, len(model.lists) + 1))]
        assert store.hypotheses(sentence) == tuple(merged)
        n_distinct += len(merged)
        for iteration, held in enumerate(model.lists, start=1):
            texts = store.iteration_list(iteration, sentence).texts
            assert texts == tuple(line.text for line in held[sentence])
    assert sum(record.new_hypotheses for record in store.iterations()) == n_distinct


def levels(path: Path) -> list[tuple[int, int]]:
    with lmdb.open(str(path), max_dbs=8, readonly=True) as raw:
        database = raw.open_db(b"homes", create=False)
        with raw.begin() as transaction:
            return [(run.level, run.number) for run in hash_index._list_runs(transaction, database)]


@pytest.mark.usefixtures("short_runs")
def test_the_same_duplicates_are_found(tmp_path: Path) -> None:
    metric, model = ToyMetric(), StoreModel(2)
    for begin, end in ((1, 8), (8, 23), (23, 24), (24, 33)):  # opened again in between
        with NBestStore.open(tmp_path, writable=True) as store:
            for iteration in range(begin, end):
                add(store, lists(iteration), metric)
                model.add(lists(iteration))
            check_lists(store, model)
    assert levels(tmp_path) == [(0, 14), (1, 6), (2, 2), (3, 0)]  # of 30 iterations


@pytest.mark.usefixtures("short_runs")
@pytest.mark.parametrize("knows", [True, False])
def test_dropped_iterations_are_forgotten(
    knows: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also those that software dropped and replaced which does not know the index."""
    metric, model = ToyMetric(), StoreModel(2)
    with NBestStore.open(tmp_path, writable=True) as store:
        for iteration in range(1, 12):
            add(store, lists(iteration), metric)
            model.add(lists(iteration))
    with NBestStore.open(tmp_path, writable=True) as store, monkeypatch.context() as other:
        if not knows:
            other.setattr(hash_index, "UNIT", 1 << 20)
        for iteration in (11, 10, 9, 8):
            store.drop_last(iteration)
            del model.lists[-1], model.keys[-1]
        for iteration in range(20, 24):
            add(store, lists(iteration), metric)
            model.add(lists(iteration))
    with NBestStore.open(tmp_path, writable=True) as store:
        for iteration in range(12, 20):
            add(store, lists(iteration), metric)
            model.add(lists(iteration))
        check_lists(store, model)


@pytest.mark.usefixtures("short_runs")
def test_a_damaged_index_hides_no_hypothesis(tmp_path: Path) -> None:
    metric, model = ToyMetric(), StoreModel(2)
    with NBestStore.open(tmp_path, writable=True) as store:
        for iteration in range(1, 10):
            add(store, lists(iteration), metric)
            model.add(lists(iteration))
    with lmdb.open(str(tmp_path), max_dbs=8) as raw, raw.begin(write=True) as transaction:
        database = raw.open_db(b"homes", transaction)
        for key, value in list(transaction.cursor(database)):
            if len(value) > 8:
                half = len(value) // 2
                transaction.put(key, value[:half] + b"\xff" * (len(value) - half), db=database)
    with NBestStore.open(tmp_path, writable=True) as store:
        for iteration in range(10, 14):
            add(store, lists(iteration), metric)
            model.add(lists(iteration))
        check_lists(store, model)


def test_the_work_of_an_iteration_does_not_grow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A list of six hypotheses is compared with few records, of however many iterations."""
    monkeypatch.setattr(hash_index, "UNIT", 4)
    compared: list[int] = []
    decoded: list[int] = []
    scored: list[int] = []

    def count_records(self: Reader, iteration: int, sentence: int) -> object:
        compared.append(iteration)
        return real(self, iteration, sentence)

    class Counted(IterationRecord):
        def __init__(self, iteration: int, **fields: object) -> None:
            decoded.append(iteration)
            super().__init__(iteration, **fields)  # type: ignore[arg-type]

    def count_statistics(*arguments: object) -> bool:
        scored.append(1)
        return True

    real = Reader.record
    monkeypatch.setattr(Reader, "record", count_records)
    monkeypatch.setattr("mosesplug.store.state.IterationRecord", Counted)
    monkeypatch.setattr("mosesplug.store.statistics._has", count_statistics)
    with NBestStore.open(tmp_path, writable=True) as store:
        for iteration in range(1, 122):
            compared.clear(), decoded.clear(), scored.clear()
            add(store, lists(iteration))
            store.record_result(iteration, {})
            if iteration % 4 != 1:  # then no run is written
                # For each sentence, the homes of its hypotheses and the newest iterations.
                assert len(compared) <= 2 * (6 + 3), iteration
            assert len(decoded) <= 4, iteration
            assert len(scored) <= 1, iteration
        assert store.stored_bytes(121) < 10_000
        store.verify_iteration(121)


def test_small_stores_have_no_index(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        for iteration in range(1, hash_index.UNIT + 1):
            add(store, lists(iteration))
    with (
        lmdb.open(str(tmp_path), max_dbs=8, readonly=True) as raw,
        pytest.raises(lmdb.NotFoundError),
    ):
        raw.open_db(b"homes", create=False)
