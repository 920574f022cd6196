"""RAMPION (Gimpel & Smith 2012): structured ramp loss, by sub-gradient steps.

A ramp loss compares two maxima of model score and cost that the model can reach. With ``s = w . h``
and ``c = alpha (1 - gain)``, times the words of the sentence if ``cost_unit`` says so, the three
losses of a sentence are

    1:  max (s + c) - max s          fear against 1-best
    2:  max s - max (s - c)          1-best against hope
    3:  max (s + c) - max (s - c)    fear against hope

(The second is least at weights of 0, where all hypotheses tie: it requires a large ``C``.) The
objective is their sum and ``C/2 |w - w0|^2``. It is not convex. As in the paper, ``w0`` are the
weights that a run began with, after every decoding: the pull does not move along with the run.
The concave-convex procedure (their Algorithm 1) fixes the hypotheses of the second maximum ``T'``
times; the rest is convex, and minimized by stochastic sub-gradients: for each sentence the
hypothesis ``e`` of the first maximum is found, and

    w <- w - eta C (w - w0) / N + eta (h(fixed) - h(e))

in ``T''`` passes. (A sentence of weight ``c`` counts ``c`` times in ``N``, and its step is
multiplied by ``c``.) Such passes may overshoot. They are accepted only if the convex objective
falls; otherwise they are undone and the step ``eta`` is halved. So neither that objective nor the
ramp loss rises from one accepted step to the next.

The paper's constants assume weights as large as those of decoders; here weights are mostly
normalized. If all dense weights are active, so that their scale is free, the initial weights and
``w0`` are first scaled to the L1 norm ``start_norm``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Offsets, Scores, SentenceValues
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.kernels import kernel
from mosesplug.optimizers.batch.margin.options import GainOptions
from mosesplug.optimizers.costs import first_of_largest
from mosesplug.optimizers.lists.oracle_pairs import add_difference
from mosesplug.optimizers.lists.rows import FeatureRows, row_score
from mosesplug.optimizers.lists.scaled import ScaledLists, scale_lists
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    corpus_score,
    score_solution,
)
from mosesplug.optimizers.registry import Algorithm
from mosesplug.optimizers.spread import find_spreads, report_spreads
from mosesplug.options import Opt

_HALVINGS = 30
"""After so many halvings of a step the minimum counts as reached."""


_GIMPEL: Mapping[str, object] = MappingProxyType(
    {
        "cost": "lin-och",
        "scaling": "none",
        "ramp": "3",
        "rounds": 10,
        "passes": 5,
        "step": 1e-4,
        "regularization": 1.0,
        "cost_scale": 10.0,
        "start_norm": 5.0,
    }
)


@dataclass(frozen=True)
class RampionOptions(GainOptions):
    """Settings of RAMPION; constants are the paper's unless ``source`` says otherwise."""

    variant: Annotated[
        Literal["mosesplug", "paper"],
        Opt(
            "defaults of the other settings: mosesplug's, or the paper's",
            details="paper: steps of 0.0001 in the features' own units, and ten rounds after each "
            "decoding. Settings that are given keep their values.",
            source="Gimpel & Smith 2012; rampion_cccp of cdec",
            presets={"paper": _GIMPEL},
        ),
    ] = "mosesplug"
    ramp: Annotated[
        Literal["1", "2", "3"],
        Opt(
            "ramp loss: 1, 2 or 3",
            details="1: fear against 1-best. 2: 1-best against hope. 3: fear against hope.",
            source="Gimpel & Smith 2012, losses ramp 1 to ramp 3",
        ),
    ] = "3"
    rounds: Annotated[
        int,
        Opt(
            "number of times that hopes are chosen",
            source="mosesplug's; Gimpel & Smith 2012, T', have 10 after each of many decodings",
            minimum=1,
        ),
    ] = 30
    passes: Annotated[
        int,
        Opt(
            "number of passes of sub-gradient steps in a round",
            source="Gimpel & Smith 2012, T''",
            minimum=1,
            maximum=10_000,
        ),
    ] = 5
    step: Annotated[
        float,
        Opt(
            "eta, the initial size of the sub-gradient steps",
            source="mosesplug's, in units of features; Gimpel & Smith 2012 have 1e-4 without",
            minimum=1e-12,
        ),
    ] = 1e-3
    regularization: Annotated[
        float,
        Opt(
            "C, the factor of half the squared distance from the first weights",
            details="Those that the run began with, after every decoding.",
            source="Gimpel & Smith 2012; rampion_cccp -C",
            minimum=0.0,
        ),
    ] = 1.0
    cost_scale: Annotated[
        float,
        Opt(
            "alpha, the factor of costs beside model scores",
            source="Gimpel & Smith 2012; rampion_cccp --alpha",
            minimum=0.0,
        ),
    ] = 10.0
    start_norm: Annotated[
        float,
        Opt(
            "L1 norm of the initial dense weights; 0: do not scale",
            details="They are scaled only if all of them are active.",
            source="mosesplug's: that of weights of new Moses systems, about",
            minimum=0.0,
        ),
    ] = 5.0


