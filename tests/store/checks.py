"""Compare what a store returns with the hypotheses that were put into it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.protocol import PreparedReferences
from mosesplug.store.nbest_store import NBestStore
from mosesplug.tuning_set import TuningSet
from tests.store.toys import Hypothesis, StoreModel, ToyMetric, make_list

__all__ = ["assert_raises", "check_rows", "check_sentences", "check_store"]


def check_rows(rows: TuningSet, first: int, truth: Sequence[Hypothesis], statistics: Any) -> None:
    """Compare rows from ``first`` with hypotheses; ``statistics`` are those of the metric."""
    n = len(truth)
    these = slice(first, first + n)
    n_dense = rows.space.n_dense
    dense = np.array([h.dense for h in truth], dtype=np.float32).reshape(n, n_dense)
    np.testing.assert_array_equal(rows.dense[these], dense)
    np.testing.assert_array_equal(rows.stats[these], statistics)
    np.testing.assert_array_equal(rows.lengths[these], [len(h.text.split()) for h in truth])
    if rows.sparse is None:
        assert not any(hypothesis.sparse for hypothesis in truth)
        return
    for row, hypothesis in enumerate(truth, start=first):
        entries = slice(rows.sparse.indptr[row], rows.sparse.indptr[row + 1])
        found = zip(rows.sparse.indices[entries], rows.sparse.data[entries], strict=True)
        assert {rows.space.sparse[index]: float(value) for index, value in found} == {
            name: float(np.float32(value)) for name, value in hypothesis.sparse
        }


def check_store(
    store: NBestStore, model: StoreModel, metric: ToyMetric, references: PreparedReferences
) -> None:
    """Compare everything that can be read from a store with the model."""

    def statistics_of(hypotheses: Sequence[Hypothesis]) -> NDArray[np.int32]:
        block = make_list(hypotheses, groups)
        return ToyMetric.statistics(
            counter, references, block.sentence_ids, block.buffer, block.text_starts,
            block.text_ends,
        )  # fmt: skip

    counter = ToyMetric(metric.weight, _known=metric._known)
    numbers = range(1, len(model.lists) + 1)
    assert [record.iteration for record in store.iterations()] == list(numbers)
    if not model.lists:
        return
    space = store.space
    groups = () if space is None else space.groups
    if space is not None:
        assert set(space.sparse) == set(model.sparse_names())
    sentences = np.arange(model.n_sentences)[::-1]
    for size in range(len(numbers) + 1):
        for chosen in itertools.combinations(numbers, size):
            merged = store.batch(sentences, chosen, metric=metric, references=references)
            truth = [model.merged(sentence, chosen) for sentence in sentences.tolist()]
            check_sentences(merged, truth, statistics_of)
            for sentence, hypotheses in zip(sentences.tolist(), truth, strict=True):
                texts = tuple(h.text for h in hypotheses)
                assert store.hypotheses(sentence, chosen) == texts
    batches = store.merge_batches(metric=metric, references=references, memory=1 << 20)
    truth = [model.merged(sentence, numbers) for sentence in sentences.tolist()]
    for _ in range(2):  # The first time from the store, then from memory.
        for sentence, hypotheses in zip(sentences.tolist(), truth, strict=True):
            check_sentences(batches.batch([sentence]), [hypotheses], statistics_of)
    for iteration, lists in enumerate(model.lists, start=1):
        own = store.iteration_set(iteration, metric=metric, references=references)
        first_best = store.first_best_statistics(iteration, metric=metric, references=references)
        truth = [lists.get(sentence, []) for sentence in range(model.n_sentences)]
        check_sentences(own.tuning_set, truth, statistics_of)
        for sentence, hypotheses in enumerate(truth):
            n = len(hypotheses)
            first = own.tuning_set.offsets[sentence]
            best = own.tuning_set.stats[first] if n else np.zeros(metric.n_statistics)
            np.testing.assert_array_equal(first_best[sentence], best)
            scores = [h.score for h in hypotheses]
            np.testing.assert_array_equal(own.scores[first:][:n], scores)
            np.testing.assert_array_equal(own.ranks[first:][:n], range(n))
            one = store.iteration_list(iteration, sentence, metric=metric, references=references)
            assert one.texts == tuple(h.text for h in hypotheses)
            assert one.extras == tuple(h.extra for h in hypotheses)
            np.testing.assert_array_equal(one.scores, scores)


def check_sentences(
    rows: TuningSet,
    truth: Sequence[Sequence[Hypothesis]],
    statistics_of: Callable[[Sequence[Hypothesis]], NDArray[np.int32]],
) -> None:
    """Compare all rows with the hypotheses of each sentence."""
    assert np.diff(rows.offsets).tolist() == [len(hypotheses) for hypotheses in truth]
    every = [hypothesis for hypotheses in truth for hypothesis in hypotheses]
    assert (rows.offsets[0], rows.n_hyps) == (0, len(every))
    check_rows(rows, 0, every, statistics_of(every))


def assert_raises(kind: type[Exception], action: Callable[[], object], *words: str) -> None:
    """Assert that ``action`` raises this error with all of the words in its message."""
    message = None
    try:
        action()
    except kind as error:
        message = str(error)
    assert message is not None, f"{kind.__name__} was not raised"
    missing = [word for word in words if word not in message]
    assert not missing, f"{missing} not in: {message}"
