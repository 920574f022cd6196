"""Extractor files of some iterations, merged: where Moses' own optimizer programs start.

Each iteration has a file of features and one of statistics. Their rows go together one by one,
and rows of one sentence from all iterations become one list of hypotheses.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.extractor_data import FeatureData, ScoreData
from formats.extractor_reader import read_features, read_scores
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.store import dedupe
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = ["DistinctBy", "ExtractorSet", "load_extractor_files"]

StrPath = str | PathLike[str]
Statistics = NDArray[np.int32] | NDArray[np.float32]

DistinctBy = Literal["features and statistics", "features", "nothing"]

_COLUMN = re.compile(r"(.*)_[0-9]+")
_INT32_LIMIT = 2.0**31


@dataclass(frozen=True)
class ExtractorSet:
    """Merged extractor files.

    Attributes:
        tuning_set: the hypotheses, sentences in the order of their first appearance. The files
            do not tell lengths; those here are 0.
        metric: the name in the headers of the statistics, ``BLEU`` or ``BLEU,TER``.
        names: of the dense columns, as the headers spell them.
        hypotheses: rows read, duplicates included.
    """

    tuning_set: TuningSet
    metric: str
    names: tuple[str, ...]
    hypotheses: int


def load_extractor_files(
    feature_files: Sequence[StrPath],
    score_files: Sequence[StrPath],
    *,
    distinct_by: DistinctBy = "features and statistics",
    threads: int = 2,
) -> ExtractorSet:
    """Read, pair and merge extractor files.

    Args:
        feature_files: one or more, text or binary.
        score_files: the statistics that belong to each, in the same order.
        distinct_by: what two hypotheses of a sentence must have equal for the later one to be
            left out; features are dense and sparse ones.
        threads: for reading.

    Raises:
        UsageError: no file, or not as many of one kind as of the other.
        FormatError: a file that is no such file.
        DataError: files that do not go together.
    """
    if not feature_files or len(feature_files) != len(score_files):
        raise UsageError(
            f"{len(feature_files)} feature files and {len(score_files)} score files: give one of "
            "each for every iteration"
        )
    features = [read_features(path, threads=threads) for path in feature_files]
    scores = [read_scores(path, threads=threads) for path in score_files]
    for number in range(len(features)):
        _check(number, features, scores, feature_files, score_files)
    sentences, offsets, order = _by_sentence(features)
    rows = _joined(features).take(order)
    stats = _whole(np.concatenate([score.stats for score in scores])[order])
    n_read = len(order)
    if distinct_by != "nothing":
        told_apart = stats if distinct_by == "features and statistics" else stats[:, :0]
        kept, offsets = _distinct(rows, told_apart, offsets)
        rows, stats = rows.take(kept), stats[kept]
    return ExtractorSet(
        _tuning_set(rows, stats, sentences, offsets), scores[0].metric, *(features[0].names, n_read)
    )


@dataclass(frozen=True)
class _Rows:
    """Features of hypotheses side by side."""

    names: tuple[str, ...]
    dense: NDArray[np.float32]
    sparse_names: tuple[str, ...]
    sparse: SparseRows

    def take(self, rows: NDArray[np.int64]) -> _Rows:
        """The given rows, in that order."""
        if np.array_equal(rows, np.arange(len(self.dense))):
            return self
        return _Rows(self.names, self.dense[rows], self.sparse_names, self.sparse.take(rows))


def _check(
    number: int,
    features: Sequence[FeatureData],
    scores: Sequence[ScoreData],
    feature_files: Sequence[StrPath],
    score_files: Sequence[StrPath],
) -> None:
    """Refuse files that do not go together."""
    feature, score = features[number], scores[number]
    if not (
        np.array_equal(feature.sentence_ids, score.sentence_ids)
        and np.array_equal(feature.offsets, score.offsets)
    ):
        raise FormatError(
            f"its sentences and their numbers of hypotheses differ from those of "
            f"{feature_files[number]}",
            path=score_files[number],
            remedy="Give the two files that one run of the extractor wrote",
        )
    if feature.names != features[0].names:
        raise DataError(
            f"the features of {feature_files[number]} are not those of {feature_files[0]}: "
            "iterations of one configuration only can be merged"
        )
    if (score.metric, score.stats.shape[1]) != (scores[0].metric, scores[0].stats.shape[1]):
        raise DataError(
            f"{score_files[number]} has {score.stats.shape[1]} statistics of {score.metric}, and "
            f"{score_files[0]} has {scores[0].stats.shape[1]} of {scores[0].metric}: score all "
            "lists with one metric"
        )


def _by_sentence(
    features: Sequence[FeatureData],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Sentences by first appearance, offsets of their rows, and which row of all files each is."""
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