@dataclass(frozen=True)
class Ramp:
    """A ramp loss of the hypotheses, to be minimized.

    Attributes:
        lists: the hypotheses.
        costs: ``alpha (size - gain)``, of the size of the sentence, which is 1 by default.
        raised: factor of the costs in the first maximum, 0 or 1.
        lowered: factor of the costs that are subtracted in the second maximum, 0 or 1.
        origin: float64 ``[n_columns]``, ``w0`` in the features' units.
        regularization: ``C``.
    """

    lists: ScaledLists
    costs: Scores
    raised: float
    lowered: float
    origin: Floats
    regularization: float

    def second_maxima(self, weights: Floats) -> NDArray[np.int64]:
        """Return the hypothesis of the second maximum of each sentence: rows."""
        values = self.lists.scores(weights) - self.lowered * self.costs
        return first_of_largest(self.lists.offsets, values)

    def surrogate(self, weights: Floats, fixed: NDArray[np.int64]) -> float:
        """Return the convex objective with the second maximum at fixed rows.

        It is at least the ramp objective.
        """
        scores = self.lists.scores(weights)
        firsts = np.maximum.reduceat(scores + self.raised * self.costs, self.lists.offsets[:-1])
        seconds = scores[fixed] - self.lowered * self.costs[fixed]
        moved = weights - self.origin
        losses = firsts - seconds
        if self.lists.sentence_weights is not None:
            losses = self.lists.sentence_weights * losses
        return 0.5 * self.regularization * float(moved @ moved) + float(losses.sum())


def rampion(
    problem: Problem,
    initial: Floats,
    rng: np.random.Generator,
    options: RampionOptions,
    progress: Progress,
) -> Solution:
    """Tune the active weights to the least ramp loss near the run's first ones.

    See ``problem`` for the arguments: steps start from ``initial``, the pull is towards
    ``problem.center``, or ``initial`` if there is none. Inactive weights and the scale stay as they
    are. The result is the round with the best score. ``rng`` draws the order of sentences and the
    greedy oracles.

    Raises:
        OptimizerError: the weights overflow,
            or they are all zero.
        UsageError: ``cost_scale`` is 0.
    """
    if not options.cost_scale > 0.0:
        raise UsageError(
            "cost_scale must be above 0: without costs, hope, fear and 1-best are the same"
        )
    center = initial if problem.center is None else problem.center
    initial, center = (
        _scale_start(problem, unscaled, options.start_norm) for unscaled in (initial, center)
    )
    lists = scale_lists(problem, initial, options.scaling)
    ramp = _ramp(problem, initial, center, lists, rng, options)
    weights, step = initial[lists.columns] * lists.units, options.step
    best, best_score, history = initial, -np.inf, []
    for number in range(1, options.rounds + 1):
        fixed = ramp.second_maxima(weights)
        before = ramp.surrogate(weights, fixed)
        weights, after, step = _step(ramp, weights, fixed, before, step, rng, options.passes)
        full = _written_back(initial, lists, weights)
        # Weights of 0 cannot be a result.
        score = corpus_score(problem, full) if full.any() else -np.inf
        history.append(
            {
                "objective": after,
                "before": before,
                "ramp": ramp.surrogate(weights, ramp.second_maxima(weights)),
                "step": step,
                "score": score,
                **report_spreads(find_spreads(lists.offsets, lists.scores(weights), fixed)),
            }
        )
        if score > best_score:
            best, best_score = full, score
        progress(number, options.rounds, "rounds")
        if after >= before:
            break
    progress(options.rounds, options.rounds, "rounds")
    if not best.any():
        raise OptimizerError("the weights are all zero; start from other weights")
    return score_solution(problem, best, tuple(history))


