"""MERT along gradients of xBLEU, dense and sparse."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import UsageError
from mosesplug.extras.optimizers.xbleu_mert import XbleuMertOptions
from mosesplug.optimizers.line_search.space import Regularizer
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import algorithm
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import planted, planted_bleu, tuning_set, with_bleu

xbleu_mert = algorithm("xbleu-mert").optimize

ONE = XbleuMertOptions(restarts=0)


def sparse_problem() -> Problem:
    """One dense feature, which is worth little, and 30 sparse ones, of which 3 are worth much."""
    rng = np.random.default_rng(51)
    n_sentences, n_hyps = 30, 8
    n = n_sentences * n_hyps
    has = rng.random((n, 30)) < 0.15
    hidden = np.zeros(30)
    hidden[[4, 9, 25]] = [2.0, -2.0, 1.5]
    dense = rng.standard_normal((n, 1))
    quality = (dense[:, 0] + has @ hidden).reshape(n_sentences, n_hyps)
    won = np.round(10 * quality.argsort(axis=1).argsort(axis=1).ravel() / (n_hyps - 1))
    indptr = np.concatenate([[0], np.cumsum(has.sum(axis=1))]).astype(np.int64)
    rows = SparseRows(
        indptr, np.nonzero(has)[1].astype(np.int32), np.ones(int(has.sum()), dtype=np.float32)
    )
    names = tuple(f"S_{number}" for number in range(30))
    made = tuning_set([n_hyps] * n_sentences, dense, won, rows, names)
    return with_bleu(Problem(made, planted(1, 2)[0].metric))


def test_gradients_lead_up_without_axes_and_restarts() -> None:
    problem, hidden = planted_bleu(53, n_sentences=40)
    only = replace(ONE, axes=False)
    solution = xbleu_mert(problem, -hidden, np.random.default_rng(1), only)
    assert solution.score > 0.9 > corpus_score(problem, -hidden)
    assert np.abs(solution.weights).sum() == pytest.approx(1.0)
    (climb,) = solution.history
    assert climb["score"] == solution.score
    assert climb["penalty"] == 0.0


def test_sparse_features_are_learned_and_l0_leaves_few() -> None:
    problem = sparse_problem()
    start = np.zeros(31)
    start[0] = 1.0
    everything = xbleu_mert(problem, start, np.random.default_rng(1), ONE)
    assert everything.score > corpus_score(problem, start) + 0.1
    assert np.count_nonzero(everything.weights) > 20
    few = xbleu_mert(problem, start, np.random.default_rng(1), replace(ONE, l0=0.01))
    kept = np.flatnonzero(few.weights).tolist()
    assert {0, 5, 10, 26} <= set(kept)
    assert len(kept) < 12
    assert few.history[0]["active"] == len(kept)
    assert few.history[0]["penalty"] == pytest.approx(0.01 * len(kept))
    dense = replace(problem, active=np.arange(31) == 0)
    assert np.flatnonzero(xbleu_mert(dense, start, np.random.default_rng(1), ONE).weights) == [0]


def test_l2_keeps_weights_near_the_given_ones() -> None:
    problem, hidden = planted_bleu(54, n_sentences=40)
    start = hidden + 0.5 * np.array([1.0, -1.0, 1.0, -1.0, 1.0])
    sine = Regularizer(1.0, 0.0, start, np.ones(5, dtype=np.bool_)).penalty
    distances = []
    for l2 in (0.0, 0.3, 100.0):
        found = xbleu_mert(problem, start, np.random.default_rng(1), replace(ONE, l2=l2))
        distances.append(sine(found.weights))
        assert found.history[0]["penalty"] == pytest.approx(l2 * distances[-1])
        assert found.score >= corpus_score(problem, start)
    assert distances[0] > distances[1] > distances[2]
    with pytest.raises(UsageError, match="all zero"):
        xbleu_mert(problem, np.zeros(5), np.random.default_rng(1), replace(ONE, l2=0.1))


def test_inactive_weights_stay() -> None:
    problem, hidden = planted_bleu(55, n_sentences=40)
    active = np.array([True, True, False, True, False])
    problem = replace(problem, active=active)
    start = np.where(active, 0.01, hidden)
    for options in (ONE, replace(ONE, l2=0.01, l0=0.001)):
        solution = xbleu_mert(problem, start, np.random.default_rng(1), options)
        np.testing.assert_array_equal(solution.weights[~active], hidden[~active])
        assert solution.score > corpus_score(problem, start)


def test_another_metric_is_rejected() -> None:
    problem, _ = planted(56, n_sentences=5)
    with pytest.raises(UsageError, match="BLEU"):
        xbleu_mert(problem, np.ones(5), np.random.default_rng(1), ONE)
