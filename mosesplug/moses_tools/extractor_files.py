"""Merge the extractor files of several iterations.

They are the input of Moses' optimizer programs. Each iteration has a file of features and one of
statistics, with corresponding rows. The rows of a sentence from all iterations become one list of
hypotheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.extractor.data import FeatureData, ScoreData
from formats.extractor.reader import read_features, read_scores
from formats.text import StrPath
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows, TuningSet

if TYPE_CHECKING:  # processes that only read files start sooner
    from mosesplug.metrics import Metric

Statistics = NDArray[np.int32] | NDArray[np.float32]

DistinctBy = Literal["features and statistics", "features", "nothing"]

_COLUMN = re.compile(r"(.*)_[0-9]+")
_INT32_LIMIT = 2.0**31


@dataclass(frozen=True)
class ExtractorSet:
    """Merged extractor files.

    Attributes:
        tuning_set: the hypotheses, sentences in the order of their first appearance. The files
            contain no lengths; all lengths are 0.
        metric: the name in the headers of the statistics, ``BLEU`` or ``BLEU,TER``.
        names: names of the dense features, as in the headers.
        hypotheses: number of rows read, including duplicates.
    """

    tuning_set: TuningSet
    metric: str
    names: tuple[str, ...]
    hypotheses: int

    def take(self, rows: NDArray[np.int64], offsets: NDArray[np.int64]) -> ExtractorSet:
        """Return the given rows in that order; ``offsets`` are their new sentence offsets."""
        lists = self.tuning_set
        taken = replace(lists, offsets=offsets)
        if not (len(rows) == lists.n_hyps and _are_all(rows)):
            taken = replace(
                taken,
                dense=lists.dense[rows],
                sparse=None if lists.sparse is None else lists.sparse.take(rows),
                stats=lists.stats[rows],
                lengths=lists.lengths[rows],
            )
        return replace(self, tuning_set=taken)


@dataclass(frozen=True)
class Iteration:
    """Features and statistics of one iteration, with their file names for messages."""

    features: FeatureData
    scores: ScoreData
    feature_file: StrPath
    score_file: StrPath


def load_extractor_files(
    feature_files: Sequence[StrPath],
    score_files: Sequence[StrPath],
    *,
    distinct_by: DistinctBy = "features and statistics",
    threads: int = 2,
) -> ExtractorSet:
    """Read, pair and merge extractor files.

    Args:
        score_files: the score file of each feature file, in the same order.
        distinct_by: see ``join``.

    Raises:
        UsageError: there is no file, or the numbers of files differ.
        FormatError: a file is not an extractor file.
        DataError: the files do not match each other.
    """
    pairs = pair_files(feature_files, score_files)
    return join([read_iteration(*pair, threads=threads) for pair in pairs], distinct_by)


def pair_files(
    feature_files: Sequence[StrPath], score_files: Sequence[StrPath]
) -> list[tuple[StrPath, StrPath]]:
    """Return the feature file and score file of each iteration.

    Raises:
        UsageError: there is no file, or the numbers of files differ.
    """
    if not feature_files or len(feature_files) != len(score_files):
        raise UsageError(
            f"{len(feature_files)} feature files and {len(score_files)} score files: give one of "
            "each for every iteration"
        )
    return list(zip(feature_files, score_files, strict=True))


def join(
    iterations: Iterable[Iteration], distinct_by: DistinctBy = "features and statistics"
) -> ExtractorSet:
    """Merge iterations into one tuning set, without duplicates.

    Args:
        distinct_by: the values whose equality makes the later of two hypotheses of a sentence a
            duplicate; features are dense and sparse ones.

    Raises:
        DataError: the iterations do not match each other.
    """
    merged = merge(list(iterations))
    if distinct_by != "nothing":
        lists = merged.tuning_set
        first = find_first_equal_rows(
            lists, lists.stats if distinct_by == "features and statistics" else None
        )
        kept = np.flatnonzero(first == np.arange(lists.n_hyps))
        merged = merged.take(kept, np.searchsorted(kept, lists.offsets))
    return replace(merged, tuning_set=_renumber_sparse(merged.tuning_set))


def require_metric(data: ExtractorSet, metric: Metric, path: StrPath) -> None:
    """Check that statistics are those of a metric.

    Args:
        path: the first file of statistics, for the message.

    Raises:
        DataError: they are not.
    """
    width = data.tuning_set.stats.shape[1]
    if (data.metric, width) != (metric.name, metric.n_statistics):
        raise DataError(
            f"{path} has {width} statistics of {data.metric}, not the {metric.n_statistics} of"
            f" {metric.name}: run the extractor with --sctype {metric.name} and the same --scconfig"
        )


def read_iteration(feature_file: StrPath, score_file: StrPath, *, threads: int = 2) -> Iteration:
    """Read the two files of an iteration.

    Raises:
        FormatError: a file is not an extractor file, or the files belong to different runs.
    """
    features = read_features(feature_file, threads=threads)
    scores = read_scores(score_file, threads=threads)
    if not (
        np.array_equal(features.sentence_ids, scores.sentence_ids)
        and np.array_equal(features.offsets, scores.offsets)
    ):
        raise FormatError(
            f"its sentences or their numbers of hypotheses differ from those of {feature_file}",
            path=score_file,
            remedy="Give two files written by the same run of the extractor",
        )
    return Iteration(features, scores, feature_file, score_file)


def merge(iterations: Sequence[Iteration]) -> ExtractorSet:
    """Merge at least one iteration into one list per sentence, keeping duplicates.

    Raises:
        DataError: the iterations do not match each other.
    """
    first = iterations[0]
    for other in iterations:
        if other.features.names != first.features.names:
            raise DataError(
                f"{other.feature_file} and {first.feature_file} have different features: "
                "merge only iterations of one configuration"
            )
        width, width_first = other.scores.stats.shape[1], first.scores.stats.shape[1]
        if (other.scores.metric, width) != (first.scores.metric, width_first):
            raise DataError(
                f"{other.score_file} has {width} statistics of {other.scores.metric}, but "
                f"{first.score_file} has {width_first} of {first.scores.metric}: score all lists "
                "with one metric"
            )
    features = [iteration.features for iteration in iterations]
    sentences, offsets, order = order_by_sentence(features)
    sparse_names, sparse = _join_sparse(features)
    names = first.features.names
    groups = [match[1] if (match := _COLUMN.fullmatch(name)) else name for name in names]
    lists = TuningSet(
        space=FeatureSpace.of_names(groups, sparse_names),
        sentence_ids=sentences,
        offsets=offsets,
        dense=_gather([feature.dense for feature in features], order),
        sparse=None if not sparse_names else sparse if _are_all(order) else sparse.take(order),
        stats=_gather(_whole([iteration.scores.stats for iteration in iterations]), order),
        lengths=np.zeros(len(order), dtype=np.int32),
    )
    return ExtractorSet(lists, first.scores.metric, names, lists.n_hyps)


def order_by_sentence(
    features: Sequence[FeatureData],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Return sentences by first appearance, row offsets, and the order of rows.

    Returns:
        int64 ``[n_sentences]``; int64 ``[n_sentences + 1]``; and int64 ``[n]``, the rows of all
        files in the order of the merged lists.
    """
    blocks = np.concatenate([feature.sentence_ids for feature in features])
    counts = np.concatenate([np.diff(feature.offsets) for feature in features])
    starts = np.cumsum(counts) - counts
    distinct, first, owners = np.unique(blocks, return_index=True, return_inverse=True)
    by_appearance = np.argsort(first)
    rank = np.argsort(by_appearance)[owners]
    in_order = np.argsort(rank, kind="stable")
    widths = counts[in_order]
    behind = np.cumsum(widths)
    rows = np.repeat(starts[in_order] - (behind - widths), widths) + np.arange(counts.sum())
    offsets = np.zeros(len(distinct) + 1, dtype=np.int64)
    np.add.at(offsets, rank + 1, counts)
    return distinct[by_appearance], np.cumsum(offsets), rows


