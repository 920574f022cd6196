"""A conformance suite for stores of n-best lists.

A test class inherits from ``StoreConformance`` and defines how to open a store. The store is
compared with ``StoreModel``, which keeps lists in lists and finds duplicates with a dictionary.
"""

from __future__ import annotations

import functools
import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from formats.errors import FormatError
from mosesplug.errors import DataError, StoreError, StoreMismatch
from mosesplug.store.nbest_store import NBestStore
from tests.store.checks import assert_raises, check_rows, check_store
from tests.store.toys import Hypothesis, StoreModel, ToyMetric, make_list

__all__ = ["StoreConformance"]


class StoreConformance(ABC):
    """Tests that every store must pass; pytest collects them from subclasses.

    Each test gets an empty directory as ``tmp_path``.
    """

    @abstractmethod
    def open(self, path: Path, *, writable: bool) -> NBestStore:
        """Open the store in a directory; create it if missing and ``writable``."""

    references: tuple[tuple[bytes, ...], ...] = ((b"a b c", b"d e", b"f"),)

    def add(
        self,
        store: NBestStore,
        hypotheses: Iterable[Hypothesis],
        metric: ToyMetric | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> Any:
        """Add the next iteration, in blocks of one sentence."""
        metric = metric or ToyMetric()
        groups = itertools.groupby(hypotheses, key=lambda hypothesis: hypothesis.sentence)
        return store.add_iteration(
            len(store.iterations()) + 1,
            [make_list(lines) for _, lines in groups],
            metric=metric,
            references=metric.prepare(self.references),
            n_sentences=3,
            record=record or {},
        )

    def test_an_empty_store_has_no_iterations(self, tmp_path: Path) -> None:
        with self.open(tmp_path, writable=True) as store:
            assert store.iterations() == ()
            assert store.space is None
            assert store.n_sentences == 0

    def test_reading_a_missing_store_is_an_error(self, tmp_path: Path) -> None:
        assert_raises(
            StoreError, lambda: self.open(tmp_path / "none", writable=False), "no n-best store"
        )

    def test_data_survive_closing_and_reopening(self, tmp_path: Path) -> None:
        model = StoreModel(3)
        metric = ToyMetric()
        first = [
            Hypothesis(0, b"a x", (1, 2, 3), score=-1.5),
            Hypothesis(0, b"a x", (1, 2, 4), score=-1.75, extra=b" 0-0"),
            Hypothesis(2, b"f f", (1, 2, 3), (("s_a", 0.5),), -2.0),
        ]
        second = [
            Hypothesis(0, b"a x", (1, 2, 4), score=-3.0),
            Hypothesis(0, b"", (0, 0, 0), score=-4.0),
            Hypothesis(1, b"\xff\x00 e", (-0.0, 2, 3), (("s_b", 2), ("s_a", 1)), -2.0),
        ]
        with self.open(tmp_path, writable=True) as store:
            for hypotheses in (first, second):
                model.add(hypotheses)
                self.add(store, hypotheses, metric)
        with self.open(tmp_path, writable=False) as store:
            check_store(store, model, metric, metric.prepare(self.references))

    def test_no_hypothesis_is_scored_twice(self, tmp_path: Path) -> None:
        metric = ToyMetric()
        lines = [Hypothesis(0, b"a"), Hypothesis(0, b"b"), Hypothesis(0, b"a")]
        with self.open(tmp_path, writable=True) as store:
            report = self.add(store, lines, metric)
            assert (report.hypotheses, report.new_hypotheses, metric.scored) == (3, 2, 2)
            report = self.add(store, [*lines, Hypothesis(0, b"c")], metric)
            assert (report.hypotheses, report.new_hypotheses, metric.scored) == (4, 1, 3)

    def test_the_score_is_that_of_the_first_hypotheses(self, tmp_path: Path) -> None:
        lines = [Hypothesis(0, b"a x"), Hypothesis(0, b"b"), Hypothesis(1, b"d e e")]
        with self.open(tmp_path, writable=True) as store:
            assert self.add(store, lines).first_best_score == 4 / 5
            assert self.add(store, lines[1:]).first_best_score == 1.0
            assert [r.first_best_score for r in store.iterations()] == [0.8, 1.0]

    def test_equal_texts_of_two_sentences_are_different_hypotheses(self, tmp_path: Path) -> None:
        with self.open(tmp_path, writable=True) as store:
            report = self.add(store, [Hypothesis(0, b"a"), Hypothesis(1, b"a")])
            assert report.new_hypotheses == 2

    def test_records_and_results_are_stored(self, tmp_path: Path) -> None:
        record = {"weights": np.array([0.1, -0.2]), "command": "moses -f x", "state": 2**100}
        with self.open(tmp_path, writable=True) as store:
            self.add(store, [Hypothesis(0, b"a")], record=record)
            assert store.iterations()[0].result is None
            store.record_result(1, {"score": 0.25})
            assert_raises(StoreError, lambda: store.record_result(2, {}), "iteration 2")
        with self.open(tmp_path, writable=False) as store:
            (stored,) = store.iterations()
            np.testing.assert_array_equal(stored.record["weights"], record["weights"])
            assert stored.record["state"] == 2**100
            assert stored.result == {"score": 0.25}

    def test_only_the_newest_iteration_can_be_dropped(self, tmp_path: Path) -> None:
        metric = ToyMetric()
        model = StoreModel(3)
        lines = [Hypothesis(0, b"a", sparse=(("s_a", 1.0),)), Hypothesis(1, b"e")]
        with self.open(tmp_path, writable=True) as store:
            assert_raises(StoreError, lambda: store.drop_last(1), "empty")
            self.add(store, lines, metric)
            model.add(lines)
            self.add(store, [Hypothesis(0, b"x", sparse=(("s_b", 1.0),)), *lines], metric)
            assert_raises(StoreError, lambda: store.drop_last(1), "newest is 2")
            store.drop_last(2)
            check_store(store, model, metric, metric.prepare(self.references))
            self.add(store, [Hypothesis(1, b"e"), Hypothesis(2, b"f")], metric)
            model.add([Hypothesis(1, b"e"), Hypothesis(2, b"f")])
            check_store(store, model, metric, metric.prepare(self.references))

    def test_iterations_can_be_selected_in_several_ways(self, tmp_path: Path) -> None:
        ways: tuple[tuple[Any, tuple[bytes, ...]], ...] = (
            (None, (b"a", b"b", b"c")),
            (2, (b"b",)),
            (np.int64(2), (b"b",)),
            ([3, 1, 3], (b"a", b"c")),
            (np.array([2, 3]), (b"b", b"c")),
            (range(1, 3), (b"a", b"b")),
            ((), ()),
        )
        with self.open(tmp_path, writable=True) as store:
            for text in (b"a", b"b", b"c"):
                self.add(store, [Hypothesis(0, text)])
            for wanted, truth in ways:
                assert store.hypotheses(0, wanted) == truth
                assert store.tuning_set(wanted).n_hyps == len(truth)
            for missing in (0, 4, -1):
                assert_raises(
                    StoreError, functools.partial(store.tuning_set, [1, missing]), "1 to 3"
                )

    def test_iterations_must_be_added_in_order(self, tmp_path: Path) -> None:
        metric = ToyMetric()
        with self.open(tmp_path, writable=True) as store:
            for wrong in (0, 2):

                def action(wrong: int = wrong) -> object:
                    return store.add_iteration(
                        wrong, [], metric=metric, references=metric.prepare(self.references),
                        n_sentences=3, record={},
                    )  # fmt: skip

                assert_raises(StoreError, action, f"iteration {wrong}", "the next one is 1")

    def test_statistics_are_computed_for_another_metric_or_reference(self, tmp_path: Path) -> None:
        once, twice = ToyMetric(), ToyMetric(weight=2)
        lines = [Hypothesis(0, b"a x"), Hypothesis(0, b"b"), Hypothesis(1, b"d")]
        model = StoreModel(3)
        other = ((b"x", b"y", b"z"),)
        with self.open(tmp_path, writable=True) as store:
            for _ in range(2):
                self.add(store, lines, once)
                model.add(lines)
            check_store(store, model, twice, twice.prepare(self.references))
            check_store(store, model, once, once.prepare(other))
            check_store(store, model, once, once.prepare(self.references))
            assert (once.scored, twice.scored) == (6, 3)
            np.testing.assert_array_equal(store.tuning_set().stats[:, 0], [1, 1, 1])
            self.add(store, [Hypothesis(0, b"b"), Hypothesis(0, b"c")], twice)
            np.testing.assert_array_equal(store.tuning_set().stats[:, 0], [2, 2, 2, 2])

    def test_an_error_names_a_different_input(self, tmp_path: Path) -> None:
        with self.open(tmp_path, writable=True) as store:
            store.require({"input": "1a", "references": "2b"})
        with self.open(tmp_path, writable=True) as store:
            store.require({"input": "1a"})
            assert_raises(
                StoreMismatch,
                lambda: store.require({"input": "9z", "references": "2b"}),
                "different input", "stored 1a, given 9z",
            )  # fmt: skip
            store.require({"references": "3c"}, replace=["references"])
            assert store.fingerprints == {"input": "1a", "references": "3c"}

    def test_an_error_shows_both_sets_of_features(self, tmp_path: Path) -> None:
        metric = ToyMetric()
        with self.open(tmp_path, writable=True) as store:
            self.add(store, [Hypothesis(0, b"a")], metric)
            block = make_list([Hypothesis(0, b"a", (1.0, 2.0))], (("LM0", 2),))
            assert_raises(
                StoreMismatch,
                lambda: store.add_iteration(
                    2, [block], metric=metric, references=metric.prepare(self.references),
                    n_sentences=3, record={},
                ),
                "LM0*2", "LM0 TM0*2",
            )  # fmt: skip
            assert len(store.iterations()) == 1

    def add_part(
        self,
        store: NBestStore,
        hypotheses: Iterable[Hypothesis],
        metric: ToyMetric | None = None,
        *,
        iteration: int | None = None,
        progress: Mapping[str, Any] | None = None,
    ) -> Any:
        """Add a part of the open or the next iteration, as one block."""
        metric = metric or ToyMetric()
        return store.add_part(
            iteration or len(store.iterations()) + 1,
            [make_list(hypotheses)],
            metric=metric,
            references=metric.prepare(self.references),
            n_sentences=3,
            progress=progress or {},
        )

    def test_an_iteration_can_be_added_in_parts(self, tmp_path: Path) -> None:
        metric = ToyMetric()
        model = StoreModel(3)
        first = [Hypothesis(0, b"a x", sparse=(("s_a", 1.0),)), Hypothesis(1, b"e")]
        parts = [
            [Hypothesis(2, b"f", sparse=(("s_b", 1.0),)), Hypothesis(2, b"f g", score=-1.0)],
            [first[0]._replace(score=-3.0), Hypothesis(0, b"b", sparse=(("s_c", 2.0),)), first[0]],
        ]
        with self.open(tmp_path, writable=True) as store:
            self.add(store, first, metric)
            model.add(first)
            report = self.add_part(store, parts[0], metric, progress={"batch": 1})
            assert (report.sentences, report.hypotheses, report.new_hypotheses) == (1, 2, 2)
            assert report.first_best_score == 1.0
            report = self.add_part(store, parts[1], metric, progress={"batch": 2})
            assert (report.sentences, report.hypotheses, report.new_hypotheses) == (1, 3, 1)
            assert report.first_best_score == 2 / 3
            check_store(store, model, metric, metric.prepare(self.references))
            store.finish_iteration(2, {"weights": [1.0]})
            model.add([*parts[1], *parts[0]])
            check_store(store, model, metric, metric.prepare(self.references))
            assert store.open_iteration() is None
            record = store.iterations()[1]
            assert record.record == {"weights": [1.0]}
            assert (record.n_lists, record.hypotheses, record.new_hypotheses) == (2, 5, 3)
            assert record.first_best_score == 2 / 3
            # Nothing that is stored was scored again.
            assert metric.scored == 2 + 2 + 1 + 0

    def test_an_open_iteration_is_invisible_to_other_methods(self, tmp_path: Path) -> None:
        metric = ToyMetric()
        model = StoreModel(3)
        lines = [Hypothesis(0, b"a", sparse=(("s_a", 1.0),)), Hypothesis(1, b"e")]
        part = [Hypothesis(0, b"b", sparse=(("s_b", 1.0),))]
        with self.open(tmp_path, writable=True) as store:
            self.add_part(store, lines, metric)
            assert (store.iterations(), store.space, store.n_sentences) == ((), None, 0)
            store.finish_iteration(1, {})
            model.add(lines)
            self.add_part(store, part, metric)
        for writable in (False, True):
            with self.open(tmp_path, writable=writable) as store:
                check_store(store, model, metric, metric.prepare(self.references))
                assert store.space is not None
                assert store.space.sparse == ("s_a",)
                assert_raises(StoreError, lambda: store.tuning_set(2), "iteration 2")
                assert_raises(StoreError, lambda: store.iteration_set(2), "iteration 2")
                with store.snapshot() as snapshot:
                    assert snapshot.record(1, 0) is not None
                    assert snapshot.record(2, 0) is None
                found = store.open_iteration()
                assert found is not None
                assert (found.iteration, found.sentences.tolist()) == (2, [0])

    def test_an_open_iteration_can_be_resumed(self, tmp_path: Path) -> None:
        progress = {"batch": 3, "weights": np.array([0.1, -0.2]), "rng": 2**100}
        with self.open(tmp_path, writable=True) as store:
            assert store.open_iteration() is None
            self.add_part(store, [Hypothesis(2, b"f")], progress={"batch": 1, "old": True})
            self.add_part(store, [Hypothesis(1, b"e")], progress=progress)
        with self.open(tmp_path, writable=True) as store:
            found = store.open_iteration()
            assert found is not None
            assert (found.iteration, found.sentences.tolist()) == (1, [1, 2])
            assert set(found.progress) == set(progress)
            assert (found.progress["batch"], found.progress["rng"]) == (3, 2**100)
            np.testing.assert_array_equal(found.progress["weights"], progress["weights"])
            self.add_part(store, [Hypothesis(0, b"a")])
            store.finish_iteration(1, {})
            assert [store.hypotheses(i) for i in range(3)] == [(b"a",), (b"e",), (b"f",)]
            assert store.iterations()[0].n_lists == 3

    def test_a_batch_of_the_open_iteration_has_the_decoders_order(self, tmp_path: Path) -> None:
        first = [Hypothesis(0, b"a", sparse=(("s_a", 1.0),)), Hypothesis(1, b"e", (1, 2, 3))]
        again = [
            Hypothesis(1, b"e x", (1, 2, 4)), first[1], Hypothesis(1, b"e x", (1, 2, 4)),
            Hypothesis(0, b"c", sparse=(("s_c", 2.0), ("s_a", 1.0))), first[0],
        ]  # fmt: skip
        with self.open(tmp_path, writable=True) as store:
            assert_raises(StoreError, lambda: store.open_batch([0]), "no iteration", "open")
            self.add(store, first)
            self.add_part(store, again)
            batch = store.open_batch([2, 0, 1])
            assert batch.sentence_ids.tolist() == [2, 0, 1]
            assert batch.offsets.tolist() == [0, 0, 2, 5]
            assert batch.space.sparse == ("s_a", "s_c")
            truth = [*again[3:], *again[:3]]
            check_rows(batch, 0, truth, [[1, 1], [1, 1], [1, 2], [1, 1], [1, 2]])
            assert_raises(DataError, lambda: store.open_batch([3]), "no sentence 3")

    def test_an_open_iteration_blocks_other_changes(self, tmp_path: Path) -> None:
        other = ToyMetric(weight=2)
        lines = [Hypothesis(0, b"a")]
        with self.open(tmp_path, writable=True) as store:
            assert_raises(StoreError, lambda: store.finish_iteration(1, {}), "not open", "none is")
            assert_raises(
                StoreError, lambda: self.add_part(store, lines, iteration=2), "the next one is 1"
            )
            self.add(store, lines)
            self.add_part(store, lines)
            for action in (lambda: self.add(store, lines), lambda: store.drop_last(1)):
                assert_raises(StoreError, action, "iteration 2 is open", "1 of its 3 sentences")
            for number in (1, 3):
                wrong = functools.partial(self.add_part, store, lines, iteration=number)
                assert_raises(StoreError, wrong, f"iteration {number}", "the open one is 2")
                unfinished = functools.partial(store.finish_iteration, number, {})
                assert_raises(StoreError, unfinished, f"iteration {number}", "iteration 2 is")
            assert_raises(
                StoreError, lambda: self.add_part(store, lines), "has a list of sentence 0"
            )
            assert_raises(
                StoreMismatch,
                lambda: self.add_part(store, [Hypothesis(1, b"e")], other),
                "WORDS|weight:1", "WORDS|weight:2",
            )  # fmt: skip
            assert_raises(TypeError, lambda: self.add_part(store, [], progress={"x": object()}))
            found = store.open_iteration()
            assert found is not None
            assert found.sentences.tolist() == [0]

    def test_a_rejected_part_leaves_nothing(self, tmp_path: Path) -> None:
        with self.open(tmp_path, writable=True) as store:
            self.add_part(store, [Hypothesis(0, b"a", sparse=(("s_a", 1.0),))])
            bad = [Hypothesis(1, b"e", sparse=(("s_x", 1.0),)), Hypothesis(3, b"e")]
            assert_raises(
                FormatError, lambda: self.add_part(store, bad), "sentence 3 does not exist"
            )
            self.add_part(store, [Hypothesis(1, b"e", sparse=(("s_b", 2.0),))])
            assert store.open_batch([0, 1]).space.sparse == ("s_a", "s_b")
            store.finish_iteration(1, {})
            assert store.tuning_set().space.sparse == ("s_a", "s_b")
            assert store.iterations()[0].hypotheses == 2

    def test_an_open_iteration_can_be_dropped(self, tmp_path: Path) -> None:
        metric = ToyMetric()
        model = StoreModel(3)
        lines = [Hypothesis(0, b"a", sparse=(("s_a", 1.0),))]
        with self.open(tmp_path, writable=True) as store:
            store.drop_open()
            self.add(store, lines, metric)
            model.add(lines)
            self.add_part(store, [Hypothesis(1, b"e", sparse=(("s_b", 1.0),))], metric)
            store.drop_open()
            assert store.open_iteration() is None
            check_store(store, model, metric, metric.prepare(self.references))
            lines = [Hypothesis(1, b"d", sparse=(("s_c", 1.0),)), *lines]
            self.add(store, lines, metric)
            model.add(lines)
            check_store(store, model, metric, metric.prepare(self.references))

    def test_parts_without_lists_make_an_empty_iteration(self, tmp_path: Path) -> None:
        with self.open(tmp_path, writable=True) as store:
            self.add_part(store, [], progress={"batch": 1})
            found = store.open_iteration()
            assert found is not None
            assert found.sentences.tolist() == []
            assert store.open_batch([0, 1]).offsets.tolist() == [0, 0, 0]
            store.finish_iteration(1, {})
            assert store.iterations()[0].hypotheses == 0