def _joined(features: Sequence[FeatureData]) -> _Rows:
    """The rows of all files, one after the other."""
    known: dict[str, int] = {}
    columns = [
        np.array([known.setdefault(n, len(known)) for n in feature.sparse_names], dtype=np.int32)
        for feature in features
    ]
    shifts = np.cumsum([0, *(len(feature.sparse_data) for feature in features)])
    indptr = [f.sparse_indptr[:-1] + shift for f, shift in zip(features, shifts, strict=False)]
    return _Rows(
        features[0].names,
        np.concatenate([feature.dense for feature in features]),
        tuple(known),
        SparseRows(
            np.append(np.concatenate(indptr), shifts[-1]),
            np.concatenate(
                [own[f.sparse_indices] for own, f in zip(columns, features, strict=True)]
            ),
            np.concatenate([feature.sparse_data for feature in features]),
        ),
    )


def _whole(stats: NDArray[np.float32]) -> Statistics:
    """Counts as integers, as the metrics make them; float32 where any is not whole."""
    if (np.abs(stats) < _INT32_LIMIT).all():
        counts = stats.astype(np.int32)
        if np.array_equal(counts, stats):
            return counts
    return stats


def _distinct(
    rows: _Rows, stats: Statistics, offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows that no earlier row of their sentence equals; and offsets of what is left."""
    n = len(rows.dense)
    sparse = rows.sparse
    indices, data, _ = dedupe.sort_sparse(sparse.indptr, sparse.indices, sparse.data)
    # The store tells hypotheses apart by text and features; here, statistics stand for the text.
    width = stats.itemsize * stats.shape[1]
    starts = width * np.arange(n)
    compared = dedupe.Rows(
        np.ascontiguousarray(stats).view(np.uint8).reshape(-1),
        starts,
        starts + width,
        rows.dense,
        sparse.indptr,
        indices,
        data,
    )
    hashes = dedupe.hash_rows(compared, rows.dense.view(np.uint32), data.view(np.uint32))
    first, _, _ = dedupe.first_occurrences(compared, hashes, offsets)
    kept = np.flatnonzero(first == np.arange(n))
    return kept, np.searchsorted(kept, offsets)


def _tuning_set(
    rows: _Rows, stats: Statistics, sentences: NDArray[np.int64], offsets: NDArray[np.int64]
) -> TuningSet:
    """The arrays under the names of a feature space, sparse features by first appearance."""
    groups = [match[1] if (match := _COLUMN.fullmatch(name)) else name for name in rows.names]
    sparse_names, sparse = _renumbered(rows)
    return TuningSet(
        space=FeatureSpace.of_names(groups, sparse_names),
        sentence_ids=sentences,
        offsets=offsets,
        dense=rows.dense,
        sparse=sparse if sparse_names else None,
        stats=stats,
        lengths=np.zeros(len(rows.dense), dtype=np.int32),
    )


def _renumbered(rows: _Rows) -> tuple[tuple[str, ...], SparseRows]:
    """Sparse features in the order in which the rows name them."""
    used, first = np.unique(rows.sparse.indices, return_index=True)
    by_appearance = used[np.argsort(first)]
    column = np.zeros(len(rows.sparse_names), dtype=np.int32)
    column[by_appearance] = np.arange(len(used))
    names = tuple(rows.sparse_names[old] for old in by_appearance.tolist())
    indices = column[rows.sparse.indices]
    return names, SparseRows(rows.sparse.indptr, indices, rows.sparse.data)
