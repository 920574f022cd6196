"""Tuning problems small enough to know the answer to."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.metrics import metric
from mosesplug.metrics.protocol import UnsmoothedMetric
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.registry import Algorithm
from mosesplug.tuning_set import SparseRows, TuningSet


@dataclass(frozen=True)
class Accuracy(UnsmoothedMetric):
    """A metric of two statistics: points won, points possible."""

    name: str = "accuracy"
    n_statistics: int = 2
    statistics_names: tuple[str, ...] = ("won", "possible")

    def signature(self) -> str:
        return "accuracy"

    def prepare(self, references: Any) -> Any:
        raise AssertionError("optimizers see statistics, not text")

    def statistics(self, *arguments: Any, **keywords: Any) -> Any:
        raise AssertionError("optimizers see statistics, not text")

    def score(self, totals: Any) -> NDArray[np.float64]:
        totals = np.asarray(totals, dtype=np.float64)
        return np.asarray(totals[..., 0] / np.maximum(totals[..., 1], 1.0))


def tuning_set(
    sizes: list[int],
    dense: NDArray[Any],
    won: NDArray[Any],
    sparse: SparseRows | None = None,
    sparse_names: tuple[str, ...] = (),
    possible: int = 10,
) -> TuningSet:
    """Return hypotheses in sentences of the given sizes; every array is read-only.

    Each hypothesis has ``possible`` words, and a point for each of ``won`` of them.
    """
    dense = np.ascontiguousarray(dense, dtype=np.float32)
    stats = np.stack([np.asarray(won), np.full(len(won), possible)], axis=1).astype(np.int32)
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    arrays = [dense, stats, offsets]
    if sparse is not None:
        arrays += [sparse.indptr, sparse.indices, sparse.data]
    for array in arrays:
        array.flags.writeable = False
    names = [f"F{column}" for column in range(dense.shape[1])]
    return TuningSet(
        FeatureSpace.of_names(names, sparse_names),
        np.arange(len(sizes), dtype=np.int64),
        offsets,
        dense,
        sparse,
        stats,
        np.full(len(won), possible, dtype=np.int32),
    )


def planted(
    seed: int, n_sentences: int = 60, n_hyps: int = 15, n_features: int = 5, noise: float = 0.0
) -> tuple[Problem, NDArray[np.float64]]:
    """Return a problem that hidden weights solve, and these weights.

    Without ``noise``, they give the best hypothesis of each sentence the highest model score, and
    their score is 1.
    """
    rng = np.random.default_rng(seed)
    hidden = rng.uniform(-1.0, 1.0, n_features)
    dense = rng.standard_normal((n_sentences * n_hyps, n_features)).astype(np.float32)
    quality = dense.astype(np.float64) @ hidden + noise * rng.standard_normal(len(dense))
    ranks = quality.reshape(n_sentences, n_hyps).argsort(axis=1).argsort(axis=1).ravel()
    won = np.round(10 * ranks / (n_hyps - 1)).astype(np.int64)
    made = tuning_set([n_hyps] * n_sentences, dense, won)
    return Problem(made, Accuracy()), hidden


def planted_bleu(
    seed: int, n_sentences: int = 60, n_hyps: int = 15, n_features: int = 5, noise: float = 0.0
) -> tuple[Problem, NDArray[np.float64]]:
    """Return ``planted`` with statistics of BLEU instead of points won.

    Translations are as long as their references, and of n-grams of any length the same share
    matches: the share of points.
    """
    problem, hidden = planted(seed, n_sentences, n_hyps, n_features, noise)
    return with_bleu(problem), hidden


def with_bleu(problem: Problem) -> Problem:
    """Statistics of BLEU in the place of points; see ``planted_bleu``."""
    made = problem.tuning_set
    shares = made.stats[:, :1] / made.stats[:, 1:]
    counts = np.broadcast_to(20 - np.arange(4), (made.n_hyps, 4))
    stats = np.full((made.n_hyps, 9), 20, dtype=np.int32)
    stats[:, 0:8:2], stats[:, 1:8:2] = np.round(shares * counts), counts
    stats.flags.writeable = False
    return replace(problem, tuning_set=replace(made, stats=stats), metric=metric("BLEU"))


def planted_for(tuner: Algorithm, seed: int, **sizes: Any) -> Problem:
    """A problem that hidden weights solve, with statistics that the optimizer can use."""
    return (planted_bleu if tuner.needs_bleu else planted)(seed, **sizes)[0]
