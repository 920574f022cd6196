"""Compute features and statistics of n-best lists as Moses' ``extractor`` does.

Files of earlier iterations can precede the n-best lists. Two hypotheses of a sentence are
duplicates if their dense features and statistics are equal. As in Moses, the last hypothesis of a
sentence replaces each removed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.extractor.data import (
    FeatureData,
    ScoreData,
    SparseColumns,
    write_features,
    write_scores,
)
from formats.nbest.block import NBestList
from formats.text import StrPath
from mosesplug.errors import DataError
from mosesplug.kernels import lean_kernel
from mosesplug.metrics.hypotheses import HypothesisRanges
from mosesplug.moses_tools.distinct_lists import DistinctBlock
from mosesplug.moses_tools.extractor_files import (
    ExtractorSet,
    Iteration,
    find_first_equal_rows,
    merge,
    order_by_sentence,
)
from mosesplug.moses_tools.scoring import Scorer


def extract(
    earlier: Sequence[Iteration],
    blocks: Iterable[DistinctBlock],
    scorer: Scorer | None,
    *,
    with_duplicates: bool = False,
    threads: int = 2,
) -> ExtractorSet:
    """Merge lists with earlier iterations.

    Args:
        blocks: the n-best lists, one after the other; at least one if there are no files. Each
            distinct line is scored once.
        scorer: computes the statistics; None if there are no lists.

    Raises:
        DataError: the iterations do not match each other.
        FormatError, DecoderError: as ``blocks`` raises them, and ``score_n_best_list``.
    """
    iterations = list(earlier)
    n_before = sum(len(iteration.features.dense) for iteration in iterations)
    parts = [np.arange(n_before)]
    for block in blocks:
        parts.append(n_before + block.rows)
        if block.new is not None and scorer is not None:
            iterations.append(score_n_best_list(block.new, scorer, threads=threads))
    rows, merged = np.concatenate(parts), merge(iterations)
    kept, offsets = find_occurrences(merged, iterations, rows)
    if not with_duplicates:
        kept, offsets = remove_duplicates(merged, kept, offsets)
    return replace(merged.take(kept, offsets), hypotheses=len(rows))


def score_n_best_list(block: NBestList, scorer: Scorer, *, threads: int = 2) -> Iteration:
    """Score an n-best list and return it as an iteration.

    Raises:
        FormatError: a sentence has no reference.
        DataError, DecoderError: see ``Scorer.statistics``.
    """
    block.require_references(scorer.n_sentences)
    statistics = scorer.statistics(HypothesisRanges(*block.ranges), threads=threads)
    offsets = block.list_offsets
    sentences = block.sentence_ids[offsets[:-1]]
    names = tuple(f"{name}_{i}" for name, width in block.groups for i in range(width))
    features = FeatureData(
        sentences,
        offsets,
        names,
        block.dense,
        block.sparse_names,
        block.sparse_indptr,
        block.sparse_indices,
        block.sparse_data,
    )
    stats = statistics.astype(np.float32)
    scores = ScoreData(scorer.metric.name, sentences, offsets, stats)
    return Iteration(features, scores, block.path, block.path)


def find_occurrences(
    merged: ExtractorSet, iterations: Sequence[Iteration], rows: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the hypotheses of all lists by sentence, in the order of Moses.

    Args:
        rows: int64 ``[n]``; the row of each hypothesis in the iterations, one after the other.

    Returns:
        int64 ``[n]``, the row of each hypothesis in merged lists; int64 ``[n_sentences + 1]``,
        where the hypotheses of each sentence start.
    """
    _, _, order = order_by_sentence([iteration.features for iteration in iterations])
    places = np.empty_like(order)
    places[order] = np.arange(len(order))
    lists = merged.tuning_set
    sentences = np.repeat(np.arange(lists.n_sentences), np.diff(lists.offsets))
    of_hypothesis = places[rows]
    counts = np.bincount(sentences[of_hypothesis], minlength=lists.n_sentences)
    by_sentence = np.argsort(sentences[of_hypothesis], kind="stable")
    return of_hypothesis[by_sentence], np.cumsum([0, *counts.tolist()])


def remove_duplicates(
    merged: ExtractorSet, rows: NDArray[np.int64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the rows that Moses' ``extractor`` keeps, in order, and offsets.

    Sparse features are not compared: if rows differ only in these, the first is kept. The last row
    of the sentence replaces each duplicate, and is checked next.
    """
    lists = merged.tuning_set
    equal = find_first_equal_rows(lists, lists.stats, sparse=False)[rows]
    order = np.arange(len(equal))
    counts = np.diff(offsets)
    select_rows(equal, offsets, np.zeros(lists.n_hyps, dtype=np.bool_), order, counts)
    kept_offsets = np.cumsum([0, *counts.tolist()])
    kept = np.arange(kept_offsets[-1]) - np.repeat(kept_offsets[:-1] - offsets[:-1], counts)
    return rows[order[kept]], kept_offsets


@lean_kernel
def select_rows(
    first: NDArray[np.int64],
    offsets: NDArray[np.int64],
    seen: NDArray[np.bool_],
    order: NDArray[np.int64],
    counts: NDArray[np.int64],
) -> None:
    """Put the kept rows of each sentence first, in Moses' order.

    Args:
        first: int64 ``[n]``; equal numbers for equal rows.
        offsets: int64 ``[n_sentences + 1]``; rows of each sentence.
        seen: bool, False for each of these numbers; working space.
        order: in and out, int64 ``[n]``; 0, 1, 2, ... at first. The kept rows of sentence ``i``
            are the first ``counts[i]`` from ``offsets[i]`` on.
        counts: output, int64 ``[n_sentences]``.
    """
    for sentence in range(len(counts)):
        at = offsets[sentence]
        end = offsets[sentence + 1]
        while at < end:
            equal = first[order[at]]
            if seen[equal]:
                end -= 1
                order[at] = order[end]
            else:
                seen[equal] = True
                at += 1
        counts[sentence] = at - offsets[sentence]


def write_extracted(
    merged: ExtractorSet, feature_file: StrPath, score_file: StrPath, *, binary: bool = False
) -> None:
    """Write the two files of an iteration.

    Raises:
        DataError: there are sparse features, which binary files cannot hold.
        OSError: a file cannot be written.
    """
    lists, sparse = merged.tuning_set, None
    if lists.sparse is not None and len(lists.sparse.data):
        rows, names = lists.sparse, lists.space.sparse
        if binary:
            raise DataError(
                f"binary files cannot hold sparse features such as {names[0]}: write text"
            )
        sparse = SparseColumns(names, rows.indptr, rows.indices, rows.data)
    ids, offsets = lists.sentence_ids, lists.offsets
    write_features(feature_file, merged.names, ids, offsets, lists.dense, sparse, binary=binary)
    write_scores(score_file, merged.metric, ids, offsets, lists.stats, binary=binary)
