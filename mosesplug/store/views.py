"""Results and reports of a store, as plain objects."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.tuning_set import SparseRows, TuningSet


@dataclass(frozen=True)
class IngestReport:
    """The report of adding one iteration, or one part of it.

    Attributes:
        iteration: its number.
        sentences: number of added sentences with a list.
        hypotheses: number of positions of their lists.
        new_hypotheses: number of hypotheses that no earlier iteration had for their sentence.
        first_best_score: corpus score of the decoder's first hypotheses in the whole iteration, or
            in all parts so far.
    """

    iteration: int
    sentences: int
    hypotheses: int
    new_hypotheses: int
    first_best_score: float


@dataclass(frozen=True)
class GraphReport:
    """The report of adding the search graphs of one iteration.

    Attributes:
        iteration: its number.
        sentences: number of sentences with a graph.
        nodes: number of nodes of all graphs.
        edges: number of edges of all graphs.
        stored_bytes: their size in the store.
    """

    iteration: int
    sentences: int
    nodes: int
    edges: int
    stored_bytes: int


@dataclass(frozen=True)
class OpenIteration:
    """An unfinished iteration, which is stored in parts.

    Attributes:
        iteration: its number, the one after the last finished.
        sentences: int64, ascending; its sentences with a list.
        progress: the progress stored with its last part.
    """

    iteration: int
    sentences: NDArray[np.int64]
    progress: Mapping[str, Any]


@dataclass(frozen=True)
class IterationLists:
    """All lists of one iteration in the decoder's order, with repeated hypotheses.

    Attributes:
        tuning_set: the lists in the decoder's order: the rank of a row is its distance from its
            sentence's offset.
        scores: float64 ``[n_hyps]``; the decoder's model scores, NaN if the list had none.
        home_iterations: int32 ``[n_hyps]``; the iteration that first had the hypothesis.
        home_rows: int32 ``[n_hyps]``; its row among that iteration's new ones of the sentence.
    """

    tuning_set: TuningSet
    scores: NDArray[np.float64]
    home_iterations: NDArray[np.int32]
    home_rows: NDArray[np.int32]

    @property
    def ranks(self) -> NDArray[np.int64]:
        """Position of each row in its sentence's list, from 0; int64 ``[n_hyps]``."""
        offsets = self.tuning_set.offsets
        return np.arange(offsets[-1]) - np.repeat(offsets[:-1], np.diff(offsets))


@dataclass(frozen=True)
class IterationList:
    """One sentence's list of one iteration, in the decoder's order.

    Attributes:
        sentence: the sentence id.
        texts: the hypotheses, byte for byte.
        dense: float32 ``[n, n_dense]``.
        sparse: sparse features, or None if the space has none.
        stats: the metric's statistics ``[n, n_stats]``.
        lengths: int32 ``[n]``; tokens.
        scores: float64 ``[n]``; the decoder's model scores, NaN if the list had none.
        home_iterations: int32 ``[n]``; the iteration that first had the hypothesis.
        home_rows: int32 ``[n]``; its row among that iteration's new ones of the sentence.
        extras: text after the score on each line (alignments, for example), byte for byte.
    """

    sentence: int
    texts: tuple[bytes, ...]
    dense: NDArray[np.float32]
    sparse: SparseRows | None
    stats: NDArray[Any]
    lengths: NDArray[np.int32]
    scores: NDArray[np.float64]
    home_iterations: NDArray[np.int32]
    home_rows: NDArray[np.int32]
    extras: tuple[bytes, ...]
