"""Test random batches from memory, and concurrent changes of the store."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import DataError, StoreError
from mosesplug.store import NBestStore
from tests.store.toys import Hypothesis, ToyMetric, make_list

REFERENCES = ((b"a b", b"c", b"d"),)
ITERATIONS = [
    [Hypothesis(0, b"a"), Hypothesis(1, b"c", (1, 2, 3)), Hypothesis(1, b"x", (1, 2, 3))],
    [Hypothesis(0, b"b"), Hypothesis(1, b"c", (1, 2, 3)), Hypothesis(1, b"y", (1, 2, 3))],
]


def add(store: NBestStore, lines: list[Hypothesis], metric: Any = None) -> None:
    metric = metric or ToyMetric()
    store.add_iteration(
        len(store.iterations()) + 1, [make_list(lines)], metric=metric,
        references=metric.prepare(REFERENCES), n_sentences=3, record={},
    )  # fmt: skip


@pytest.fixture
def store(tmp_path: Path) -> Any:
    with NBestStore.open(tmp_path, writable=True) as store:
        for lines in ITERATIONS:
            add(store, lines)
        yield store


def test_a_sentence_is_read_once(store: NBestStore, monkeypatch: pytest.MonkeyPatch) -> None:
    merged = store.merge_batches()
    assert merged.sentences.tolist() == [0, 1, 2]
    first = merged.batch([1, 0, 1])
    assert first.offsets.tolist() == [0, 3, 5, 8]
    monkeypatch.setattr(merged, "_read", None)
    again = merged.batch([0, 1])
    np.testing.assert_array_equal(again.stats, np.concatenate([first.stats[3:5], first.stats[:3]]))
    # Nobody's writing on a batch is seen in another.
    again.dense[:] = 7.0
    assert not np.any(merged.batch([0, 1]).dense == 7.0)


def test_the_cache_respects_the_memory_limit(store: NBestStore) -> None:
    one = store.merge_batches()
    one.batch([0])
    merged = store.merge_batches(memory=one.bytes_kept)
    for sentences in ([0, 1], [1], [0], [1, 2, 0]):
        batch = merged.batch(sentences)
        np.testing.assert_array_equal(batch.stats, store.batch(sentences).stats)
        assert 0 < merged.bytes_kept <= merged.memory


def test_later_iterations_are_not_included(store: NBestStore) -> None:
    merged = store.merge_batches()
    merged.batch([0])
    add(store, [Hypothesis(0, b"z"), Hypothesis(1, b"z", sparse=(("s_a", 1),))], ToyMetric(2))
    batch = merged.batch([0, 1])
    assert batch.offsets.tolist() == [0, 2, 5]
    assert batch.sparse is None
    assert len(batch.space) == 3
    assert batch.stats[:, 0].tolist() == [1, 1, 1, 0, 0]


def test_dropped_iterations_and_unknown_sentences_are_errors(store: NBestStore) -> None:
    merged = store.merge_batches()
    with pytest.raises(DataError, match="no sentence 3"):
        merged.batch([0, 3])
    store.drop_last(2)
    with pytest.raises(StoreError, match="iteration 2 is not in"):
        merged.batch([1])
    with pytest.raises(StoreError, match="iteration 2 is not in"):
        store.merge_batches([2])


def test_another_metric_is_scored_once(store: NBestStore) -> None:
    metric = ToyMetric(weight=3)
    merged = store.merge_batches(1, metric=metric, references=metric.prepare(REFERENCES))
    assert merged.batch([0, 1, 2]).stats.tolist() == [[3, 1], [3, 1], [0, 1]]
    assert metric.scored == 3


def test_threads_get_the_same_batches(store: NBestStore) -> None:
    merged = store.merge_batches()
    truth = store.batch([1, 2, 0])
    with ThreadPoolExecutor(4) as pool:
        for batch in pool.map(merged.batch, [[1, 2, 0]] * 40):
            np.testing.assert_array_equal(batch.dense, truth.dense)
            np.testing.assert_array_equal(batch.stats, truth.stats)
    alone = store.merge_batches()
    alone.batch([0, 1, 2])
    assert merged.bytes_kept == alone.bytes_kept
