"""Online learners as batch optimizers: epochs over stored n-best lists."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import count, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Weights
from mosesplug.candidates import Candidates, OracleUpdates
from mosesplug.errors import OptimizerError
from mosesplug.optimizers.online.epochs import (
    Plan,
    is_usable,
    run_epoch,
)
from mosesplug.optimizers.online.learner import (
    Learner,
    LearnerState,
    add_averaging,
    keep_bounds,
    mean_weights,
)
from mosesplug.optimizers.online.mixing import line_search
from mosesplug.optimizers.online.options import GraphCostOptions, OnlineOptions
from mosesplug.optimizers.online.starting import copy_state, count_epochs, start_states
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    corpus_score,
    no_progress,
    score_solution,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.tuning_set import Batch

_BEAM = 3
"""Beam of searches for hope and fear: on graphs of Moses, 10 found no better ones on average."""


@dataclass(frozen=True)
class EpochOutcome:
    """The result of an epoch.

    Attributes:
        weights: weights to decode with.
        states: the learner's state, or those of its shards; the next epoch may overwrite them.
    """

    weights: Weights
    score: float
    facts: Mapping[str, Any]
    states: tuple[LearnerState, ...] = ()


def weight_facts(weights: NDArray[np.float64]) -> dict[str, float]:
    """Return norm and number of non-zero weights, ``[n_features]``, for the history."""
    return {
        "norm": float(np.linalg.norm(weights)),
        "active": int(np.count_nonzero(weights)),
    }


def solve_in_epochs(
    problem: Problem,
    options: OnlineOptions,
    initial: Weights,
    epochs: Iterator[EpochOutcome],
    progress: Progress,
) -> Solution:
    """Run epochs and return the weights that ``options.averaging`` selects.

    Args:
        options: the options of the learner, including the number of ``epochs``.
        initial: the weights before the first epoch. With ``best``, they
            are the result if all epochs have lower scores.

    Returns:
        Weights, score and history, one mapping per epoch, and the states after the chosen epoch. If
        the initial weights win, the states are those after the best epoch, with its weights.

    Raises:
        OptimizerError: no epoch ended with usable weights.
    """
    best: EpochOutcome | None = None
    history = []
    for epoch, outcome in enumerate(islice(epochs, options.epochs), start=1):
        usable = is_usable(outcome.weights)
        if usable and (best is None or outcome.score > best.score or options.averaging != "best"):
            best = replace(outcome, states=tuple(copy_state(state) for state in outcome.states))
        score = outcome.score if usable else -np.inf
        history.append({"epoch": epoch, "score": score, **outcome.facts})
        progress(epoch, options.epochs, "epochs")
    if best is None:
        raise OptimizerError(
            "the weights became all zero or too large. Choose less regularization, a lower "
            "learning rate, or other starting weights."
        )
    if options.averaging == "best" and is_usable(initial):
        start = corpus_score(problem, initial)
        best = replace(best, weights=initial) if start > best.score else best
    return replace(score_solution(problem, best.weights, tuple(history)), states=best.states)


def plan_epochs(problem: Problem, options: OnlineOptions, rng: np.random.Generator) -> Plan:
    """Return the plan of epochs over stored lists, with a seed that is drawn."""
    return Plan(
        int(rng.integers(1 << 62)),
        options.batch,
        problem.metric,
        problem.active_mask,
        uses_stored_lists=True,
        source_lengths=problem.source_lengths,
    )


def optimize_online(
    learner_of: Callable[[Any], Learner],
) -> Callable[..., Solution]:
    """Return a batch optimizer that runs an online learner on stored n-best lists.

    Returns:
        ``optimize(problem, initial, rng, options, progress) -> Solution`` for the registry. It
        runs ``options.epochs`` epochs over the tuning set and returns the weights selected by
        ``options.averaging``, normalized if that changes no decision. The history has one mapping
        per epoch.
    """

    def optimize(
        problem: Problem,
        initial: NDArray[np.float64],
        rng: np.random.Generator,
        options: OnlineOptions,
        progress: Progress = no_progress,
    ) -> Solution:
        plan = plan_epochs(problem, options, rng)
        learner = learner_of(options)
        if problem.bounds is not None:
            learner = keep_bounds(learner, problem.bounds)
        if options.averaging == "all" and not learner.line_search:
            learner = add_averaging(learner)
        updates = _updates(options)
        sentences, notes = problem.candidates.choose_sentences(updates)
        k = options.graph_best if isinstance(options, GraphCostOptions) else 1
        source = CandidateBatches(problem.candidates, k, updates, sentences)

        def epochs() -> Iterator[EpochOutcome]:
            (state,) = start_states(problem, initial, learner, options)
            before = count_epochs([state], len(source.sentences), plan.batch)
            mean = np.zeros(len(initial))
            for epoch in count(before + 1):
                old = learner.weights_before(state, plan.active)
                report = run_epoch(learner, state, source, plan, epoch)
                state, facts = report.state, dict(report.tally.means)
                if learner.line_search:
                    state, facts["rho"] = _search_line(problem, learner, old, state)
                weights = mean_weights(learner, state)
                if learner.line_search and options.averaging == "all":
                    weights = mean = mean + (weights - mean) / (epoch - before)
                score = corpus_score(problem, weights) if is_usable(weights) else -np.inf
                facts |= {**weight_facts(weights), "updates": report.updates}
                yield EpochOutcome(weights, score, facts, (state,))

        solution = solve_in_epochs(problem, options, initial, epochs(), progress)
        return replace(solution, notes=notes)

    return optimize


@dataclass(frozen=True)
class CandidateBatches:
    """A batch source of lists, or of graphs that are searched for hopes and fears.

    Attributes:
        candidates: the hypotheses of the sentences.
        k: number of translations of each kind.
        updates: whether a derivation that yields a reference is the oracle.
        sentences: int64, positions of the sentences to learn from.
    """

    candidates: Candidates
    k: int
    updates: OracleUpdates
    sentences: NDArray[np.int64]

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        """Return lists of the given sentences at the current weights, in that order."""
        beam, bold = max(self.k, _BEAM), self.updates != "local"
        return self.candidates.hopes_and_fears(sentences, weights, self.k, beam, bold=bold)


def _updates(options: OnlineOptions) -> OracleUpdates:
    return options.oracles if isinstance(options, GraphCostOptions) else "local"


def _search_line(
    problem: Problem, learner: Learner, old: NDArray[np.float64], state: LearnerState
) -> tuple[LearnerState, float]:
    """Return the state at the best point of the line through old and new weights.

    Also return that point, 0 at the old and 1 at the new weights.
    """
    new = learner.weights(state)
    if not np.isfinite(new).all():
        raise OptimizerError("the weights became too large. Choose a lower learning rate.")
    mix = line_search(problem, old, new)
    weights = mix.weights if problem.bounds is None else problem.bounds.project(mix.weights)
    return replace(state, vectors={**state.vectors, "weights": weights.copy()}), mix.rho


def online_algorithm(
    *,
    name: str,
    summary: str,
    source: str,
    options: type[Any],
    learner: Callable[[Any], Learner],
    graphs: bool = False,
    window: int = -1,
) -> Algorithm:
    """Return the registry entry of an online learner; see ``Algorithm``."""
    return Algorithm(
        name=name,
        summary=summary,
        source=source,
        family="online",
        options=options,
        optimize=optimize_online(learner),
        learner=learner,
        asks=frozenset({"batches"} if graphs else {"lists"}),
        order_matters=True,
        keeps_bounds=True,
        weighs_sentences=True,
        window=window,
    )
