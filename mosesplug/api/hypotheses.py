"""Hypotheses in a caller's form: arrays, lists, tuples or files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.api.arrays import (
    FeatureArrays,
    SentenceNumbers,
    encode_texts,
    number_sentences,
)
from mosesplug.api.inputs import arrange_references, load_references
from mosesplug.api.nbest import NBest, make_block
from mosesplug.api.statistics import StatisticsMetric, convert_scores, convert_statistics
from mosesplug.errors import UsageError
from mosesplug.features import FeatureSpace
from mosesplug.learning.inputs import LearningData, make_list_data
from mosesplug.learning.weights import StartingWeights
from mosesplug.metrics import Metric
from mosesplug.sentence_ids import arrange_lines
from mosesplug.tuning.decoding.lists import read_decoded
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["ArrayLists", "Hypotheses", "make_lists", "parse_lists", "score_hypotheses"]


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
        from mosesplug.store.columns import count_tokens
        from mosesplug.store.dedupe import sort_sparse

        indices, data, _ = sort_sparse(block.sparse_indptr, block.sparse_indices, block.sparse_data)
        space = FeatureSpace(block.groups, block.sparse_names)
        sparse = SparseRows(block.sparse_indptr, indices, data)
        return cls(
            FeatureArrays(space, block.dense, sparse, np.arange(len(space))),
            number_sentences(block.sentence_ids, len(block)),
            count_tokens(block.buffer, block.text_starts, block.text_ends),
        )


class ArrayLists(NamedTuple):
    """Arrays as n-best lists.

    Attributes:
        block: the lists, grouped by sentence.
        references: ``[reference][line]``; None without any.
        order: int64 ``[n_hyps]``, the caller's row of each hypothesis.
    """

    block: NBestList
    references: Sequence[Sequence[bytes]] | None
    order: NDArray[np.int64]


def make_lists(
    features: FeatureArrays,
    sentence_ids: Any,
    hypotheses: Any,
    references: Any,
    ids: bool | None = None,
) -> ArrayLists:
    """Return arrays as n-best lists.

    Args:
        features: their values.
        sentence_ids, hypotheses, references, ids: see ``optimize``; texts and references may be
            None.

    Raises:
        UsageError, DataError: as for ``optimize``.
    """
    count = len(features)
    texts = None if hypotheses is None else encode_texts(hypotheses, "hypotheses", count)
    lines: Sequence[Sequence[bytes]] | None = None
    if isinstance(references, Mapping) or references is None:
        sentences = number_sentences(sentence_ids, count)
        if references is not None:
            lines = arrange_references(references, sentences)
    else:
        known = number_sentences(sentence_ids, count).ids
        names = [each for each in known if isinstance(each, str)]
        own = names if len(names) == len(known) else []
        lines = arrange_lines(
            load_references(references), own, "references", ids, lambda: texts or ()
        )
        sentences = number_sentences(sentence_ids, count, len(lines[0]))
    order = sentences.order
    in_order = None if texts is None else [texts[row] for row in order.tolist()]
    block = make_block(sentences.numbers[order], in_order, features.take(order))
    return ArrayLists(block, lines, order)


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


def parse_lists(lists: Any, space: FeatureSpace) -> tuple[str, Iterable[NBestList]]:
    """Return what messages call some lists, and their blocks.

    Args:
        lists: see ``Tuner.tell``.
        space: the dense features of the run.

    Raises:
        UsageError: they have no such form.
        DataError: a value is not finite, or a sentence id is negative.
        FormatError: a file cannot be read.
    """
    if isinstance(lists, str | PathLike):
        return fspath(lists), read_decoded(Path(lists), space.groups)
    if isinstance(lists, NBest):
        return lists.block.path, (lists.block,)
    if isinstance(lists, Mapping):
        required = {"sentence_ids", "hypotheses", "features"}
        if not required <= set(lists) <= required | {"names", "dense", "scores"}:
            raise UsageError(
                f"the lists have the entries {', '.join(map(str, lists)) or '(none)'}: give "
                "sentence_ids, hypotheses and features, and if you like names, dense and scores"
            )
        found = NBest(**{"names": space.group_names, **lists})
        return "the lists", (found.block,)
    if not isinstance(lists, Iterable):
        raise UsageError(
            f"the lists are a {type(lists).__name__}: give an NBest, a mapping of its arguments,"
            " the path of an n-best file, or hypotheses"
        )
    return "the hypotheses", (_collect_hypotheses(lists, space).block,)


def _collect_hypotheses(hypotheses: Iterable[Any], space: FeatureSpace) -> NBest:
    """Return lists of tuples of sentence id, text and feature values."""
    from scipy.sparse import coo_array

    ids, texts, dense = [], [], []
    columns: dict[str, int] = {}
    rows: list[int] = []
    indices: list[int] = []
    values: list[float] = []
    for row, each in enumerate(hypotheses):
        try:
            sentence, text, features = each
        except (TypeError, ValueError):
            raise UsageError(
                f"hypothesis {row} is not a tuple of sentence id, text and feature values"
            ) from None
        ids.append(sentence)
        texts.append(text)
        if isinstance(features, Mapping):
            for name in features.keys() - dict(space.groups).keys():
                rows.append(row)
                indices.append(space.n_dense + columns.setdefault(name, len(columns)))
                values.append(features[name])
        dense.append(_flatten(features, space, row))
    if not dense:
        raise UsageError("there are no hypotheses")
    if not columns:
        return NBest(ids, texts, np.array(dense), names=space.group_names)
    whole = np.hstack([np.array(dense), np.zeros((len(dense), len(columns)))])
    whole[rows, indices] = values
    return NBest(
        ids,
        texts,
        coo_array(whole).tocsr(),
        names=[*space.group_names, *columns],
        dense=list(dict(space.groups)),
    )


def _flatten(features: Any, space: FeatureSpace, row: int) -> list[float]:
    """Return the values of the dense features of a hypothesis."""
    if not isinstance(features, Mapping):
        found = list(features)
    else:
        found = []
        for name, _ in space.groups:
            if name not in features:
                raise UsageError(f"hypothesis {row} has no value of the feature {name}")
            found += np.ravel(features[name]).tolist()
    if len(found) != space.n_dense:
        raise UsageError(
            f"hypothesis {row} has {len(found)} values of dense features, but the run tunes"
            f" {space.n_dense}: {', '.join(space.names[: space.n_dense])}"
        )
    return found
