"""Read the hypotheses of a run as rows, some sentences at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.results.views.run import StoredRun
from mosesplug.store.records import KbestRecord, report_damage
from mosesplug.tuning_set import SparseRows

_ROWS = 1 << 15
"""Hypotheses of a batch, about."""


@dataclass(frozen=True)
class HypothesisBatch:
    """Hypotheses of some sentences, sorted by sentence.

    Attributes:
        iterations: int64 ``[n]``; the iteration of the list.
        sentences: int64 ``[n]``; the sentence ids.
        ranks: int64 ``[n]``; the position in that list, from 1.
        model_scores: float64 ``[n]``; the decoder's scores in that list, NaN if it had none.
        dense: float32 ``[n, n_dense]``.
        sparse: the sparse features, or None if the run has none.
        stats: int32 or float32 ``[n, n_statistics]``; the metric's sufficient statistics.
    """

    iterations: NDArray[np.int64]
    sentences: NDArray[np.int64]
    ranks: NDArray[np.int64]
    texts: tuple[bytes, ...]
    model_scores: NDArray[np.float64]
    dense: NDArray[np.float32]
    sparse: SparseRows | None
    stats: NDArray[Any]


def split_sentences(run: StoredRun, sentences: Sequence[int]) -> list[Sequence[int]]:
    """Split sentence ids into parts with some ten thousand hypotheses each."""
    rows = max(1, sum(record.new_hypotheses for record in run.records))
    size = max(1, _ROWS * run.n_sentences // rows)
    return [sentences[start : start + size] for start in range(0, len(sentences), size)]


def count_hypotheses(run: StoredRun, sentences: Sequence[int], iteration: int | None) -> int:
    """Return how many hypotheses ``read_hypotheses`` returns for these sentences.

    Raises:
        DataError: there is no such iteration or sentence.
    """
    _check_sentences(run, sentences)
    records = run.records if iteration is None else [run.record(iteration)]
    if len(sentences) == run.n_sentences:
        counts = (r.new_hypotheses if iteration is None else r.hypotheses for r in records)
        return sum(counts)
    total = 0
    with run.store.snapshot() as snapshot:
        for sentence in sentences:
            for record in records:
                held = snapshot.record(record.iteration, sentence)
                if held is not None:
                    total += held.n_new if iteration is None else held.n_list
    return total


def read_hypotheses(
    run: StoredRun, sentences: Sequence[int], iteration: int | None
) -> HypothesisBatch:
    """Return the hypotheses of some sentences.

    Args:
        sentences: the sentence ids, in the order of the result.
        iteration: the iteration, whose lists are returned as the decoder gave them, repeated
            hypotheses included. None returns each distinct hypothesis once, in the order of first
            appearance, with the iteration, rank and model score of the list that had it first.

    Raises:
        DataError: there is no such iteration or sentence.
        StoreError: the store cannot be read.
    """
    _check_sentences(run, sentences)
    if iteration is None:
        return _read_distinct(run, sentences)
    run.record(iteration)
    lists = [run.store.iteration_list(iteration, sentence) for sentence in sentences]
    counts = [len(part.texts) for part in lists]
    n_sparse = run.space.n_sparse
    return HypothesisBatch(
        iterations=np.full(sum(counts), iteration, dtype=np.int64),
        sentences=np.repeat(np.asarray(sentences, dtype=np.int64), counts),
        ranks=np.concatenate([np.arange(1, count + 1) for count in counts]),
        texts=tuple(text for part in lists for text in part.texts),
        model_scores=np.concatenate([part.scores for part in lists]),
        dense=np.concatenate([part.dense for part in lists]),
        sparse=SparseRows.concatenate([part.sparse for part in lists if part.sparse])
        if n_sparse
        else None,
        stats=np.concatenate([part.stats for part in lists]),
    )


def _read_distinct(run: StoredRun, sentences: Sequence[int]) -> HypothesisBatch:
    numbers = [record.iteration for record in run.records]
    rows = run.store.batch(np.asarray(sentences, dtype=np.int64), numbers)
    iterations: list[NDArray[np.int64]] = []
    ranks: list[NDArray[np.int64]] = []
    scores: list[NDArray[np.float64]] = []
    texts: list[bytes] = []
    with run.store.snapshot() as snapshot:
        for sentence in sentences:
            for number in numbers:
                record = snapshot.record(number, sentence)
                if record is None:
                    continue
                with report_damage(number, sentence):
                    positions = _find_positions(record, number)
                    texts += record.hypotheses()
                    scores.append(
                        record.scores[positions]
                        if len(record.scores)
                        else np.full(record.n_new, np.nan)
                    )
                iterations.append(np.full(record.n_new, number, dtype=np.int64))
                ranks.append(positions + 1)
    return HypothesisBatch(
        iterations=_join(iterations, np.int64),
        sentences=np.repeat(rows.sentence_ids, np.diff(rows.offsets)),
        ranks=_join(ranks, np.int64),
        texts=tuple(texts),
        model_scores=_join(scores, np.float64),
        dense=rows.dense,
        sparse=rows.sparse,
        stats=rows.stats,
    )


def _find_positions(record: KbestRecord, iteration: int) -> NDArray[np.int64]:
    """Return the first position in its list of each hypothesis of a record, int64."""
    own = np.flatnonzero(record.home_iterations == iteration)
    positions = np.full(record.n_new, -1, dtype=np.int64)
    # The last assignment wins, so the first position has to be the last one.
    positions[record.home_rows[own[::-1]]] = own[::-1]
    if (positions < 0).any():
        raise ValueError("its list lacks a hypothesis that it holds")
    return positions


def _join(arrays: list[NDArray[Any]], dtype: Any) -> NDArray[Any]:
    return np.concatenate(arrays) if arrays else np.zeros(0, dtype)


def _check_sentences(run: StoredRun, sentences: Sequence[int]) -> None:
    for sentence in sentences:
        if not 0 <= sentence < run.n_sentences:
            raise DataError(
                f"there is no sentence {sentence}: the input has {run.n_sentences} sentences"
            )