def _gather(parts: Sequence[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[Any]:
    """Return the rows of all parts in that order.

    A single part that is in order is not copied. Each part's rows are written straight to their
    places, since touching new memory dominates the cost.
    """
    if len(parts) == 1 and _are_all(order):
        return parts[0]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    gathered = np.empty((len(order), parts[0].shape[1]), dtype=parts[0].dtype)
    start = 0
    for part in parts:
        gathered[place[start : start + len(part)]] = part
        start += len(part)
    return gathered


def _are_all(rows: NDArray[np.int64]) -> bool:
    """Return whether the rows are 0, 1, 2, ..."""
    return np.array_equal(rows, np.arange(len(rows)))


def _join_sparse(features: Sequence[FeatureData]) -> tuple[tuple[str, ...], SparseRows]:
    """Return the sparse features of all files by first appearance, and their values."""
    known: dict[str, int] = {}
    columns = [
        np.array([known.setdefault(n, len(known)) for n in feature.sparse_names], dtype=np.int32)
        for feature in features
    ]
    rows = [SparseRows(f.sparse_indptr, f.sparse_indices, f.sparse_data) for f in features]
    return tuple(known), SparseRows.concatenate(
        [part.move(own) for part, own in zip(rows, columns, strict=True)]
    )


def _whole(parts: Sequence[NDArray[np.float32]]) -> Sequence[Statistics]:
    """Convert statistics to int32 if all are integers, else keep them as float32."""
    counts = []
    for part in parts:
        if not (np.abs(part) < _INT32_LIMIT).all():
            return parts
        counts.append(part.astype(np.int32))
        if not np.array_equal(counts[-1], part):
            return parts
    return counts


def find_first_equal_rows(
    lists: TuningSet, stats: NDArray[Any] | None, *, sparse: bool = True
) -> NDArray[np.int64]:
    """Return the first equal row in the same sentence for each row, int64 ``[n]``.

    A row without an earlier duplicate gets itself.

    Args:
        stats: statistics to compare too, or None.
    """
    # Imported here: it imports Numba, which can load while files are read.
    from mosesplug.store import dedupe

    n = lists.n_hyps
    own = np.zeros((n, 0), dtype=np.int32) if stats is None else np.ascontiguousarray(stats)
    rows = lists.sparse if sparse and lists.sparse is not None else SparseRows.empty(n)
    indices, data, _ = dedupe.sort_sparse(rows.indptr, rows.indices, rows.data)
    # The store compares text and features; here the statistics take the place of the text.
    width = own.itemsize * own.shape[1]
    starts = width * np.arange(n)
    compared = dedupe.Rows(
        own.view(np.uint8).reshape(-1) if width else np.zeros(0, dtype=np.uint8),
        starts,
        starts + width,
        lists.dense,
        rows.indptr,
        indices,
        data,
    )
    hashes = dedupe.hash_rows(compared)
    first, _, _ = dedupe.first_occurrences(compared, hashes, lists.offsets)
    return first


def _renumber_sparse(lists: TuningSet) -> TuningSet:
    """Return lists with sparse features in the order of their first appearance."""
    if lists.sparse is None:
        return lists
    used, first = np.unique(lists.sparse.indices, return_index=True)
    by_appearance = used[np.argsort(first)]
    column = np.zeros(lists.space.n_sparse, dtype=np.int32)
    column[by_appearance] = np.arange(len(used))
    names = tuple(lists.space.sparse[old] for old in by_appearance.tolist())
    space = FeatureSpace(lists.space.groups, names)
    return replace(lists, space=space, sparse=lists.sparse.move(column) if names else None)
