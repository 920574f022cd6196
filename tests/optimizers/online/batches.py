"""Small batches of random hypotheses with dense and sparse features, for learners to learn from."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.online.learner import Step
from mosesplug.tuning_set import Batch, SparseRows
from tests.optimizers.problems import Accuracy, tuning_set

N_DENSE = 3


def random_batch(seed: int, sizes: list[int], n_sparse: int = 6) -> Batch:
    """Lists of the given sizes; a point a word, 0 to 10; every array is read-only."""
    rng = np.random.default_rng(seed)
    n_hyps = sum(sizes)
    dense = rng.standard_normal((n_hyps, N_DENSE))
    sparse = None
    if n_sparse:
        has = rng.random((n_hyps, n_sparse)) < 0.4
        indptr = np.append(0, np.cumsum(has.sum(axis=1))).astype(np.int64)
        indices = np.nonzero(has)[1].astype(np.int32)
        values = rng.choice([-1.0, 0.5, 1.0, 2.0], len(indices)).astype(np.float32)
        sparse = SparseRows(indptr, indices, values)
    names = tuple(f"S_{column}" for column in range(n_sparse))
    return tuning_set(sizes, dense, rng.integers(0, 11, n_hyps), sparse, names)


def full_rows(batch: Batch) -> NDArray[np.float64]:
    """All features of all hypotheses, float64 ``[n_hyps, n_features]``."""
    rows = np.zeros((batch.n_hyps, len(batch.space)))
    rows[:, :N_DENSE] = batch.dense
    if batch.sparse is not None:
        owners = np.repeat(np.arange(batch.n_hyps), np.diff(batch.sparse.indptr))
        rows[owners, N_DENSE + batch.sparse.indices] = batch.sparse.data
    return rows


def step_over(
    n_features: int, number: int = 1, per_epoch: int = 4, active: NDArray[np.bool_] | None = None
) -> Step:
    """Where update ``number`` of a run over that many features stands."""
    return Step(
        number=number,
        epoch=1 + (number - 1) // per_epoch,
        per_epoch=per_epoch,
        metric=Accuracy(),
        active=np.ones(n_features, dtype=np.bool_) if active is None else active,
        rng=np.random.default_rng(number),
    )
