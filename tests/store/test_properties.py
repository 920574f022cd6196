"""Random iterations with overlapping lists, against a model of plain lists."""

from __future__ import annotations

import itertools
import tempfile
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from mosesplug.store import NBestStore
from mosesplug.tuning_set import Batch
from tests.store.checks import check_store
from tests.store.toys import Hypothesis, StoreModel, ToyMetric, make_list

N_SENTENCES = 4
REFERENCES = ((b"a b", b"c", b"", b"a \xff"),)

# Few values of everything, so that lists overlap in all ways.
hypothesis = st.builds(
    Hypothesis,
    sentence=st.integers(0, N_SENTENCES - 1),
    text=st.sampled_from([b"", b"a", b"a b", b"b a", b"a\x00b", b"\xff c"]),
    dense=st.tuples(
        st.sampled_from([0.0, -0.0, 1.5]), st.sampled_from([0.1, 3e-39]), st.just(-7.0)
    ),
    sparse=st.permutations([("s_a", 1.0), ("s_b", -0.0), ("t_c", 0.5), ("t_d", 0.25)]).flatmap(
        lambda entries: st.integers(0, 4).map(lambda n: tuple(entries[:n]))
    ),
    score=st.floats(-100, 0, width=32),
    extra=st.sampled_from([b"", b" 0-0"]),
)
runs = st.lists(st.lists(hypothesis, max_size=14), max_size=4)


@given(runs=runs, n_blocks=st.integers(1, 3), threads=st.integers(1, 2))
def test_a_store_matches_the_model(
    runs: list[list[Hypothesis]], n_blocks: int, threads: int
) -> None:
    metric = ToyMetric()
    references = metric.prepare(REFERENCES)
    model = StoreModel(N_SENTENCES)
    with (
        tempfile.TemporaryDirectory() as path,
        NBestStore.open(path, writable=True, map_size=1 << 16) as store,
    ):
        for iteration, lines in enumerate(runs, start=1):
            lines = sorted(lines, key=lambda line: line.sentence)
            blocks = [
                make_list(itertools.chain.from_iterable(lists))
                for _, lists in itertools.groupby(
                    (list(g) for _, g in itertools.groupby(lines, lambda line: line.sentence)),
                    key=lambda lists: lists[0].sentence // n_blocks,
                )
            ]
            report = store.add_iteration(
                iteration,
                iter(blocks),
                metric=metric,
                references=references,
                n_sentences=N_SENTENCES,
                record={"iteration": iteration},
                threads=threads,
            )
            before = sum(len(model.merged(s, range(1, iteration))) for s in range(N_SENTENCES))
            model.add(lines)
            after = sum(len(model.merged(s, range(1, iteration + 1))) for s in range(N_SENTENCES))
            assert report.hypotheses == len(lines)
            assert report.new_hypotheses == after - before
            assert report.sentences == len({line.sentence for line in lines})
        check_store(store, model, metric, references)
        assert metric.scored == sum(record.new_hypotheses for record in store.iterations())


@given(runs=runs, data=st.data())
def test_parts_in_any_order_make_the_same_iteration(
    runs: list[list[Hypothesis]], data: st.DataObject
) -> None:
    metric = ToyMetric()
    references = metric.prepare(REFERENCES)
    common: dict[str, Any] = {
        "metric": metric, "references": references, "n_sentences": N_SENTENCES
    }  # fmt: skip
    model = StoreModel(N_SENTENCES)
    with (
        tempfile.TemporaryDirectory() as whole_path,
        tempfile.TemporaryDirectory() as parts_path,
        NBestStore.open(whole_path, writable=True, map_size=1 << 16) as whole,
        NBestStore.open(parts_path, writable=True, map_size=1 << 16) as parts,
    ):
        for iteration, lines in enumerate(runs, start=1):
            lines = sorted(lines, key=lambda line: line.sentence)
            blocks = [
                list(lists) for _, lists in itertools.groupby(lines, lambda line: line.sentence)
            ]
            whole.add_iteration(iteration, [make_list(lines)], record={}, **common)
            parts.add_part(iteration, [], progress={"done": []}, **common)
            blocks = data.draw(st.permutations(blocks))
            size = data.draw(st.integers(1, 3))
            for first in range(0, len(blocks), size):
                part = list(itertools.chain.from_iterable(blocks[first : first + size]))
                parts.add_part(iteration, [make_list(part)], progress={"done": first}, **common)
                batch = parts.open_batch([line[0].sentence for line in blocks[: first + size]])
                assert batch.n_hyps == sum(map(len, blocks[: first + size]))
                check_store(parts, model, metric, references)
            parts.finish_iteration(iteration, {})
            model.add(lines)
        check_store(parts, model, metric, references)
        assert parts.iterations() == whole.iterations()
        columns = [store.space.columns if store.space else {} for store in (whole, parts)]
        assert columns[0].keys() == columns[1].keys()


@settings(max_examples=25)
@given(
    runs=runs,
    batches=st.lists(st.lists(st.integers(0, N_SENTENCES - 1), max_size=6), max_size=6),
    iterations=st.none() | st.sets(st.integers(1, 4)),
    memory=st.sampled_from([0, 3000, 1 << 20]),
)
def test_merged_batches_are_those_of_the_store(
    runs: list[list[Hypothesis]],
    batches: list[list[int]],
    iterations: set[int] | None,
    memory: int,
) -> None:
    metric = ToyMetric()
    references = metric.prepare(REFERENCES)
    chosen = None if iterations is None else [i for i in iterations if i <= len(runs)]
    with (
        tempfile.TemporaryDirectory() as path,
        NBestStore.open(path, writable=True, map_size=1 << 16) as store,
    ):
        for iteration, lines in enumerate(runs, start=1):
            lines = sorted(lines, key=lambda line: line.sentence)
            store.add_iteration(
                iteration, [make_list(lines)], metric=metric, references=references,
                n_sentences=N_SENTENCES, record={},
            )  # fmt: skip
        if not runs:
            return
        merged = store.merge_batches(chosen, metric=metric, references=references, memory=memory)
        for sentences in batches:
            batch = merged.batch(sentences)
            truth = store.batch(sentences, chosen, metric=metric, references=references)
            assert_same(batch, truth)
            assert merged.bytes_kept <= memory


def assert_same(batch: Batch, truth: Batch) -> None:
    """Equal in every row, and of the same types."""
    assert batch.space == truth.space
    pairs = [
        (getattr(batch, name), getattr(truth, name))
        for name in ("sentence_ids", "offsets", "dense", "stats", "lengths")
    ]
    assert (batch.sparse is None) == (truth.sparse is None)
    if batch.sparse is not None and truth.sparse is not None:
        pairs += [
            (getattr(batch.sparse, name), getattr(truth.sparse, name))
            for name in ("indptr", "indices", "data")
        ]
    for found, wanted in pairs:
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)
