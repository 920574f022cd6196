"""Summaries of sparse features: groups by name, and weights that score as their summaries do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.extras.optimizers.summary_mert import (
    Summaries,
    SummaryMertOptions,
    group_names,
)
from mosesplug.optimizers.batch.ranking.pro import ProOptions
from mosesplug.optimizers.problem import Problem, corpus_score
from mosesplug.optimizers.registry import algorithm
from tests.optimizers.batch.ranking.test_pro import planted_sparse

mert = algorithm("mert").optimize
pro = algorithm("pro").optimize
summary_mert = algorithm("summary-mert").optimize

FAST = SummaryMertOptions(restarts=1, polish=0)


def in_groups(seed: int) -> Problem:
    """A planted problem whose 30 sparse features are of three kinds."""
    problem, _ = planted_sparse(seed)
    names = tuple(f"{('pp', 'tt', 'pl_s')[column % 3]}_{column}" for column in range(30))
    space = replace(problem.tuning_set.space, sparse=names)
    return replace(problem, tuning_set=replace(problem.tuning_set, space=space))


def test_names_of_groups() -> None:
    names = ("WT_haus~house", "PL_s_3", "bias", "PL_t_3")
    assert group_names(names, "first") == ["WT", "PL", "bias", "PL"]
    assert group_names(names, "last") == ["WT", "PL_s", "bias", "PL_t"]
    assert group_names(names, "one") == ["sparse"] * 4
    assert group_names(names, "first", separator="~")[:2] == ["WT_haus", "PL_s_3"]
    assert group_names(names, "pattern", pattern="(WT|PL_s)_") == ["WT", "PL_s", None, None]
    assert group_names(names, "pattern", pattern="PL") == [None, "PL", None, "PL"]
    for options in ({"by": "pattern"}, {"by": "pattern", "pattern": "("}, {"by": "first"}):
        with pytest.raises(UsageError):
            group_names(names, separator="", **options)  # type: ignore[arg-type]


def test_summaries_score_like_their_weights() -> None:
    problem = in_groups(1)
    problem = replace(problem, active=np.arange(32) != 9)
    rng = np.random.default_rng(2)
    weights = rng.standard_normal(32)
    weights[[5, 31]] = 0.0
    names = group_names(problem.tuning_set.space.sparse, "last")
    groups = Summaries.of(problem, weights, [None if name == "pl_s" else name for name in names])
    assert groups.sizes() == {"pp": 9, "tt": 9}  # neither column 9 nor a weight that is 0
    with_them = groups.add_to(replace(problem, starts=(weights,)))
    assert with_them.tuning_set.space.names[2:4] == ("pp_0", "tt_0")
    own = groups.start(weights)
    np.testing.assert_array_equal(own[2:4], 1.0)
    np.testing.assert_array_equal(with_them.starts[0], own)
    np.testing.assert_array_equal(groups.expand_weights(own), weights)
    for _ in range(3):
        changed = np.where(with_them.active_mask, rng.standard_normal(34), own)
        back = groups.expand_weights(changed)
        assert corpus_score(problem, back) == corpus_score(with_them, changed)
        np.testing.assert_allclose(
            problem.tuning_set.model_scores(back),
            with_them.tuning_set.model_scores(changed),
            atol=1e-5,
        )
        assert back[9] == weights[9]


def test_no_weights_make_no_summaries() -> None:
    problem = in_groups(3)
    groups = Summaries.of(problem, np.zeros(32), ["a"] * 30)
    assert groups.names == ()
    assert groups.add_to(problem).tuning_set.dense.shape[1] == 2


def test_first_pass_then_mert() -> None:
    problem = in_groups(4)
    start = np.append(np.ones(2), np.zeros(30))
    alone = pro(problem, start, np.random.default_rng(0), ProOptions())
    found = summary_mert(problem, start, np.random.default_rng(0), FAST)
    assert found.history[0] == {"groups": {"pp": 10, "tt": 10, "pl": 10}}
    assert found.score == corpus_score(problem, found.weights)
    assert found.score >= alone.score - 1e-6
    assert np.abs(found.weights[:2]).sum() == pytest.approx(1.0)
    for kind in range(3):  # proportions within a group are those of the first pass
        ratios = found.weights[2 + kind :: 3] / alone.weights[2 + kind :: 3]
        np.testing.assert_allclose(ratios, ratios[0])


def test_the_first_pass_learns_anew_from_weights_of_an_earlier_iteration() -> None:
    """As PRO and MERT do: a run would otherwise keep the proportions of its first iteration."""
    problem = in_groups(4)
    start = np.random.default_rng(6).standard_normal(32)
    start[10:] = 0.0  # features that appeared later
    alone = pro(problem, start, np.random.default_rng(0), ProOptions())
    found = summary_mert(problem, start, np.random.default_rng(0), FAST)
    assert found.history[0] == {"groups": {"pp": 10, "tt": 10, "pl": 10}}
    for kind in range(3):
        ratios = found.weights[2 + kind :: 3] / alone.weights[2 + kind :: 3]
        np.testing.assert_allclose(ratios, ratios[0])


def test_weights_to_start_from_are_summarized() -> None:
    problem = in_groups(5)
    rng = np.random.default_rng(6)
    start = rng.standard_normal(32)
    options = replace(FAST, first="initial", group_by="pattern", pattern="pp|tt")
    found = summary_mert(problem, start, rng, options)
    assert found.score >= corpus_score(problem, start)
    scale = found.weights[4] / start[4]  # neither pp nor tt: only normalized
    np.testing.assert_allclose(found.weights[4::3], scale * start[4::3])
    np.testing.assert_allclose(found.weights[2::3] / start[2::3], found.weights[2] / start[2])


def test_inactive_sparse_weights_stay() -> None:
    problem = in_groups(7)
    start = np.random.default_rng(8).standard_normal(32)
    active = np.arange(32) % 2 == 0
    found = summary_mert(replace(problem, active=active), start, np.random.default_rng(0), FAST)
    np.testing.assert_array_equal(found.weights[~active], start[~active])


def test_without_sparse_features_it_is_mert() -> None:
    problem = in_groups(9)
    dense = replace(problem, active=np.arange(32) < 2)
    start = np.append(np.ones(2), np.zeros(30))
    found = summary_mert(dense, start, np.random.default_rng(0), FAST)
    truth = mert(dense, start, np.random.default_rng(0), FAST)
    np.testing.assert_array_equal(found.weights, truth.weights)


def test_invalid_first_passes_are_rejected() -> None:
    problem, start, rng = in_groups(10), np.append(np.ones(2), np.zeros(30)), np.random.default_rng
    with pytest.raises(UsageError, match="unknown algorithm 'none'"):
        summary_mert(problem, start, rng(0), replace(FAST, first="none"))
    with pytest.raises(OptimizerError, match=r"first=initial .* all of them are 0"):
        summary_mert(problem, start, rng(0), replace(FAST, first="initial"))


def test_rejects_a_first_pass_that_finds_no_sparse_weights() -> None:
    problem, start = in_groups(11), np.append(np.ones(2), np.zeros(30))
    made = problem.tuning_set
    assert made.sparse is not None
    silenced = replace(made.sparse, data=np.zeros_like(made.sparse.data))
    mute = replace(problem, tuning_set=replace(made, sparse=silenced))
    with pytest.raises(OptimizerError, match="pro found no sparse weights"):
        summary_mert(mute, start, np.random.default_rng(0), FAST)
