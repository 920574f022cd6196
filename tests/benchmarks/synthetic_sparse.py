"""Tuning sets with many sparse features and weights known beforehand, made up from a seed.

As in real lists, a few features are everywhere and most are rare: feature ``r`` is drawn with a
probability proportional to ``1 / (r + 10)``. A sentence draws a pool of features, and each of its
hypotheses has some of the pool, so that hypotheses of a sentence differ in part. All weights are
drawn from a normal distribution, those of rare features too: they are the noise that a learner must
see through. What a hypothesis is worth is its score under those weights, in 1000 steps between the
worst and the best of its sentence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows, TuningSet

POSSIBLE = 1000
DENSE = 2
WORDS = 25


@dataclass(frozen=True)
class Planted:
    """A tuning set and what made it.

    Attributes:
        tuning_set: two dense features and the sparse ones; statistics of ``Accuracy``.
        weights: float64 ``[n_features]``; the planted ones, dense first.
        seen: int64 ``[n_features]``; sentences of which some hypothesis has the feature, but not
            all: without a difference there is nothing to learn.
    """

    tuning_set: TuningSet
    weights: NDArray[np.float64]
    seen: NDArray[np.int64]


def plant(n_sentences: int, n_hyps: int, n_features: int, n_active: int, seed: int = 0) -> Planted:
    """Make a tuning set.

    Args:
        n_sentences: with a list each.
        n_hyps: hypotheses of a list.
        n_features: sparse ones.
        n_active: sparse features of a hypothesis; the pool of a sentence has up to twice as many.
        seed: of everything.
    """
    rng = np.random.default_rng(seed)
    weights = rng.standard_normal(DENSE + n_features)
    mass = np.cumsum(1.0 / (np.arange(n_features) + 10.0))
    n_rows = n_sentences * n_hyps
    indices = np.empty(n_rows * n_active, dtype=np.int32)
    dense = rng.standard_normal((n_rows, DENSE)).astype(np.float32)
    won = np.empty(n_rows, dtype=np.int32)
    seen = np.full(DENSE + n_features, n_sentences, dtype=np.int64)
    seen[DENSE:] = 0
    for sentence in range(n_sentences):
        draws = np.searchsorted(mass, rng.uniform(0.0, mass[-1], 2 * n_active))
        pool = np.unique(draws)
        if len(pool) < n_active:
            pool = _filled(pool, n_active, n_features, rng)
        places = rng.random((n_hyps, len(pool))).argpartition(n_active - 1, axis=1)[:, :n_active]
        rows = slice(sentence * n_hyps, (sentence + 1) * n_hyps)
        own = np.sort(pool[places], axis=1)
        indices[rows.start * n_active : rows.stop * n_active] = own.ravel()
        scores = weights[DENSE + own].sum(axis=1) + dense[rows] @ weights[:DENSE]
        spread = max(float(np.ptp(scores)), 1e-9)
        won[rows] = np.round(POSSIBLE * (scores - scores.min()) / spread)
        counts = np.bincount(places.ravel(), minlength=len(pool))
        seen[DENSE + pool[(counts > 0) & (counts < n_hyps)]] += 1
    sparse = SparseRows(
        np.arange(0, n_rows * n_active + 1, n_active, dtype=np.int64),
        indices,
        np.ones(len(indices), dtype=np.float32),
    )
    tuning_set = TuningSet(
        space=FeatureSpace((("F", DENSE),), tuple(f"S_{number}" for number in range(n_features))),
        sentence_ids=np.arange(n_sentences),
        offsets=np.arange(0, n_rows + 1, n_hyps, dtype=np.int64),
        dense=dense,
        sparse=sparse,
        stats=np.stack([won, np.full(n_rows, POSSIBLE, dtype=np.int32)], axis=1),
        lengths=np.full(n_rows, 20, dtype=np.int32),
    )
    return Planted(tuning_set, weights, seen)


def _filled(
    pool: NDArray[np.int64], size: int, n_features: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """The pool with further features, all equally likely, until it has the size."""
    while len(pool) < size:
        pool = np.union1d(pool, rng.integers(0, n_features, size - len(pool)))
    return pool


def write_lists(planted: Planted, directory: Path) -> tuple[Path, Path]:
    """Write the set as an n-best list and its reference, for a store to take in.

    What a hypothesis is worth is then in its text: so many words of the reference, and as many
    others as it takes to have the same length.
    """
    made = planted.tuning_set
    assert made.sparse is not None
    reference = [f"r{number}" for number in range(WORDS)]
    others = [f"x{number}" for number in range(WORDS)]
    path, references = directory / "planted.best.out", directory / "planted.ref"
    references.write_text(made.n_sentences * (" ".join(reference) + "\n"))
    sentence = np.repeat(np.arange(made.n_sentences), np.diff(made.offsets))
    with path.open("w") as stream:
        for row in range(made.n_hyps):
            right = round(WORDS * int(made.stats[row, 0]) / POSSIBLE)
            words = " ".join(reference[:right] + others[right:])
            dense = " ".join(f"{value:.9g}" for value in made.dense[row])
            entries = made.sparse.indices[made.sparse.indptr[row] : made.sparse.indptr[row + 1]]
            sparse = " ".join(f"{made.space.sparse[entry]}= 1" for entry in entries)
            stream.write(f"{sentence[row]} ||| {words} ||| F= {dense} {sparse} ||| 0\n")
    return path, references


def rank_correlation(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """Spearman's; ties have the mean of their ranks."""
    from scipy.stats import rankdata  # slow to import, and each worker imports all test files

    return float(np.corrcoef(rankdata(one), rankdata(other))[0, 1])
