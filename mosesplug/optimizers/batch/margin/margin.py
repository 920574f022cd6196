"""Large margins over the whole tuning set: batch structural learning.

Good hypotheses should outscore others by a margin in proportion to the cost (survey, sections 3.4
and 5.3). The loss is the hinge loss of the worst violation of each sentence (eq. 30, with the
loss-augmented search of eq. 35 and 37), or of all pairs of an oracle and another hypothesis (eq.
25), plus a squared norm. It is convex and solved until the duality gap is small.

Oracles may be unreachable for the model. So the reference of a sentence may be its *hope* instead
(eq. 36). Hopes depend on the weights: they are chosen, the convex problem is solved, and they are
chosen again. With worst violations and costs as margins, this is the concave-convex procedure for
the ramp loss

    lambda/2 |w|^2 + 1/N sum of  max (w . h - gain) - max (w . h + gain)

which no round raises (Gimpel & Smith 2012, loss 3, with an exact solver instead of their
sub-gradients). The first round starts at weights of 0, whose hopes are the oracles, so that the
result does not depend on the initial weights. The result is the round with the best score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Weights
from mosesplug.optimizers.batch.fits import fit_scaled
from mosesplug.optimizers.batch.margin.options import RegularizedOptions
from mosesplug.optimizers.batch.margin.pairs import PairsLoss, solve_pairs
from mosesplug.optimizers.batch.margin.planes import solve_n_slack, solve_one_slack
from mosesplug.optimizers.batch.margin.worst import WorstLoss, solve_dual
from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.lists.scaled import ScaledLists, scale_lists
from mosesplug.optimizers.oracles import OracleSets, sentence_oracles
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    score_solution,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.optimizers.solvers.quasi_newton import Minimum
from mosesplug.optimizers.spread import find_spreads, report_spreads
from mosesplug.options import Opt

_SWEEPS = 200
"""Maximum sweeps over the working sets after constraints joined them."""


@dataclass(frozen=True)
class _ReferenceOptions(RegularizedOptions):
    """Settings of the references and their margins."""

    oracles: Annotated[
        Literal["hope", "best"],
        Opt(
            "hypotheses that should outscore the others",
            details="The hope of each sentence, chosen again in each round; or its best "
            "hypotheses, in one round.",
            source="Neubig & Watanabe 2016, eq. 29 and 36",
        ),
    ] = "hope"
    margin: Annotated[
        Literal["cost", "one"],
        Opt(
            "required margin: the cost of the other hypothesis, or 1",
            source="Neubig & Watanabe 2016, eq. 25; Tsochantaridis et al. 2005",
        ),
    ] = "cost"
    rounds: Annotated[
        int,
        Opt(
            "number of times that hopes are chosen",
            source="Gimpel & Smith 2012, T'",
            only_with="oracles=hope",
            minimum=1,
        ),
    ] = 10


@dataclass(frozen=True)
class MarginOptions(_ReferenceOptions):
    """Settings of large margins, solved in the dual."""

    violations: Annotated[
        Literal["worst", "all"],
        Opt(
            "violations that count: the worst of each sentence, or all",
            details="All are all pairs of a reference and another hypothesis.",
            source="Neubig & Watanabe 2016, eq. 25 and 30",
        ),
    ] = "worst"
    solver_tolerance: Annotated[
        float, Opt("final duality gap relative to the objective", source="mosesplug's", minimum=0.0)
    ] = 1e-3
    sweeps: Annotated[
        int,
        Opt(
            "maximum sweeps of the dual coordinate descent in a round",
            source="mosesplug's; Hsieh et al. 2008 have no limit",
            minimum=1,
        ),
    ] = 200


@dataclass(frozen=True)
class CuttingPlaneOptions(_ReferenceOptions):
    """Settings of large margins, solved by cutting planes."""

    slack_variables: Annotated[
        Literal["one", "n"],
        Opt(
            "slack variables: one for all sentences, or one each",
            details="With one each, every sentence has its own working set.",
            source="Joachims et al. 2009; Tsochantaridis et al. 2005",
        ),
    ] = "one"
    epsilon: Annotated[
        float,
        Opt(
            "violations beyond the slack that are ignored, in units of the gain",
            source="Joachims et al. 2009, Algorithm 3",
            minimum=0.0,
        ),
    ] = 1e-3
    planes: Annotated[
        int, Opt("maximum constraints that are added in a round", source="mosesplug's", minimum=1)
    ] = 500


_Solve = Callable[[ScaledLists, NDArray[np.int64], Any], tuple[Minimum, Any]]
"""From lists, references and the end of the last round to the weights of a round, and its end."""


def large_margin(
    problem: Problem,
    initial: Weights,
    rng: np.random.Generator,
    options: MarginOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights to large margins, by descent in the dual problem.

    ``rng`` draws the order of visits and the greedy oracles.

    Raises:
        OptimizerError: the fitted weights are all zero.
    """
    gains = options.gains(problem, initial, rng)
    limits: Any = {"tolerance": options.solver_tolerance, "sweeps": options.sweeps}

    def solve(
        lists: ScaledLists, references: NDArray[np.int64], multipliers: Any
    ) -> tuple[Minimum, Any]:
        if options.violations == "all":
            return solve_pairs(_pairs_loss(lists, references, gains, options), rng, **limits), None
        loss = _worst_loss(lists, references, gains, options)
        return solve_dual(loss, rng, **limits, multipliers=multipliers)

    return _solve_in_rounds(problem, initial, gains, options, solve, progress)


