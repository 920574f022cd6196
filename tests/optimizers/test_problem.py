"""What no search can start from, and the score of decoding."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import OptimizerError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.problem import Problem, check_weights, corpus_score, normalize
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import Accuracy, planted, tuning_set


def test_weights_are_copied() -> None:
    problem, hidden = planted(1)
    weights = check_weights(problem, hidden)
    np.testing.assert_array_equal(weights, hidden)
    assert not np.shares_memory(weights, hidden)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e101, -1e300])
def test_rejects_starts_that_lead_nowhere(value: float) -> None:
    problem, hidden = planted(1)
    bad = hidden.copy()
    bad[2] = value
    with pytest.raises(OptimizerError, match="F2_0"):
        check_weights(problem, bad)
    with pytest.raises(OptimizerError, match="F2_0"):
        check_weights(replace(problem, starts=(hidden, bad)), hidden)
    with pytest.raises(OptimizerError, match="4 starting weights for 5 features"):
        check_weights(replace(problem, starts=(hidden[:4],)), hidden)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"minima": np.full(5, 2.0)}, "F0_0 cannot be drawn from 2.0 to 1.0"),
        ({"maxima": np.full(5, np.inf)}, "F0_0"),
        ({"minima": np.array([0.0, 0.0, 0.0, 0.0, np.nan])}, "F4_0"),
        ({"maxima": np.ones(4)}, "5 and 4 bounds"),
    ],
)
def test_invalid_boxes_are_rejected(bounds: dict[str, Any], message: str) -> None:
    problem, hidden = planted(1)
    with pytest.raises(OptimizerError, match=message):
        check_weights(replace(problem, **bounds), hidden)


def test_sparse_values_that_are_not_finite_are_rejected() -> None:
    sparse = SparseRows(
        np.array([0, 1], dtype=np.int64),
        np.array([0], dtype=np.int32),
        np.array([np.nan], dtype=np.float32),
    )
    made = tuning_set([1], np.ones((1, 1)), np.ones(1), sparse, ("A_x",))
    with pytest.raises(OptimizerError, match="sparse feature"):
        check_weights(Problem(made, Accuracy()), np.ones(2))


def test_without_an_active_feature_the_reason_is_named() -> None:
    sparse = SparseRows(np.zeros(2, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32))
    empty = tuning_set([1], np.ones((1, 0)), np.ones(1))
    only_sparse = tuning_set([1], np.ones((1, 0)), np.ones(1), sparse, ("A_x",))
    cases = (
        (empty, None, "nothing to tune: the lists have no features"),
        (only_sparse, None, "nothing to tune: all features are sparse"),
        (only_sparse, np.zeros(1, dtype=np.bool_), "nothing to tune: no feature is active"),
    )
    for lists, active, message in cases:
        problem = Problem(lists, Accuracy(), active=active)
        with pytest.raises(OptimizerError, match=message):
            check_weights(problem, np.ones(len(lists.space)))


def test_score_sums_the_statistics_of_the_first_best() -> None:
    dense = np.array([[1.0], [3.0], [3.0], [-1.0], [0.0]])
    problem = Problem(tuning_set([3, 0, 2], dense, np.array([1, 2, 4, 8, 6])), Accuracy())
    assert corpus_score(problem, np.array([1.0])) == (2 + 6) / 20
    assert corpus_score(problem, np.array([-1.0])) == (1 + 8) / 20
    assert corpus_score(problem, np.zeros(1)) == (1 + 8) / 20


def test_float_statistics_are_summed_in_double_precision() -> None:
    n_hyps = 100_000
    made = tuning_set([1] * n_hyps, np.ones((n_hyps, 1)), np.ones(n_hyps))
    stats = np.stack([np.full(n_hyps, 0.1), np.ones(n_hyps)], axis=1).astype(np.float32)
    stats[0] = 1e8
    problem = Problem(replace(made, stats=stats), Accuracy())
    totals = stats.astype(np.float64).sum(axis=0)
    assert corpus_score(problem, np.ones(1)) == pytest.approx(totals[0] / totals[1], rel=1e-12)


def test_weights_of_the_decoder_are_neither_tuned_nor_scaled() -> None:
    made, _ = planted(1)
    problem = replace(made, active=np.ones(5, np.bool_))
    weights = np.array([2.0, -1.0, 1.0, 3.0, 1.0])
    np.testing.assert_array_equal(normalize(problem, weights), weights / 8.0)
    names = [f"F{column}" for column in range(4)]
    space = FeatureSpace.of_names(names, ["own"])
    tail = replace(made.tuning_set, space=space, dense=made.tuning_set.dense[:, :4])
    problem = Problem(tail, made.metric, is_fixed=np.arange(5) == 4)
    np.testing.assert_array_equal(problem.active_mask, [True] * 4 + [False])
    np.testing.assert_array_equal(
        normalize(problem, weights), np.append(weights[:4] / 7.0, weights[4])
    )
    kept = replace(problem, keeps_scale=True)
    np.testing.assert_array_equal(normalize(kept, weights), weights)
    everything = replace(problem, active=np.ones(5, np.bool_))
    np.testing.assert_array_equal(everything.active_mask, [True] * 4 + [False])
