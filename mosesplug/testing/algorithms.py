"""Checks of algorithms: planted weights, seeds, odd arrays, errors, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import MosesplugError, OptimizerError, UsageError
from mosesplug.optimizers.problem import Problem, corpus_score, no_progress
from mosesplug.optimizers.registry import Algorithm
from mosesplug.options import find_field_types, options_by_field
from mosesplug.settings.algorithm_options import enable_option
from mosesplug.testing.checks import require, require_error, run_checks, unaligned
from mosesplug.testing.problems import planted_for, tuning_set
from mosesplug.tuning_set import SparseRows

__all__ = ["ALGORITHM_CHECKS", "START", "check_algorithm", "solve"]

START = np.full(5, 0.2)
"""As a decoder's weights are when tuning begins: L1-normalized, as defaults expect."""
START.flags.writeable = False

LEAST_SCORE = 0.95
"""Score that default settings must reach where the planted weights score 1."""


def check_algorithm(tuner: Algorithm) -> None:
    """Check that an algorithm behaves as ``mosesplug.optimizers.problem`` says.

    It runs with its default settings, on small problems.

    Raises:
        AssertionError: a check fails.

    Example:
        >>> from mosesplug.optimizers import algorithm
        >>> from mosesplug.testing import check_algorithm
        >>> check_algorithm(algorithm("mert"))
    """
    run_checks(ALGORITHM_CHECKS, tuner, f"algorithm {tuner.name}")


def solve(tuner: Algorithm, problem: Problem, seed: int = 0) -> tuple[bytes, float]:
    """Return the bytes of the weights, and their score."""
    solution = tuner.optimize(
        problem, START, np.random.default_rng(seed), tuner.options(), no_progress
    )
    require(bool(np.isfinite(solution.weights).all()), "weights must be finite")
    require(bool(solution.weights.any()), "weights must not all be 0")
    return solution.weights.tobytes(), solution.score


def _planted_weights(tuner: Algorithm) -> None:
    # Its arrays are read-only: an algorithm that writes to its input fails.
    # Learners update their weights once for each mini-batch, and some do so in small steps.
    problem = planted_for(tuner, 11, n_sentences=100 if tuner.learner is None else 300)
    problem = replace(problem, minima=-np.ones(5), maxima=np.ones(5))
    before = corpus_score(problem, START)
    _, score = solve(tuner, problem)
    require(
        score > before and score > LEAST_SCORE,
        f"the score is {score:.4f} from {before:.4f}, but must exceed {LEAST_SCORE}: hidden weights"
        " score 1",
    )


def _seeds_and_threads(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 12, noise=1.0, n_sentences=30)
    first = solve(tuner, problem)
    if solve(tuner, replace(problem, threads=3)) != first:
        require(solve(tuner, problem) == first, "the same seed gives other weights")
        require(False, "threads change the weights")


def _odd_arrays(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 13, noise=1.0, n_sentences=30)
    made = problem.tuning_set
    shifted = replace(
        made,
        offsets=unaligned(made.offsets),
        dense=unaligned(made.dense),
        stats=unaligned(made.stats),
        lengths=unaligned(made.lengths),
    )
    found = solve(tuner, replace(problem, tuning_set=shifted))
    require(found == solve(tuner, problem), "unaligned arrays change the weights")


def _not_finite(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 14)
    dense = problem.tuning_set.dense.copy()
    dense[3, 2] = np.nan
    bad = replace(problem, tuning_set=replace(problem.tuning_set, dense=dense))
    error = require_error(OptimizerError, lambda: solve(tuner, bad), "a feature value NaN")
    require("F2" in str(error), f"the error must name the feature F2: {error}")
    start = np.array([1.0, np.inf, 1.0, 1.0, 1.0])
    error = require_error(
        OptimizerError,
        lambda: tuner.optimize(
            problem, start, np.random.default_rng(0), tuner.options(), no_progress
        ),
        "an infinite starting weight",
    )
    require("F1" in str(error), f"the error must name the feature F1: {error}")


def _without_solution(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 15)
    fixed = replace(problem, active=np.zeros(5, dtype=np.bool_))
    none = tuning_set([0, 0], np.zeros((0, 5)), np.zeros(0))
    empty = replace(problem, tuning_set=none)
    cases = (
        ("4 weights for 5 features", problem, np.ones(4), "5 features"),
        ("no active feature", fixed, np.ones(5), "nothing to tune"),
        ("no hypotheses", empty, np.ones(5), "no hypotheses"),
    )
    for what, case, start, message in cases:
        error = require_error(
            OptimizerError,
            lambda case=case, start=start: tuner.optimize(  # type: ignore[misc]
                case, start, np.random.default_rng(0), tuner.options(), no_progress
            ),
            what,
        )
        require(message in str(error), f"the error must say {message!r}: {error}")


