"""n-best lists to learn from, made of files, arrays and texts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList, concatenate
from formats.pipes import wrap_files
from formats.text import StrPath
from mosesplug.api.lists.arrays import (
    FeatureArrays,
    SentenceNumbers,
    arrange_references,
    encode_texts,
    load_references,
    number_sentences,
)
from mosesplug.api.lists.nbest import NBest, make_block
from mosesplug.api.lists.statistics import StatisticsMetric, convert_scores, convert_statistics
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.learning.inputs import LearningData, make_list_data
from mosesplug.learning.lists.blocks import find_dense_features, read_file_blocks
from mosesplug.learning.weights import StartingWeights
from mosesplug.metrics import Metric
from mosesplug.sentence_ids import arrange_lines
from mosesplug.settings.lists import ListSettings
from mosesplug.tuning_set import SparseRows, TuningSet


def load_list_references(
    references: Any, lists: Any, what: str = "references"
) -> Sequence[Sequence[bytes]]:
    """Return the references of lists as ``[reference][line]``.

    Args:
        references: as for ``load_references``, or a mapping of sentence ids.
    """
    if not isinstance(references, Mapping):
        return load_references(references, what)
    sources = [lists] if isinstance(lists, NBest | str | PathLike) else list(lists)
    every = [source for source in sources if isinstance(source, NBest)]
    if not every or len(every) < len(sources) or any(item.ids != every[0].ids for item in every):
        raise UsageError(
            f"{what} by sentence id require features, or lists in memory with the same ids"
        )
    numbers = np.concatenate([item.sentence_ids for item in every])
    known, places = np.unique(numbers, return_inverse=True)
    ids = [every[0].ids[n] if every[0].ids else n for n in known.tolist()]
    references_of_known = arrange_references(
        references, SentenceNumbers(places.reshape(-1), ids), what
    )
    # Lines of sentences without hypotheses are never read.
    lines = [[b""] * (int(known[-1]) + 1) for _ in references_of_known]
    for texts, line in zip(references_of_known, lines, strict=True):
        for number, text in zip(known.tolist(), texts, strict=True):
            line[number] = text
    return lines


def take_lists(lists: Any, what: str) -> tuple[StrPath | NBestList, ...]:
    """Return n-best lists, files as paths that exist.

    Args:
        lists: as ``convert_lists`` returns them.
    """
    if not isinstance(lists, NBest | str | PathLike | Iterable):
        raise UsageError(f"{what} is a {type(lists).__name__}: give an NBest or a file, or several")
    every = [lists] if isinstance(lists, NBest | str | PathLike) else list(lists)
    if not every:
        raise UsageError(f"{what} is empty: give at least one n-best list")
    taken: list[StrPath | NBestList] = []
    for place, item in enumerate(every):
        if isinstance(item, NBest):
            taken.append(item.block)
        elif isinstance(item, str | PathLike):
            Path(item).stat()
            taken.append(Path(item))
        else:
            raise UsageError(f"{what}[{place}] is a {type(item).__name__}: give an NBest or a file")
    _check_same_features(taken, what)
    return wrap_files(taken)


def _check_same_features(lists: Sequence[StrPath | NBestList], what: str) -> None:
    """Check that the lists in memory have the same dense features."""
    blocks = [
        (place, source) for place, source in enumerate(lists) if isinstance(source, NBestList)
    ]
    for place, block in blocks[1:]:
        first_place, first = blocks[0]
        if tuple(block.groups) != tuple(first.groups):
            raise DataError(
                f"{what}[{place}] has the features {spelled_groups(block.groups)}, "
                f"{what}[{first_place}] has {spelled_groups(first.groups)}: give lists of the same "
                "features in the same order"
            )


def single_list(
    lists: Any,
    settings: ListSettings,
    names: Sequence[str] | None,
    dense: Sequence[str] | None,
) -> NBestList:
    """Return the one list that scores or statistics belong to, after all steps."""
    taken = take_lists(lists, "lists")
    if len(taken) > 1:
        raise UsageError("scores and statistics require a single list: merge the lists before")
    settings = replace(
        settings,
        names=None if names is None else tuple(names),
        dense=None if dense is None else tuple(dense),
    )
    chosen = find_dense_features(taken, settings)
    return concatenate(list(read_file_blocks(taken[0], settings, dense=chosen)))


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
        sentence_ids, hypotheses, references, ids: see ``optimize``; texts and references may be
            None.
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
        names = [name for name in known if isinstance(name, str)]
        own = names if len(names) == len(known) else []
        lines = arrange_lines(
            load_references(references), own, "references", ids, lambda: texts or ()
        )
        sentences = number_sentences(sentence_ids, count, len(lines[0]))
    order = sentences.order
    in_order = None if texts is None else [texts[row] for row in order.tolist()]
    block = make_block(sentences.numbers[order], in_order, features.take(order))
    return ArrayLists(block, lines, order)


def score_lists(
    block: NBestList,
    order: NDArray[np.int64] | None,
    scores: Any,
    statistics: Any,
    metric: Metric | None,
    start: Callable[[FeatureSpace], StartingWeights],
    threads: int,
) -> LearningData:
    """Return hypotheses with their scores or statistics as data to learn from.

    Args:
        order: int64 ``[n_hyps]``, the caller's row of each hypothesis; None: they are in order.
        scores, statistics: see ``optimize``; one of them is None.
        metric: scores the sums of the statistics; unused with ``scores``.
    """
    # Here and not above: it loads Numba kernels.
    from mosesplug.store.columns import count_tokens
    from mosesplug.store.dedupe import sort_sparse

    count = len(block)
    values: NDArray[np.int32] | NDArray[np.float64]
    if scores is not None:
        metric, values = convert_scores(scores, count)
    else:
        values = convert_statistics(statistics, count)
        metric = _bind_metric(metric, values.shape[1])
        # Fail now if the function cannot score many sums at once: not as many as statistics.
        metric.score(np.tile(values.sum(axis=0, dtype=np.float64), (values.shape[1] + 1, 1)))
    lengths = count_tokens(block.buffer, block.text_starts, block.text_ends)
    if order is not None and not block.has_texts:
        lengths = np.ones(count, dtype=np.int32)
    indices, data, _ = sort_sparse(*block.sparse_rows)
    space = FeatureSpace(block.groups, block.sparse_names)
    lists = TuningSet(
        space=space,
        sentence_ids=np.arange(len(block.list_offsets) - 1),
        offsets=block.list_offsets,
        dense=block.dense,
        sparse=SparseRows(block.sparse_indptr, indices, data) if space.n_sparse else None,
        stats=values if order is None else values[order],
        lengths=lengths,
    )
    return make_list_data(lists, metric, start(space), metric.signature(), count, threads)


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
