"""Conformance tests of every registered optimizer."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.problem import Problem, corpus_score, no_progress
from mosesplug.optimizers.registry import Algorithm, algorithm, algorithms
from mosesplug.tuning_set import SparseRows
from tests.optimizers.problems import planted_for, tuning_set

pytestmark = pytest.mark.parametrize("tuner", algorithms().values(), ids=lambda each: each.name)


START = np.full(5, 0.2)
"""As a decoder's weights are when tuning begins: L1-normalised, as defaults expect."""


def solve(tuner: Algorithm, problem: Problem, seed: int = 0) -> tuple[bytes, float]:
    solution = tuner.optimize(
        problem, START, np.random.default_rng(seed), tuner.options(), no_progress
    )
    assert np.isfinite(solution.weights).all()
    assert solution.weights.any()
    return solution.weights.tobytes(), solution.score


def unaligned(array: NDArray[Any]) -> NDArray[Any]:
    """A read-only copy that begins at an odd address."""
    copy = np.frombuffer(b"\0" + array.tobytes(), array.dtype, offset=1).reshape(array.shape)
    assert not copy.flags.aligned
    assert not copy.flags.writeable
    return copy


def test_recovers_planted_weights(tuner: Algorithm) -> None:
    """With the options that users get, and as many sentences as a small tuning set has."""
    # Its arrays are read-only: an optimizer that writes would fail.
    problem = planted_for(tuner, 11, n_sentences=300)
    problem = replace(problem, minima=-np.ones(5), maxima=np.ones(5))
    before = corpus_score(problem, START)
    _, score = solve(tuner, problem)
    assert score > before
    assert score > 0.95


def test_results_depend_on_the_seed_but_not_on_threads(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 12, noise=1.0)
    first = solve(tuner, problem)
    assert solve(tuner, problem) == first
    assert solve(tuner, replace(problem, threads=3)) == first


def test_unaligned_arrays(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 13, noise=1.0)
    made = problem.tuning_set
    shifted = replace(
        made,
        offsets=unaligned(made.offsets),
        dense=unaligned(made.dense),
        stats=unaligned(made.stats),
        lengths=unaligned(made.lengths),
    )
    assert solve(tuner, replace(problem, tuning_set=shifted)) == solve(tuner, problem)


def test_values_that_are_not_finite_are_rejected(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 14)
    dense = problem.tuning_set.dense.copy()
    dense[3, 2] = np.nan
    bad = replace(problem, tuning_set=replace(problem.tuning_set, dense=dense))
    with pytest.raises(OptimizerError, match="F2_0"):
        solve(tuner, bad)
    start = np.array([1.0, np.inf, 1.0, 1.0, 1.0])
    with pytest.raises(OptimizerError, match="F1_0"):
        tuner.optimize(problem, start, np.random.default_rng(0), tuner.options(), no_progress)


def test_problems_without_a_solution_are_rejected(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 15)
    rng, options = np.random.default_rng(0), tuner.options()
    with pytest.raises(OptimizerError, match="5 features"):
        tuner.optimize(problem, np.ones(4), rng, options, no_progress)
    fixed = replace(problem, active=np.zeros(5, dtype=np.bool_))
    with pytest.raises(OptimizerError, match="nothing to tune"):
        tuner.optimize(fixed, np.ones(5), rng, options, no_progress)
    empty = tuning_set([0, 0], np.zeros((0, 5)), np.zeros(0))
    with pytest.raises(OptimizerError, match="no hypotheses"):
        tuner.optimize(replace(problem, tuning_set=empty), np.ones(5), rng, options, no_progress)


def test_algorithms_declare_whether_they_tune_sparse_features(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 16)
    made = problem.tuning_set
    rows = SparseRows(
        np.arange(0, 2 * made.n_hyps + 1, 2),
        np.tile(np.array([0, 1], dtype=np.int32), made.n_hyps),
        made.dense[:, 3:].ravel(),
    )
    sizes = np.diff(made.offsets).tolist()
    won = np.zeros(made.n_hyps)
    sparse = tuning_set(sizes, made.dense[:, :3], won, rows, ("sparse_a", "sparse_b"))
    problem = replace(problem, tuning_set=replace(sparse, stats=made.stats))
    start = np.array([0.2, 0.2, 0.2, 0.0, 0.0])
    found = tuner.optimize(problem, start, np.random.default_rng(0), tuner.options(), no_progress)
    assert found.weights[3:].any() == tuner.tunes_sparse


def test_settings_are_documented(tuner: Algorithm) -> None:
    assert is_dataclass(tuner.options)
    assert tuner.family
    assert 0 < len(tuner.summary) <= 60
    assert tuner.source
    for setting in fields(tuner.options):
        assert setting.metadata["help"], setting.name
        assert setting.metadata["source"], setting.name


def test_is_found_by_name(tuner: Algorithm) -> None:
    assert algorithm(tuner.name).options is tuner.options
    with pytest.raises(UsageError, match=re.escape(tuner.name)):
        algorithm("no-such-thing")
