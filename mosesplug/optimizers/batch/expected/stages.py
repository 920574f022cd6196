"""Fit weights in stages: deterministic annealing (survey, section 5.5).

Risk and xBLEU have many local optima, fewer the flatter the distribution is. So the distribution
starts flat and gets sharper from stage to stage; each stage starts where the one before ended.
First the temperature of the entropy is lowered (cooling), then the scale ``gamma`` of the scores is
raised (quenching; Smith & Eisner 2006). Weights without regularizer would undo a scale by changing
their own length: with an L2 regularizer, a larger scale is a weaker regularizer of ``gamma w``.

Sharp distributions fit the lists closely, and with a regularizer towards 0 the few hypotheses of a
first decoding move weights far. So by default there is no annealing: the scale is that at which the
start has a given spread of model scores, and the regularizer pulls towards the start.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal

import numpy as np

from mosesplug.arrays import Floats, Weights
from mosesplug.candidates import Objective
from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.batch.expected.descent import Coordinates, DescentSettings, minimize_stage
from mosesplug.optimizers.lists.scaled import Scaling
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    count_remaining,
    score_solution,
)
from mosesplug.options import Opt

_STAGES = 1000
"""A schedule with more stages has a rate too close to 1."""


@dataclass(frozen=True)
class AnnealingStage:
    """Scale ``gamma`` of the scores and temperature ``T`` of the entropy in one stage."""

    scale: float = 1.0
    temperature: float = 0.0


@dataclass(frozen=True)
class AnnealingOptions:
    """Settings of annealed objectives."""

    l2: Annotated[
        float,
        Opt(
            "lambda of the regularizer lambda/2 |w - center|^2; 0: none",
            details="A larger gamma weakens it.",
            source="Smith & Eisner 2006; value: chosen on folds",
            minimum=0.0,
        ),
    ] = 3e-3
    l1: Annotated[
        float,
        Opt(
            "lambda of the regularizer lambda |w|_1, which zeroes weights",
            details="Beside the mean error of a sentence, towards 0 from any start, with weights "
            "in the units of scaling. Weights of 0 are exactly 0. With learn_scale, it has little "
            "effect.",
            source="Andrew & Gao 2007; cicada_learn_kbest --regularize-l1",
            minimum=0.0,
        ),
    ] = 0.0
    center: Annotated[
        Literal["start", "zero"],
        Opt(
            "weights that the regularizer pulls towards",
            details="start: the starting weights. In a run they are those of the last decoding, "
            "so each decoding may move the weights a little. zero: weights become small.",
            source="zero in Smith & Eisner 2006; start in Gimpel & Smith 2012; chosen on folds",
        ),
    ] = "start"
    scaling: Annotated[
        Scaling,
        Opt(
            "units of weights in the regularizer",
            details="deviation: the inverse deviation of the feature within a sentence. For "
            "sparse features it is the size of their values. none: all weights count alike.",
            source="mosesplug's: features of MT differ by orders of magnitude",
        ),
    ] = "deviation"
    start_spread: Annotated[
        float,
        Opt(
            "scale starting weights to this spread of model scores",
            details="The spread is the root mean square difference from the mean of the n-best "
            "list.",
            source="mosesplug's; value: chosen on folds",
            minimum=1e-6,
        ),
    ] = 3.0
    scale: Annotated[
        float,
        Opt(
            "initial gamma, the factor of model scores",
            source="cicada_learn_kbest --scale",
            minimum=0.0,
        ),
    ] = 1.0
    quench_end: Annotated[
        float,
        Opt(
            "final scale of quenching",
            details="The scale rises each time the weights have converged. A value up to the "
            "initial scale disables quenching. Quenching fits the lists closer and gains nothing "
            "on held-out sentences.",
            source="Smith & Eisner 2006; cicada_learn_kbest --quench-end, with 100; chosen on "
            "folds",
            minimum=0.0,
        ),
    ] = 1.0
    quench_rate: Annotated[
        float,
        Opt(
            "factor of the scale at each stage",
            source="cicada_learn_kbest --quench-rate",
            only_with="quench_end>scale",
            minimum=1.0,
        ),
    ] = 10.0
    learn_scale: Annotated[
        bool,
        Opt(
            "optimize the scale too, without regularizer",
            source="Neubig & Watanabe 2016, eq. 45; cicada_learn_kbest without --scale-fixed",
        ),
    ] = False
    temperature: Annotated[
        float,
        Opt(
            "initial temperature of the entropy; 0: no annealing",
            source="minrisk_optimize -T; Neubig & Watanabe 2016, eq. 45",
            minimum=0.0,
        ),
    ] = 0.0
    temperature_end: Annotated[
        float,
        Opt(
            "final temperature at the initial scale; later stages use 0",
            source="cicada_learn_kbest --temperature-end",
            only_with="temperature>0",
            minimum=0.0,
        ),
    ] = 0.001
    cooling_rate: Annotated[
        float,
        Opt(
            "factor of the temperature at each stage",
            source="cicada_learn_kbest --temperature-rate",
            only_with="temperature>0",
            minimum=0.0,
        ),
    ] = 0.5
    stage_iterations: Annotated[
        int,
        Opt("maximum L-BFGS steps of a stage", source="cicada_learn_kbest --iteration", minimum=1),
    ] = 100
    flatness: Annotated[
        float,
        Opt(
            "relative decrease of the objective that ends a stage",
            details="It is relative to the objective, or to 1 if that is larger.",
            source="measured",
            minimum=0.0,
        ),
    ] = 1e-7

    def stages(self) -> tuple[AnnealingStage, ...]:
        """Return the schedule.

        Raises:
            UsageError: the schedule has no start or no end.
        """
        if not self.scale > 0.0:
            raise UsageError(f"scale must be above 0, not {self.scale:g}")
        if self.quench_end > self.scale and not self.quench_rate > 1.0:
            raise UsageError(f"quench_rate must be above 1, not {self.quench_rate:g}")
        if self.temperature > 0.0 and not (0.0 < self.cooling_rate < 1.0 and self.temperature_end):
            raise UsageError(
                "a temperature requires a cooling_rate between 0 and 1 and a temperature_end above "
                f"0, not {self.cooling_rate:g} and {self.temperature_end:g}"
            )
        stages = []
        for stage in self._endless():
            stages.append(stage)
            if len(stages) > _STAGES:
                raise UsageError(
                    f"more than {_STAGES} stages of annealing: choose rates farther from 1, or "
                    "ends closer to the start"
                )
        return tuple(stages)

    def _endless(self) -> Iterator[AnnealingStage]:
        """Yield cooling, then quenching stages; the last scale is ``quench_end`` itself."""
        temperature = self.temperature
        while temperature > 0.0 and temperature >= self.temperature_end:
            yield AnnealingStage(self.scale, temperature)
            temperature *= self.cooling_rate
        scale = self.scale
        yield AnnealingStage(scale)
        # Rounding must not make a stage of its own.
        while scale * (1.0 + 1e-9) < self.quench_end:
            scale = min(scale * self.quench_rate, self.quench_end)
            yield AnnealingStage(scale)

    def descent_settings(self) -> DescentSettings:
        """Return the start, regularizer and stopping rule of the stages."""
        return DescentSettings(
            l1=self.l1,
            l2=self.l2,
            learns_scale=self.learn_scale,
            iterations=self.stage_iterations,
            tolerance=self.flatness,
            scaling=self.scaling,
            center=self.center,
            start_spread=self.start_spread,
        )


def fit_stages(
    problem: Problem,
    initial: Weights,
    stages: tuple[AnnealingStage, ...],
    settings: DescentSettings,
    objective: Callable[[AnnealingStage, Floats], Objective],
    progress: Progress,
) -> Solution:
    """Minimize an objective stage by stage.

    The search starts from the initial weights, scaled so that model scores within lists have the
    standard deviation ``start_spread``; from 0 if the scores do not differ.

    Args:
        problem: hypotheses, metric and active features.
        stages: at least one.
        settings: start, regularizers and stopping rule.
        objective: ``(stage, weights) -> objective``, called at the start of each stage with the
            weights that the decoder would have then, float64 ``[n_features]``.
        progress: called after each stage.

    Raises:
        OptimizerError: the active features do not differ within sentences, or the fitted weights
            are all zero or not finite.
    """
    coordinates = Coordinates.of(problem, initial, settings.start_spread)
    if not (coordinates.variances[: int(problem.active_mask.sum())] > 0.0).any():
        raise OptimizerError(
            "all hypotheses of a sentence have the same active features: nothing to learn"
        )
    x, history = _descend(problem, initial, coordinates, stages, settings, objective, progress)
    if coordinates.inactive is not None and not x[-1] > 0.0:
        held = replace(coordinates, held=True)
        x, history = _descend(problem, initial, held, stages, settings, objective, progress)
    weights = coordinates.decoder_weights(x, initial)
    if not (np.isfinite(weights).all() and weights.any()):
        raise OptimizerError(
            "the fitted weights are all zero or not finite: the features do not separate good "
            "hypotheses from bad ones, or the regularization is too strong (l1, l2)"
        )
    solution = score_solution(problem, weights, tuple(history))
    return solution if settings.l1 == 0.0 else count_remaining(problem, solution)


def _descend(
    problem: Problem,
    initial: Floats,
    coordinates: Coordinates,
    stages: tuple[AnnealingStage, ...],
    settings: DescentSettings,
    objective: Callable[[AnnealingStage, Floats], Objective],
    progress: Progress,
) -> tuple[Floats, list[dict[str, Any]]]:
    """Return where the last stage ended, float64 ``[n_coordinates]``, and all steps."""
    history: list[dict[str, Any]] = []
    x = coordinates.start / stages[0].scale
    center = x if settings.center == "start" else None
    for number, stage in enumerate(stages):
        usable = coordinates.inactive is None or x[-1] > 0.0
        now = coordinates.decoder_weights(x, initial) if usable else initial
        cost = objective(stage, now)
        fit, scale = minimize_stage(cost, coordinates, x, stage.scale, settings, center)
        x = fit.weights
        about = {"stage": number + 1, "scale": scale, "temperature": stage.temperature}
        history.extend({**about, **step} for step in fit.rounds)
        progress(number + 1, len(stages), "stages")
    # Only the last stage must converge.
    history[-1]["converged"] = fit.has_converged
    return x, history
