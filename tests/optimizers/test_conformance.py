"""What every registered optimizer must do, whatever its method."""

from __future__ import annotations

import re
from dataclasses import fields, is_dataclass, replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.problem import Problem, corpus_score, silent
from mosesplug.optimizers.registry import Algorithm, algorithm, algorithms
from tests.optimizers.problems import planted, tuning_set

pytestmark = pytest.mark.parametrize("tuner", algorithms().values(), ids=lambda each: each.name)


RATES = {
    "adagrad": {"rate": 0.5},
    "perceptron": {"rate": 1.0},
    "rda": {"rate": 2.0},
    "arow": {"slack": 1.0},
}
"""Sizes of steps where the defaults are for many more updates than there are here."""


def options_of(tuner: Algorithm) -> Any:
    """Default options; mini-batches are small where there are any, as there are few sentences."""
    options = tuner.options()
    if tuner.name in RATES:
        options = replace(options, **RATES[tuner.name])
    return replace(options, batch=4) if hasattr(options, "batch") else options


def solve(tuner: Algorithm, problem: Problem, seed: int = 0) -> tuple[bytes, float]:
    solution = tuner.optimize(
        problem, np.ones(5), np.random.default_rng(seed), options_of(tuner), silent
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
    problem, _ = planted(11)  # its arrays are read-only: an optimizer that writes would fail
    problem = replace(problem, minima=-np.ones(5), maxima=np.ones(5))
    before = corpus_score(problem, np.ones(5))
    _, score = solve(tuner, problem)
    assert score > before
    assert score > 0.95


def test_same_seed_same_bytes_whatever_the_threads(tuner: Algorithm) -> None:
    problem, _ = planted(12, noise=1.0)
    first = solve(tuner, problem)
    assert solve(tuner, problem) == first
    assert solve(tuner, replace(problem, threads=3)) == first


def test_unaligned_arrays(tuner: Algorithm) -> None:
    problem, _ = planted(13, noise=1.0)
    made = problem.tuning_set
    shifted = replace(
        made,
        offsets=unaligned(made.offsets),
        dense=unaligned(made.dense),
        stats=unaligned(made.stats),
        lengths=unaligned(made.lengths),
    )
    assert solve(tuner, replace(problem, tuning_set=shifted)) == solve(tuner, problem)


def test_refuses_what_is_not_a_number(tuner: Algorithm) -> None:
    problem, _ = planted(14)
    dense = problem.tuning_set.dense.copy()
    dense[3, 2] = np.nan
    bad = replace(problem, tuning_set=replace(problem.tuning_set, dense=dense))
    with pytest.raises(OptimizerError, match="F2_0"):
        solve(tuner, bad)
    start = np.array([1.0, np.inf, 1.0, 1.0, 1.0])
    with pytest.raises(OptimizerError, match="F1_0"):
        tuner.optimize(problem, start, np.random.default_rng(0), tuner.options(), silent)


def test_refuses_what_cannot_be_tuned(tuner: Algorithm) -> None:
    problem, _ = planted(15)
    rng, options = np.random.default_rng(0), tuner.options()
    with pytest.raises(OptimizerError, match="5 features"):
        tuner.optimize(problem, np.ones(4), rng, options, silent)
    fixed = replace(problem, active=np.zeros(5, dtype=np.bool_))
    with pytest.raises(OptimizerError, match="nothing to tune"):
        tuner.optimize(fixed, np.ones(5), rng, options, silent)
    empty = tuning_set([0, 0], np.zeros((0, 5)), np.zeros(0))
    with pytest.raises(OptimizerError, match="no hypotheses"):
        tuner.optimize(replace(problem, tuning_set=empty), np.ones(5), rng, options, silent)


def test_settings_are_documented(tuner: Algorithm) -> None:
    assert is_dataclass(tuner.options)
    assert tuner.summary
    assert tuner.source
    for setting in fields(tuner.options):
        assert setting.metadata["help"], setting.name
        assert setting.metadata["source"], setting.name


def test_is_found_by_name(tuner: Algorithm) -> None:
    assert algorithm(tuner.name).options is tuner.options
    with pytest.raises(UsageError, match=re.escape(tuner.name)):
        algorithm("no-such-thing")
