"""Lists that cannot be stored, and what is left of the attempt: nothing."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError
from formats.nbest.block import NBestList
from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.store import NBestStore
from tests.store.checks import check_store
from tests.store.toys import Hypothesis, StoreModel, ToyMetric, make_list

REFERENCES = ((b"a b", b"c", b"d"),)


def add(store: NBestStore, *blocks: NBestList, metric: Any = None, threads: int = 1) -> Any:
    metric = metric or ToyMetric()
    return store.add_iteration(
        len(store.iterations()) + 1,
        iter(blocks),
        metric=metric,
        references=metric.prepare(REFERENCES),
        n_sentences=3,
        record={},
        threads=threads,
    )


GOOD = [Hypothesis(0, b"a"), Hypothesis(1, b"b"), Hypothesis(1, b"c")]


def replaced(line: int, **fields: Any) -> NBestList:
    lines = list(GOOD)
    lines[line - 1] = lines[line - 1]._replace(**fields)
    return make_list(lines, path="run1.gz")


NAN, INFINITE = math.nan, math.inf
BAD = {
    "run1.gz:2: a feature or score is not finite": replaced(2, dense=(0.0, NAN, 0.0)),
    "run1.gz:3: a feature or score is not finite": replaced(3, sparse=(("s_a", INFINITE),)),
    "run1.gz:1: a feature or score is not finite": replaced(1, score=-INFINITE),
    "run1.gz:2: some hypotheses have no model score": replaced(2, score=NAN),
    "run1.gz:3: sentence 3 does not exist: the input has 3": replaced(3, sentence=3),
    "run1.gz:1: sentence -1 does not exist": replaced(1, sentence=-1),
    "run1.gz:3: sentence 0 already has a list": replaced(3, sentence=0),
    "run1.gz:2: a sparse feature appears twice": replaced(2, sparse=(("s_a", 1), ("s_a", 2))),
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("message", BAD)
def test_bad_lists_are_rejected_with_their_line(tmp_path: Path, message: str, threads: int) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(FormatError) as caught:
            add(store, make_list([Hypothesis(2, b"d")]), BAD[message], threads=threads)
        assert str(caught.value).startswith(message)
        assert store.iterations() == ()
        assert store.space is None


@pytest.mark.parametrize("threads", [1, 2])
def test_a_reader_that_fails_leaves_nothing(tmp_path: Path, threads: int) -> None:
    def blocks() -> Iterator[NBestList]:
        yield make_list(GOOD)
        raise FormatError("truncated", path="run1.gz")

    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(FormatError, match="truncated"):
            store.add_iteration(
                1, blocks(), metric=(metric := ToyMetric()),
                references=metric.prepare(REFERENCES), n_sentences=3, record={}, threads=threads,
            )  # fmt: skip
        assert store.iterations() == ()


def test_a_sentence_in_two_blocks_is_rejected(tmp_path: Path) -> None:
    with (
        NBestStore.open(tmp_path, writable=True) as store,
        pytest.raises(FormatError, match="Put all lines of a sentence together"),
    ):
        add(store, make_list(GOOD), make_list(GOOD[2:]))


def test_blocks_may_come_in_any_order(tmp_path: Path) -> None:
    metric = ToyMetric()
    model = StoreModel(3)
    with NBestStore.open(tmp_path, writable=True) as store:
        lines = [Hypothesis(2, b"d"), *GOOD]
        for _ in range(2):
            add(store, make_list([]), make_list(lines[:1]), make_list(lines[1:]), metric=metric)
            model.add(lines)
        check_store(store, model, metric, metric.prepare(REFERENCES))


def test_a_list_without_scores_has_none(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, make_list(line._replace(score=NAN) for line in GOOD))
        assert np.isnan(store.iteration_set(1).scores).all()
        assert np.isnan(store.iteration_list(1, 1).scores).tolist() == [True, True]
        with store.snapshot() as snapshot:
            record = snapshot.record(1, 1)
            assert record is not None
            assert (record.n_list, len(record.scores)) == (2, 0)


def test_arrays_of_the_list_are_not_written(tmp_path: Path) -> None:
    block = make_list([Hypothesis(0, b"a", (3, 2, 1), (("s_b", 1), ("s_a", 2)))])
    twin = make_list([Hypothesis(0, b"a", (3, 2, 1), (("s_b", 1), ("s_a", 2)))])
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, make_list([Hypothesis(0, b"b", (3, 2, 1), (("s_a", 2),))]))
        for field in dataclasses.fields(block):
            if isinstance(array := getattr(block, field.name), np.ndarray):
                array.flags.writeable = False
        add(store, block)
    for field in dataclasses.fields(block):
        np.testing.assert_array_equal(getattr(block, field.name), getattr(twin, field.name))


def test_statistics_that_are_not_finite_are_rejected(tmp_path: Path) -> None:
    class Broken(ToyMetric):
        def statistics(self, *arguments: Any, **options: Any) -> Any:
            rows = super().statistics(*arguments, **options).astype(np.float32)
            rows[:1] = np.nan
            return rows

    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(DataError, match="WORDS returned statistics that are not finite"):
            add(store, make_list(GOOD), metric=Broken())
        assert store.iterations() == ()


def test_real_statistics_are_not_truncated(tmp_path: Path) -> None:
    class Halves(ToyMetric):
        def statistics(self, *arguments: Any, **options: Any) -> Any:
            return super().statistics(*arguments, **options).astype(np.float32) / 2

    with NBestStore.open(tmp_path, writable=True) as store:
        report = add(store, make_list(GOOD), metric=Halves())
        merged = store.tuning_set()
    assert report.first_best_score == 0.5
    assert merged.stats.dtype == np.float32
    assert merged.stats.tolist() == [[0.5, 0.5], [0.0, 0.5], [0.5, 0.5]]


def test_an_empty_store(tmp_path: Path) -> None:
    metric = ToyMetric()
    references = metric.prepare(REFERENCES)
    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(StoreError, match="has no iteration yet"):
            store.tuning_set()
        assert store.tuning_set(metric=metric, references=references).n_sentences == 0
        report = add(store, metric=metric)
        assert (report.sentences, report.hypotheses) == (0, 0)
        assert store.space is None
        assert store.tuning_set().n_sentences == 3
        assert store.tuning_set().n_hyps == 0
        # The features are set by the first iteration that has any.
        add(store, make_list([Hypothesis(1, b"c", ())], groups=()), metric=metric)
        assert store.space is not None
        assert store.tuning_set().dense.shape == (1, 0)
        with pytest.raises(UsageError, match="both metric and references"):
            store.tuning_set(metric=metric)
        with pytest.raises(UsageError, match="both metric and references"):
            store.batch([0], references=references)
        for wrong in ([3], [-1], [0, 1, 2, 3]):
            with pytest.raises(DataError, match="there is no sentence"):
                store.batch(wrong)
        with pytest.raises(StoreError, match=r"iteration 3 is not in the n-best store .* 1 to 2"):
            store.tuning_set([1, 3])


def test_references_must_be_of_the_input(tmp_path: Path) -> None:
    metric = ToyMetric()
    short = metric.prepare(((b"a",),))
    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(DataError, match="references have 1 sentences, but the input has 3"):
            store.add_iteration(1, [], metric=metric, references=short, n_sentences=3, record={})
        add(store, make_list(GOOD))
        with pytest.raises(DataError, match="references have 1 sentences"):
            store.tuning_set(metric=metric, references=short)


def test_records_that_cannot_be_stored_are_rejected_first(tmp_path: Path) -> None:
    metric = ToyMetric()
    with NBestStore.open(tmp_path, writable=True) as store:
        with pytest.raises(TypeError, match="cannot store a set"):
            store.add_iteration(
                1, [make_list(GOOD)], metric=metric, references=metric.prepare(REFERENCES),
                n_sentences=3, record={"seen": {1, 2}},
            )  # fmt: skip
        assert metric.scored == 0


def test_errors_in_what_is_read_ahead_come_before_any_work(tmp_path: Path) -> None:
    def blocks() -> Iterator[NBestList]:
        yield make_list([Hypothesis(0, b"a")])
        yield make_list([Hypothesis(1, b"b")])
        yield make_list([Hypothesis(9, b"c")], path="run1.gz")

    scored: list[int] = []

    class Counting(ToyMetric):
        def statistics(
            self, prepared: Any, sentence_ids: Any, *arguments: Any, **named: Any
        ) -> Any:
            scored.extend(sentence_ids.tolist())
            return super().statistics(prepared, sentence_ids, *arguments, **named)

    metric = Counting()
    common: dict[str, Any] = {"metric": metric, "n_sentences": 3, "record": {}}
    common["references"] = metric.prepare(REFERENCES)
    with NBestStore.open(tmp_path / "store", writable=True) as store:
        for ahead_bytes, expected in ((100, []), (0, [0, 1])):
            with pytest.raises(FormatError, match="sentence 9 does not exist"):
                store.add_iteration(1, blocks(), ahead_bytes=ahead_bytes, **common)
            assert scored == expected
