"""Extractor files of some iterations, merged: where Moses' own optimizer programs start.

Each iteration has a file of features and one of statistics. Their rows go together one by one,
and rows of one sentence from all iterations become one list of hypotheses.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from os import PathLike
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.extractor.data import FeatureData, ScoreData
from formats.extractor.reader import read_features, read_scores
from mosesplug.errors import DataError, UsageError
from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows, TuningSet

__all__ = [
    "DistinctBy",
    "ExtractorSet",
    "Iteration",
    "Merged",
    "first_equals",
    "join",
    "load_extractor_files",
    "merge",
    "paired",
    "read_iteration",
]

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


@dataclass(frozen=True)
class Iteration:
    """Features and statistics of one iteration, and the files they are from, for messages."""

    features: FeatureData
    scores: ScoreData
    feature_file: StrPath
    score_file: StrPath


@dataclass(frozen=True)
class Merged:
    """Hypotheses of some iterations, sentence by sentence.

    Attributes:
        metric: name of the metric.
        sentence_ids: int64 ``[n_sentences]``, in the order of their first appearance.
        offsets: int64 ``[n_sentences + 1]``; rows of each.
        names: of the dense columns.
        dense: float32 ``[n, n_dense]``.
        sparse_names: of the sparse features, in the order of their first appearance in the files.
        sparse: their values.
        stats: int32 where all are whole, or else float32; ``[n, n_statistics]``.
    """

    metric: str
    sentence_ids: NDArray[np.int64]
    offsets: NDArray[np.int64]
    names: tuple[str, ...]
    dense: NDArray[np.float32]
    sparse_names: tuple[str, ...]
    sparse: SparseRows
    stats: Statistics

    def take(self, rows: NDArray[np.int64], offsets: NDArray[np.int64]) -> Merged:
        """Return the given rows, in that order; ``offsets`` says which of them are whose."""
        taken = replace(self, offsets=offsets)
        if len(rows) == len(self.dense) and _are_all(rows):
            return taken
        return replace(
            taken, dense=self.dense[rows], sparse=self.sparse.take(rows), stats=self.stats[rows]
        )


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
        distinct_by: as ``join`` has it.
        threads: for reading.

    Raises:
        UsageError: no file, or not as many of one kind as of the other.
        FormatError: a file that is no such file.
        DataError: files that do not go together.
    """
    pairs = paired(feature_files, score_files)
    return join([read_iteration(*pair, threads=threads) for pair in pairs], distinct_by)


