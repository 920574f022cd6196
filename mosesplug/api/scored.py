"""Hypotheses as arrays: lists to be scored by a metric, and lists that have their statistics."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.api.arrays import (
    FeatureArrays,
    SentenceNumbers,
    encode_texts,
    number_sentences,
)
from mosesplug.api.nbest import make_block
from mosesplug.api.references import arrange_references, load_references
from mosesplug.api.statistics import StatisticsMetric, convert_scores, convert_statistics
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.inputs import LearningData, make_list_data
from mosesplug.learning.weights import StartingWeights
from mosesplug.metrics import Metric
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["Hypotheses", "make_lists", "score_hypotheses"]


@dataclass(frozen=True)
class Hypotheses:
    """Hypotheses without a metric.

    Attributes:
        features: their values.
        sentences: the sentence of each.
        lengths: int32 ``[n_hyps]``, the tokens of each; ones without texts.
    """

    features: FeatureArrays
    sentences: SentenceNumbers
    lengths: NDArray[np.int32]

    @classmethod
    def of_arrays(
        cls, features: FeatureArrays, sentence_ids: Any, hypotheses: Any = None
    ) -> Hypotheses:
        """Return the hypotheses of arrays; ``hypotheses`` are their texts, or None."""
        count = len(features)
        lengths = np.ones(count, dtype=np.int32)
        if hypotheses is not None:
            texts = encode_texts(hypotheses, "hypotheses", count)
            lengths = np.array([len(text.split()) for text in texts], dtype=np.int32)
        return cls(features, number_sentences(sentence_ids, count), lengths)

    @classmethod
    def of_block(cls, block: NBestList) -> Hypotheses:
        """Return the hypotheses of an n-best list."""
        # Here and not above: it loads Numba kernels.
        from mosesplug.store.dedupe import count_tokens, sort_sparse

        indices, data, _ = sort_sparse(block.sparse_indptr, block.sparse_indices, block.sparse_data)
        space = FeatureSpace(block.groups, block.sparse_names)
        sparse = SparseRows(block.sparse_indptr, indices, data)
        return cls(
            FeatureArrays(space, block.dense, sparse, np.arange(len(space))),
            number_sentences(block.sentence_ids, len(block)),
            count_tokens(block.buffer, block.text_starts, block.text_ends),
        )


def make_lists(
    features: FeatureArrays, sentence_ids: Any, hypotheses: Any, references: Any
) -> tuple[NBestList, list[list[bytes]]]:
    """Return arrays as n-best lists, and their references as ``[reference][line]``.

    Raises:
        UsageError, DataError: as for ``optimize``.
    """
    count = len(features)
    texts = encode_texts(hypotheses, "hypotheses", count)
    if isinstance(references, Mapping):
        sentences = number_sentences(sentence_ids, count)
        lines = arrange_references(references, sentences)
    else:
        lines = load_references(references)
        sentences = number_sentences(sentence_ids, count, len(lines[0]))
    order = sentences.order
    in_order = [texts[row] for row in order.tolist()]
    return make_block(sentences.numbers[order], in_order, features.take(order)), lines


def score_hypotheses(
    hypotheses: Hypotheses,
    scores: Any,
    statistics: Any,
    metric: Metric | None,
    start: Callable[[FeatureSpace], StartingWeights],
    threads: int,
) -> LearningData:
    """Return hypotheses with their scores or statistics as data to learn from.

    Args:
        hypotheses: the hypotheses.
        scores, statistics: see ``optimize``; one of them is None.
        metric: scores the sums of the statistics; unused with ``scores``.
        start: returns the starting weights.
        threads: maximum number of threads.

    Raises:
        UsageError: a wrong shape, or no metric.
        DataError: a value is not finite.
    """
    features, sentences = hypotheses.features, hypotheses.sentences
    count = len(features)
    values: NDArray[np.int32] | NDArray[np.float64]
    if scores is not None:
        metric, values = convert_scores(scores, count)
    else:
        values = convert_statistics(statistics, count)
        metric = _bind_metric(metric, values.shape[1])
        # Fail now if the function cannot score many sums at once: not as many as statistics.
        metric.score(np.tile(values.sum(axis=0, dtype=np.float64), (values.shape[1] + 1, 1)))
    order = sentences.order
    kept = features.take(order)
    n_sentences = len(sentences.ids)
    counts = np.bincount(sentences.numbers, minlength=n_sentences)
    lists = TuningSet(
        space=features.space,
        sentence_ids=np.arange(n_sentences),
        offsets=np.append(0, np.cumsum(counts)).astype(np.int64),
        dense=kept.dense,
        sparse=kept.sparse if features.space.n_sparse else None,
        stats=values[order],
        lengths=hypotheses.lengths[order],
    )
    return make_list_data(lists, metric, start(features.space), metric.signature(), count, threads)


def _bind_metric(metric: Metric | None, width: int) -> Metric:
    """Return the metric of statistics, ``[n_hyps, width]``."""
    if metric is None:
        raise UsageError("statistics requires a metric: give metric=StatisticsMetric(function)")
    if isinstance(metric, StatisticsMetric) and not metric.columns:
        return replace(metric, columns=tuple(str(column) for column in range(width)))
    if metric.n_statistics != width:
        raise UsageError(
            f"statistics has {width} columns, and the metric {metric.name} {metric.n_statistics}"
        )
    return metric
