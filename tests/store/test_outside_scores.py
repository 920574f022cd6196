"""Stores of scores from outside: float64 statistics, their schema, and who may mix them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from formats.errors import FormatError
from mosesplug.errors import StoreError
from mosesplug.metrics.outside import OutsideMetric
from mosesplug.store import NBestStore
from tests.store.toys import Hypothesis, ToyMetric, make_list

VALUES = [0.1, 1 / 3, 1e-17, -2.5]


def scored(values: list[float], first: int = 0) -> Any:
    rows = [Hypothesis(first + k // 2, b"text %d" % (k % 2)) for k in range(len(values))]
    return replace(make_list(rows), outside=np.array(values)[:, None])


def add(store: NBestStore, number: int, block: Any, metric: Any, n: int | None = None) -> Any:
    references = metric.prepare([[b"text 0"] * 2] if metric.needs_texts else [])
    return store.add_iteration(
        number, [block], metric=metric, references=references, n_sentences=n, record={}
    )


def schema(store: NBestStore) -> int:
    environment = store._environment
    with environment.reading() as transaction:
        return int(msgpack.unpackb(transaction.get(b"schema", db=environment["meta"])))


def test_values_come_back_as_they_are(tmp_path: Path) -> None:
    metric = OutsideMetric("COMET", fingerprint="a")
    with NBestStore.open(tmp_path, writable=True) as store:
        assert schema(store) == 2
        report = add(store, 1, scored(VALUES), metric)
        assert schema(store) == 4
        assert report.first_best_score == (VALUES[0] + VALUES[2]) / 2
        again = scored([VALUES[0], 0.5, *VALUES[2:]])
        assert add(store, 2, again, metric).new_hypotheses == 1
    with NBestStore.open(tmp_path) as store:
        lists = store.tuning_set()
        assert lists.stats.dtype == np.float64
        assert lists.stats[:, 0].tolist() == [*VALUES[:2], 0.5, *VALUES[2:]]
        assert lists.stats[:, 1].tolist() == [1.0] * 5
        assert store.hypotheses(0) == (b"text 0", b"text 1", b"text 1")
        for iteration in (1, 2):
            assert not store.verify_iteration(iteration).faults
            assert [store.faults(iteration, sentence) for sentence in (0, 1)] == [[], []]


def test_sentences_are_counted_as_they_come(tmp_path: Path) -> None:
    metric = OutsideMetric("COMET")
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, 1, scored(VALUES), metric)
        assert store.n_sentences == 2
        add(store, 2, scored(VALUES, first=5), metric)
        assert store.n_sentences == 7
        add(store, 3, scored(VALUES[:2]), metric)
        assert np.diff(store.tuning_set().offsets).tolist() == [2, 2, 0, 0, 0, 2, 2]
        assert store.iterations()[0].n_sentences == 2
        store.drop_last(3)
        assert store.n_sentences == 7


def test_other_files_are_never_mixed(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, 1, scored(VALUES), OutsideMetric("COMET", fingerprint="a"))
        for metric in (OutsideMetric("COMET", fingerprint="b"), OutsideMetric("X")):
            with pytest.raises(StoreError, match="of iteration 1, and it holds texts only"):
                add(store, 2, scored(VALUES), metric)
        assert len(store.iterations()) == 1
        # Texts are stored, so that a metric of texts can be added.
        add(store, 2, scored(VALUES), ToyMetric(), 2)
        assert store.tuning_set().stats.dtype == np.int32


def test_stores_without_scores_keep_their_schema(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, 1, replace(scored(VALUES), outside=None), ToyMetric(), 2)
        assert schema(store) == 2


def test_a_metric_of_texts_refuses_lists_without(tmp_path: Path) -> None:
    block = replace(scored(VALUES), has_texts=False)
    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(FormatError, match="list:1: the list has no texts, which WORDS compare"):
            add(store, 1, block, ToyMetric(), 2)
        add(store, 1, block, OutsideMetric("COMET"))
        assert store.tuning_set().lengths.tolist() == [1] * 4