def paired(
    feature_files: Sequence[StrPath], score_files: Sequence[StrPath]
) -> list[tuple[StrPath, StrPath]]:
    """Return the two files of each iteration.

    Raises:
        UsageError: no file, or not as many of one kind as of the other.
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
    """Return one tuning set of iterations that were read.

    Args:
        iterations: at least one.
        distinct_by: what two hypotheses of a sentence must have equal for the later one to be
            left out; features are dense and sparse ones.

    Raises:
        DataError: iterations that do not go together.
    """
    merged = merge(list(iterations))
    n_read = len(merged.dense)
    if distinct_by != "nothing":
        first = first_equals(
            merged, merged.stats if distinct_by == "features and statistics" else None
        )
        kept = np.flatnonzero(first == np.arange(n_read))
        merged = merged.take(kept, np.searchsorted(kept, merged.offsets))
    return ExtractorSet(_tuning_set(merged), merged.metric, merged.names, n_read)


def read_iteration(feature_file: StrPath, score_file: StrPath, *, threads: int = 2) -> Iteration:
    """Read the two files of an iteration.

    Raises:
        FormatError: a file that is no such file, or two that are not of one run.
    """
    features = read_features(feature_file, threads=threads)
    scores = read_scores(score_file, threads=threads)
    if not (
        np.array_equal(features.sentence_ids, scores.sentence_ids)
        and np.array_equal(features.offsets, scores.offsets)
    ):
        raise FormatError(
            f"its sentences and their numbers of hypotheses differ from those of {feature_file}",
            path=score_file,
            remedy="Give the two files that one run of the extractor wrote",
        )
    return Iteration(features, scores, feature_file, score_file)


def merge(iterations: Sequence[Iteration]) -> Merged:
    """Return one list of hypotheses a sentence, from at least one iteration; nothing is left out.

    Raises:
        DataError: iterations that do not go together.
    """
    first = iterations[0]
    for other in iterations:
        if other.features.names != first.features.names:
            raise DataError(
                f"the features of {other.feature_file} are not those of {first.feature_file}: "
                "iterations of one configuration only can be merged"
            )
        width, width_first = other.scores.stats.shape[1], first.scores.stats.shape[1]
        if (other.scores.metric, width) != (first.scores.metric, width_first):
            raise DataError(
                f"{other.score_file} has {width} statistics of {other.scores.metric}, and "
                f"{first.score_file} has {width_first} of {first.scores.metric}: score all lists "
                "with one metric"
            )
    features = [iteration.features for iteration in iterations]
    sentences, offsets, order = _by_sentence(features)
    sparse_names, sparse = _joined_sparse(features)
    return Merged(
        metric=first.scores.metric,
        sentence_ids=sentences,
        offsets=offsets,
        names=first.features.names,
        dense=_gathered([feature.dense for feature in features], order),
        sparse_names=sparse_names,
        sparse=sparse if _are_all(order) else sparse.take(order),
        stats=_gathered(_whole([iteration.scores.stats for iteration in iterations]), order),
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


def _gathered(parts: Sequence[NDArray[Any]], order: NDArray[np.int64]) -> NDArray[Any]:
    """Return rows of all parts in that order; of one part in its own order, that part itself.

    Each part's rows go straight to their places: memory that is touched for the first time costs
    more than all else here.
    """
    if len(parts) == 1 and _are_all(order):
        return parts[0]
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    found = np.empty((len(order), parts[0].shape[1]), dtype=parts[0].dtype)
    start = 0
    for part in parts:
        found[place[start : start + len(part)]] = part
        start += len(part)
    return found


def _are_all(rows: NDArray[np.int64]) -> bool:
    """Return whether these are the rows 0, 1, 2, ..."""
    return np.array_equal(rows, np.arange(len(rows)))


def _joined_sparse(features: Sequence[FeatureData]) -> tuple[tuple[str, ...], SparseRows]:
    """Sparse features of all files, numbered by first appearance, and their values."""
    known: dict[str, int] = {}
    columns = [
        np.array([known.setdefault(n, len(known)) for n in feature.sparse_names], dtype=np.int32)
        for feature in features
    ]
    shifts = np.cumsum([0, *(len(feature.sparse_data) for feature in features)])
    indptr = [f.sparse_indptr[:-1] + shift for f, shift in zip(features, shifts, strict=False)]
    return tuple(known), SparseRows(
        np.append(np.concatenate(indptr), shifts[-1]),
        np.concatenate([own[f.sparse_indices] for own, f in zip(columns, features, strict=True)]),
        np.concatenate([feature.sparse_data for feature in features]),
    )


def _whole(parts: Sequence[NDArray[np.float32]]) -> Sequence[Statistics]:
    """Return counts as integers, as the metrics make them; float32 where any is not whole."""
    counts = []
    for part in parts:
        if not (np.abs(part) < _INT32_LIMIT).all():
            return parts
        counts.append(part.astype(np.int32))
        if not np.array_equal(counts[-1], part):
            return parts
    return counts


def first_equals(
    merged: Merged, stats: Statistics | None, *, sparse: bool = True
) -> NDArray[np.int64]:
    """The first row of its sentence that each row equals, int64 ``[n]``; mostly the row itself.

    Args:
        merged: the rows; all dense features are compared.
        stats: statistics to compare too.
        sparse: whether to compare sparse features.
    """
    # Here and not above: it brings Numba, which may be loaded while files are read.
    from mosesplug.store import dedupe

    n = len(merged.dense)
    own = np.zeros((n, 0), dtype=np.int32) if stats is None else np.ascontiguousarray(stats)
    rows = merged.sparse if sparse else SparseRows(*_no_sparse(n))
    indices, data, _ = dedupe.sort_sparse(rows.indptr, rows.indices, rows.data)
    # The store tells hypotheses apart by text and features; here, statistics stand for the text.
    width = own.itemsize * own.shape[1]
    starts = width * np.arange(n)
    compared = dedupe.Rows(
        own.view(np.uint8).reshape(-1) if width else np.zeros(0, dtype=np.uint8),
        starts,
        starts + width,
        merged.dense,
        rows.indptr,
        indices,
        data,
    )
    hashes = dedupe.hash_rows(compared, merged.dense.view(np.uint32), data.view(np.uint32))
    first, _, _ = dedupe.first_occurrences(compared, hashes, merged.offsets)
    return first


def _no_sparse(
    n: int,
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32]]:
    """CSR arrays of ``n`` empty rows."""
    return np.zeros(n + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32)


def _tuning_set(merged: Merged) -> TuningSet:
    """Return the arrays under the names of a feature space, sparse features by first appearance."""
    groups = [match[1] if (match := _COLUMN.fullmatch(name)) else name for name in merged.names]
    sparse_names, sparse = _renumbered(merged)
    return TuningSet(
        space=FeatureSpace.of_names(groups, sparse_names),
        sentence_ids=merged.sentence_ids,
        offsets=merged.offsets,
        dense=merged.dense,
        sparse=sparse if sparse_names else None,
        stats=merged.stats,
        lengths=np.zeros(len(merged.dense), dtype=np.int32),
    )


def _renumbered(merged: Merged) -> tuple[tuple[str, ...], SparseRows]:
    """Sparse features in the order in which the rows name them."""
    sparse = merged.sparse
    used, first = np.unique(sparse.indices, return_index=True)
    by_appearance = used[np.argsort(first)]
    column = np.zeros(len(merged.sparse_names), dtype=np.int32)
    column[by_appearance] = np.arange(len(used))
    names = tuple(merged.sparse_names[old] for old in by_appearance.tolist())
    return names, SparseRows(sparse.indptr, column[sparse.indices], sparse.data)