def cutting_plane(
    problem: Problem,
    initial: Weights,
    rng: np.random.Generator,
    options: CuttingPlaneOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights to large margins by cutting planes; as ``large_margin``."""
    gains = options.gains(problem, initial, rng)
    limits: Any = {"epsilon": options.epsilon, "rounds": options.planes}

    def solve(
        lists: ScaledLists, references: NDArray[np.int64], latest: Any
    ) -> tuple[Minimum, Any]:
        loss = _worst_loss(lists, references, gains, options)
        if options.slack_variables == "one":
            return solve_one_slack(loss, **limits, planes=latest)
        return solve_n_slack(loss, rng, **limits, sweeps=_SWEEPS, multipliers=latest)

    return _solve_in_rounds(problem, initial, gains, options, solve, progress)


def _solve_in_rounds(
    problem: Problem,
    initial: Weights,
    gains: Floats,
    options: _ReferenceOptions,
    solve: _Solve,
    progress: Progress,
) -> Solution:
    """Choose references and solve, round by round; return the round of the best score."""
    lists = scale_lists(problem, initial, options.scaling)

    def fit(lists: ScaledLists) -> Minimum:
        weights, end = np.zeros(len(lists.columns)), None
        best, best_score, rounds = None, -np.inf, []
        before = None
        for number in range(1, options.rounds + 1):
            references = _references(lists, weights, gains, options)
            if before is not None and np.array_equal(references, before):
                break
            result, end = solve(lists, references, end)
            weights, before = result.weights, references
            score = _score(problem, lists, weights)
            if best is None or score > best_score:
                best, best_score = result, score
            rounds.append(_round(lists, gains, references, result, score, options))
            progress(number, options.rounds, "rounds")
            if options.oracles == "best":
                break
        assert best is not None
        return replace(best, rounds=tuple(rounds))

    weights, result = fit_scaled(problem, initial, lists, fit)
    progress(options.rounds, options.rounds, "rounds")
    return score_solution(problem, weights, result.rounds)


def _round(
    lists: ScaledLists,
    gains: Floats,
    references: NDArray[np.int64],
    fit: Minimum,
    score: float,
    options: _ReferenceOptions,
) -> Mapping[str, Any]:
    step = {
        "objective": fit.loss,
        "bound": fit.bound,
        "gap": fit.gap,
        "iterations": fit.iterations,
        "converged": fit.has_converged,
        "score": score,
        **report_spreads(find_spreads(lists.offsets, lists.scores(fit.weights), references)),
    }
    if options.oracles == "hope":
        step["ramp"] = ramp_loss(lists, fit.weights, gains, options.regularization)
    return step


def ramp_loss(lists: ScaledLists, weights: Floats, gains: Floats, regularization: float) -> float:
    """Return ``lambda/2 |w|^2 + 1/N sum of max (w . h - gain) - max (w . h + gain)``."""
    scores, starts = lists.scores(weights), lists.offsets[:-1]
    fears = np.maximum.reduceat(scores - gains, starts)
    hopes = np.maximum.reduceat(scores + gains, starts)
    return float(0.5 * regularization * (weights @ weights) + lists.mean(fears - hopes))


def _references(
    lists: ScaledLists, weights: Floats, gains: Floats, options: _ReferenceOptions
) -> NDArray[np.int64]:
    """Return each sentence's hope or first oracle: rows, int64 ``[n_sentences]``."""
    if options.oracles == "best":
        return first_of_largest(lists.offsets, gains)
    return first_of_largest(lists.offsets, lists.scores(weights) + gains)


def _score(problem: Problem, lists: ScaledLists, weights: Floats) -> float:
    best = first_of_largest(lists.offsets, lists.scores(weights))
    totals = problem.tuning_set.weighted_stats[best].sum(axis=0, dtype=np.float64)
    return float(problem.metric.score(totals))


def _worst_loss(
    lists: ScaledLists, references: NDArray[np.int64], gains: Floats, options: _ReferenceOptions
) -> WorstLoss:
    """Return the loss of the worst violations; oracles beside the reference demand 0."""
    owners = lists.owners
    leads = gains[references][owners] - gains
    demands = leads
    if options.margin == "one":
        demands = np.where(_others(leads, references, options), 1.0, 0.0)
    demands = demands - (lists.fixed_scores[references][owners] - lists.fixed_scores)
    return WorstLoss(lists, references, demands, options.regularization)


def _others(
    leads: Floats, references: NDArray[np.int64], options: _ReferenceOptions
) -> NDArray[np.bool_]:
    """Return which hypotheses are not the ``o`` of equation 25, bool ``[n_hyps]``."""
    if options.oracles == "best":
        return leads > 0.0
    others = np.ones(len(leads), dtype=np.bool_)
    others[references] = False
    return others


def _pairs_loss(
    lists: ScaledLists, references: NDArray[np.int64], gains: Floats, options: _ReferenceOptions
) -> PairsLoss:
    """Return the loss of all pairs with an oracle, or with a hope."""
    if options.oracles == "best":
        oracles = sentence_oracles(lists.offsets, gains)
    else:
        oracles = OracleSets(references, np.arange(lists.n_sentences + 1), 0.0, references)
    by_cost = options.margin == "cost"
    demanded_gains = gains if by_cost else np.zeros(len(gains))
    return PairsLoss(
        lists, oracles, demanded_gains, 0.0 if by_cost else 1.0, options.regularization
    )


ALGORITHMS = (
    Algorithm(
        name="margin",
        summary="Minimize the structured hinge loss in its dual.",
        source="Neubig & Watanabe 2016, eq. 25-37; Hsieh et al. 2008",
        family="margin",
        options=MarginOptions,
        optimize=large_margin,
        order_matters=True,
        weighs_sentences=True,
    ),
    Algorithm(
        name="cutting-plane",
        summary="Minimize the loss of `margin` with cutting planes.",
        source="Joachims et al. 2009; Tsochantaridis et al. 2005",
        family="margin",
        options=CuttingPlaneOptions,
        optimize=cutting_plane,
        order_matters=True,
        weighs_sentences=True,
    ),
)
