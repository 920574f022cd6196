"""Lists small enough to go through hypothesis by hypothesis."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows, TuningSet

Floats = NDArray[np.float64]


def bleu_lists(
    seed: int, sizes: tuple[int, ...] = (7, 0, 1, 12, 5, 9), n_dense: int = 3, n_sparse: int = 5
) -> TuningSet:
    """Random features and statistics of BLEU; one sentence has no hypothesis and one has one."""
    rng = np.random.default_rng(seed)
    n_hyps = sum(sizes)
    counts = rng.integers(8, 15, n_hyps)[:, None] - np.arange(4)
    matches = np.sort(rng.integers(1, counts + 1), axis=1)[:, ::-1]
    stats = np.empty((n_hyps, 9), dtype=np.int32)
    stats[:, 0:8:2], stats[:, 1:8:2] = np.minimum(matches, counts), counts
    stats[:, 8] = counts[:, 0] + rng.integers(-2, 3, n_hyps)
    sparse = None
    if n_sparse:
        held = rng.random((n_hyps, n_sparse)) < 0.4
        sparse = SparseRows(
            np.concatenate([[0], np.cumsum(held.sum(axis=1))]).astype(np.int64),
            np.nonzero(held)[1].astype(np.int32),
            rng.standard_normal(int(held.sum())).astype(np.float32),
        )
    return TuningSet(
        FeatureSpace.of_names(
            [f"F{column}" for column in range(n_dense)],
            [f"W_{column}" for column in range(n_sparse)],
        ),
        np.arange(len(sizes), dtype=np.int64),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        rng.standard_normal((n_hyps, n_dense)).astype(np.float32),
        sparse,
        stats,
        counts[:, 0].astype(np.int32),
    )


def features(lists: TuningSet) -> Floats:
    """All features, float64 ``[n_hyps, n_features]``."""
    made = np.zeros((lists.n_hyps, len(lists.space)))
    made[:, : lists.space.n_dense] = lists.dense
    if lists.sparse is not None:
        rows = np.repeat(np.arange(lists.n_hyps), np.diff(lists.sparse.indptr))
        made[rows, lists.space.n_dense + lists.sparse.indices] = lists.sparse.data
    return made


def probabilities(lists: TuningSet, weights: Floats) -> list[Floats]:
    """Of the hypotheses of each sentence that has any, from the definition."""
    scores = np.exp(features(lists) @ weights)
    parts = [scores[a:b] for a, b in zip(lists.offsets[:-1], lists.offsets[1:], strict=True)]
    return [part / part.sum() for part in parts if len(part)]
