"""Online learners as batch optimizers: epochs over stored n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.epochs import (
    Plan,
    StoredSource,
    add_averaging,
    is_usable,
    mean_weights,
    run_epoch,
)
from mosesplug.optimizers.online.learner import Learner, keep_bounds
from mosesplug.optimizers.online.options import OnlineOptions
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    activate_sparse,
    check_weights,
    corpus_score,
    no_progress,
    score_solution,
)
from mosesplug.optimizers.registry import Algorithm

__all__ = ["EpochOutcome", "online_algorithm", "optimize_online", "solve_in_epochs", "weight_facts"]


EpochOutcome = tuple[NDArray[np.float64], float, Mapping[str, Any]]
"""After an epoch: weights to decode with, their corpus score, and values for the history."""


def weight_facts(weights: NDArray[np.float64]) -> dict[str, float]:
    """Return facts about weights for the history: norm and number of non-zero weights."""
    return {
        "norm": float(np.linalg.norm(weights)),
        "active": int(np.count_nonzero(weights)),
    }


def solve_in_epochs(
    problem: Problem, options: OnlineOptions, epochs: Iterator[EpochOutcome], progress: Progress
) -> Solution:
    """Run epochs and return the weights that ``options.averaging`` selects.

    Args:
        problem: the n-best lists and the metric.
        options: the options of the learner, including the number of ``epochs``.
        epochs: an iterator that runs one epoch per item.
        progress: callback after every epoch.

    Returns:
        Weights, score and history, one mapping per epoch.

    Raises:
        OptimizerError: no epoch ended with usable weights.
    """
    best: tuple[float, NDArray[np.float64]] | None = None
    history = []
    for epoch, (weights, score, facts) in enumerate(islice(epochs, options.epochs), start=1):
        usable = is_usable(weights)
        if usable and (best is None or score > best[0] or options.averaging != "best"):
            best = score, weights
        history.append({"epoch": epoch, "score": score if usable else -np.inf, **facts})
        progress(epoch, options.epochs, "epochs")
    if best is None:
        raise OptimizerError(
            "the weights became all zero or too large. Choose less regularisation, a lower "
            "learning rate, or other starting weights."
        )
    return score_solution(problem, best[1], tuple(history))


def optimize_online(
    learner_of: Callable[[Any], Learner],
) -> Callable[..., Solution]:
    """Return a batch optimizer that runs an online learner on stored n-best lists.

    Args:
        learner_of: creates the learner from its options.

    Returns:
        ``optimize(problem, initial, rng, options, progress) -> Solution`` for the registry. It
        runs ``options.epochs`` epochs over the tuning set and returns the weights selected by
        ``options.averaging``, normalised if that changes no decision. The history has one mapping
        per epoch.
    """

    def optimize(
        problem: Problem,
        initial: NDArray[np.float64],
        rng: np.random.Generator,
        options: OnlineOptions,
        progress: Progress = no_progress,
    ) -> Solution:
        problem = activate_sparse(problem)
        initial = check_weights(problem, initial)
        plan = Plan(int(rng.integers(1 << 62)), options.batch, problem.metric, problem.active_mask)
        learner = learner_of(options)
        if problem.bounds is not None:
            learner = keep_bounds(learner, problem.bounds)
        if options.averaging == "all":
            learner = add_averaging(learner)
        source = StoredSource(problem.tuning_set)

        def epochs() -> Iterator[EpochOutcome]:
            state = learner.init(initial)
            for epoch in count(1):
                report = run_epoch(learner, state, source, plan, epoch)
                state = report.state
                weights = mean_weights(learner, state)
                score = corpus_score(problem, weights) if is_usable(weights) else -np.inf
                facts = {**report.means, **weight_facts(weights), "updates": report.updates}
                yield weights, score, facts

        return solve_in_epochs(problem, options, epochs(), progress)

    return optimize


def online_algorithm(
    *, name: str, summary: str, source: str, options: type[Any], learner: Callable[[Any], Learner]
) -> Algorithm:
    """Return the registry entry of an online learner."""
    return Algorithm(
        name=name,
        summary=summary,
        source=source,
        family="online",
        options=options,
        optimize=optimize_online(learner),
        learner=learner,
        order_matters=True,
        keeps_bounds=True,
    )