def _step(
    ramp: Ramp,
    weights: Floats,
    fixed: NDArray[np.int64],
    before: float,
    step: float,
    rng: np.random.Generator,
    passes: int,
) -> tuple[Floats, float, float]:
    """Return weights with a smaller surrogate, that surrogate, and the step.

    The old weights if there are none.
    """
    base = ramp.lists.scores(ramp.origin) + ramp.raised * ramp.costs
    n_sentences, sentence_weights = ramp.lists.n_sentences, ramp.lists.weights_of_sentences
    orders = np.concatenate([rng.permutation(n_sentences) for _ in range(passes)])
    for _ in range(_HALVINGS):
        pulls = step * ramp.regularization * sentence_weights / sentence_weights.sum()
        moved = weights - ramp.origin
        with np.errstate(over="ignore", invalid="ignore"):
            take_ramp_steps(ramp.lists.features, ramp.lists.offsets, base, fixed, orders,
                    step * sentence_weights, np.maximum(0.0, 1.0 - pulls), moved)  # fmt: skip
            after = ramp.surrogate(ramp.origin + moved, fixed)
        if after < before:
            return ramp.origin + moved, after, step
        step *= 0.5
    if not np.isfinite(before):
        raise OptimizerError("the weights overflow; take a smaller step or smaller weights")
    return weights, before, step


def _ramp(
    problem: Problem,
    initial: Floats,
    center: Floats,
    lists: ScaledLists,
    rng: np.random.Generator,
    options: RampionOptions,
) -> Ramp:
    sizes = np.repeat(options.sizes(problem), np.diff(problem.tuning_set.offsets))
    costs = options.cost_scale * (sizes - options.gains(problem, initial, rng))
    return Ramp(
        lists,
        costs,
        raised=0.0 if options.ramp == "2" else 1.0,
        lowered=0.0 if options.ramp == "1" else 1.0,
        origin=center[lists.columns] * lists.units,
        regularization=options.regularization,
    )


def _scale_start(problem: Problem, initial: Floats, norm: float) -> Floats:
    dense = initial[: problem.tuning_set.space.n_dense]
    length = float(np.abs(dense).sum())
    free = problem.active_mask[: len(dense)].all() and not problem.keeps_scale
    if norm == 0.0 or length == 0.0 or problem.is_fixed is not None or not free:
        return initial
    return np.where(problem.active_mask, initial * (norm / length), initial)


def _written_back(initial: Floats, lists: ScaledLists, weights: Floats) -> Floats:
    full = initial.copy()
    full[lists.columns] = weights / lists.units
    return full


_TINY = 1e-100


@kernel
def take_ramp_steps(
    features: FeatureRows,
    offsets: Offsets,
    base: Scores,
    fixed: NDArray[np.int64],
    order: NDArray[np.int64],
    steps: SentenceValues,
    shrinkages: SentenceValues,
    moved: NDArray[np.float64],
) -> None:
    """Take one step for each sentence in ``order``.

    ``moved <- shrinkage moved + step (h(f) - h(e))``, with those of the sentence. The weights are
    kept as their distance from the initial ones, a scale times a vector: shrinking all of them
    changes one number.

    Args:
        features: the features of the hypotheses.
        base: ``e`` has the largest sum of this and ``moved . h``.
        fixed: int64 ``[n_sentences]``, rows of the ``f``.
        order: int64, sentences, any number of times.
        steps: eta times the weight of each sentence.
        shrinkages: what the regularizer leaves of the distance.
        moved: in and output, float64 ``[n_columns]``, the distance from the initial weights.
    """
    scale = 1.0
    for sentence in order:
        best, most = offsets[sentence], -np.inf
        for row in range(offsets[sentence], offsets[sentence + 1]):
            value = base[row] + scale * row_score(features, row, moved)
            if value > most:
                best, most = row, value
        scale *= shrinkages[sentence]
        if scale < _TINY:
            moved *= scale
            scale = 1.0
        if best != fixed[sentence]:
            add_difference(features, fixed[sentence], best, steps[sentence] / scale, moved)
    moved *= scale


ALGORITHMS = (
    Algorithm(
        name="rampion",
        summary="Minimize the structured ramp loss of hope and fear.",
        source="Gimpel & Smith 2012",
        family="margin",
        options=RampionOptions,
        optimize=rampion,
        order_matters=True,
        weighs_sentences=True,
    ),
)