def _sparse_features(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 16, n_sentences=30)
    made = problem.tuning_set
    rows = SparseRows(
        np.arange(0, 2 * made.n_hyps + 1, 2),
        np.tile(np.array([0, 1], dtype=np.int32), made.n_hyps),
        made.dense[:, 3:].ravel(),
    )
    sizes = np.diff(made.offsets).tolist()
    sparse = tuning_set(
        sizes, made.dense[:, :3], np.zeros(made.n_hyps), rows, ("sparse_a", "sparse_b")
    )
    problem = replace(problem, tuning_set=replace(sparse, stats=made.stats))
    start = np.array([0.2, 0.2, 0.2, 0.0, 0.0])
    found = tuner.optimize(problem, start, np.random.default_rng(0), tuner.options(), no_progress)
    require(
        bool(found.weights[3:].any()) == tuner.tunes_sparse,
        f"tunes_sparse is {tuner.tunes_sparse}, but the sparse weights are {found.weights[3:]}",
    )


def _weights_of_sentences(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 18, noise=1.0, n_sentences=12, n_hyps=6)
    lists = problem.tuning_set
    weights = np.where(np.arange(12) < 4, 0.0, 1.0)

    def weigh(values: NDArray[np.float64]) -> Problem:
        return replace(problem, tuning_set=lists.weigh(values))

    if not tuner.weighs_sentences:
        error = require_error(
            UsageError, lambda: solve(tuner, weigh(weights)), "weights of sentences"
        )
        require("cannot weight sentences" in str(error), f"the error must say so: {error}")
        return
    plain = solve(tuner, problem)
    require(solve(tuner, weigh(np.ones(12))) == plain, "weights of 1 change the weights")
    left = replace(problem, tuning_set=lists.take_sentences(np.arange(4, 12)))
    require(
        solve(tuner, weigh(weights)) == solve(tuner, left),
        "a sentence of weight 0 is not as one that is left out",
    )
    heavy = weigh(np.where(np.arange(12) < 4, 7.5, 0.25))
    found, score = solve(tuner, heavy)
    require(found != plain[0], "weights of sentences do not change the weights")
    expected = corpus_score(heavy, np.frombuffer(found))
    require(bool(np.isclose(score, expected)), f"the score is {score}, and weighted {expected}")


def _settings(tuner: Algorithm) -> None:
    require(is_dataclass(tuner.options), "options must be a dataclass")
    require(bool(tuner.family), "family is empty")
    require(0 < len(tuner.summary) <= 60, "summary must have 1 to 60 characters")
    require(bool(tuner.source), "source is empty")
    declared = options_by_field(tuner.options)
    for setting in fields(tuner.options):
        for key in ("help", "source"):
            require(
                bool(getattr(declared.get(setting.name), key, "")),
                f"the setting {setting.name} has no {key}: declare it as"
                " Annotated[TYPE, mosesplug.options.Opt(...)]",
            )


class _Stopped(Exception):
    """The search went on for long enough; nothing failed."""


def _stop_soon(done: int, total: int, what: str) -> None:
    if done > 1:
        raise _Stopped


def list_ends(tuner: Algorithm) -> Iterator[dict[str, Any]]:
    """Yield options with one number at an end of its range, and those that enable it."""
    types = find_field_types(tuner.options)
    for name, option in options_by_field(tuner.options).items():
        if option.kind in ("integer", "real"):
            for end in option.limits:
                yield enable_option(tuner, {name: types[name](end)}, name)


def check_end(tuner: Algorithm, problem: Problem, options: Mapping[str, Any]) -> None:
    """Check that an algorithm finds usable weights, or says why not.

    Raises:
        AssertionError: it gives weights that are not usable, or another error.
    """
    try:
        made = tuner.options(**options)
        start = np.full(len(problem.tuning_set.space.names), 0.2)
        solution = tuner.optimize(problem, start, np.random.default_rng(0), made, _stop_soon)
    except (MosesplugError, _Stopped):
        return
    except Exception as error:
        raise AssertionError(f"{dict(options)} raises {error!r}") from error
    usable = np.isfinite(solution.weights).all() and solution.weights.any()
    require(bool(usable), f"{dict(options)} gives the weights {solution.weights}")


def _ends_of_ranges(tuner: Algorithm) -> None:
    problem = planted_for(tuner, 17, noise=1.0, n_sentences=3, n_hyps=4)
    for options in list_ends(tuner):
        check_end(tuner, problem, options)


ALGORITHM_CHECKS: Mapping[str, Callable[[Algorithm], None]] = MappingProxyType(
    {
        "declared settings": _settings,
        "ends of ranges": _ends_of_ranges,
        "planted weights": _planted_weights,
        "seeds and threads": _seeds_and_threads,
        "unaligned arrays": _odd_arrays,
        "values that are not finite": _not_finite,
        "problems without solution": _without_solution,
        "sparse features": _sparse_features,
        "weights of sentences": _weights_of_sentences,
    }
)
"""The checks of ``check_algorithm`` by name."""
