"""From a problem to weights, in stages: deterministic annealing (survey, section 5.5).

Risk and xBLEU have many local optima, fewer the flatter the distribution is. So it is made flat at
first, and sharper from stage to stage, each of which starts where the one before ended: by lowering
the temperature of the entropy (cooling), then by raising the scale ``gamma`` of the scores
(quenching; Smith & Eisner 2006). Weights are free in length, and would undo a scale if they were
not regularised: with an L2 regulariser, a larger scale is a weaker regulariser of ``gamma w``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.batch.expected.coordinates import Coordinates
from mosesplug.optimizers.batch.expected.descent import DescentSettings, minimise_stage
from mosesplug.optimizers.batch.expected.objectives import Objective
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    corpus_score,
    normalise,
)

__all__ = ["AnnealingOptions", "AnnealingStage", "fit_stages"]

Floats = NDArray[np.float64]

_STAGES = 1000
"""More are a rate too near 1."""


@dataclass(frozen=True)
class AnnealingStage:
    """One descent of several.

    Attributes:
        scale: ``gamma``, of the scores.
        temperature: ``T``, of the entropy.
    """

    scale: float = 1.0
    temperature: float = 0.0


@dataclass(frozen=True)
class AnnealingOptions:
    """Settings of objectives that are annealed."""

    l2: float = field(
        default=1e-3,
        metadata={
            "help": "of the regulariser, lambda/2 |w|^2, beside a distribution by gamma w: the "
            "larger gamma, the weaker; 0 for none",
            "source": "Smith & Eisner 2006; measured",
            "minimum": 0.0,
        },
    )
    scale: float = field(
        default=1.0,
        metadata={
            "help": "gamma, which multiplies model scores, at first",
            "source": "cicada_learn_kbest --scale",
            "minimum": 0.0,
        },
    )
    quench_end: float = field(
        default=100.0,
        metadata={
            "help": "the scale is raised up to this, each time weights have settled; no more than "
            "the first scale for no quenching",
            "source": "Smith & Eisner 2006; cicada_learn_kbest --quench-end",
            "minimum": 0.0,
        },
    )
    quench_rate: float = field(
        default=10.0,
        metadata={
            "help": "the scale is multiplied by this each time",
            "source": "cicada_learn_kbest --quench-rate",
            "only_with": "quench_end>scale",
            "minimum": 1.0,
        },
    )
    learn_scale: bool = field(
        default=False,
        metadata={
            "help": "let gradients change the scale, too; it is not regularised",
            "source": "Neubig & Watanabe 2016, eq. 45; cicada_learn_kbest without --scale-fixed",
        },
    )
    temperature: float = field(
        default=0.0,
        metadata={
            "help": "of the entropy, at first; 0 for no annealing",
            "source": "minrisk_optimize -T; Neubig & Watanabe 2016, eq. 45",
            "minimum": 0.0,
        },
    )
    temperature_end: float = field(
        default=0.001,
        metadata={
            "help": "the temperature is lowered to this at the first scale, then it is 0",
            "source": "cicada_learn_kbest --temperature-end",
            "only_with": "temperature>0",
            "minimum": 0.0,
        },
    )
    cooling_rate: float = field(
        default=0.5,
        metadata={
            "help": "the temperature is multiplied by this, each time weights have settled",
            "source": "cicada_learn_kbest --temperature-rate",
            "only_with": "temperature>0",
            "minimum": 0.0,
        },
    )
    stage_iterations: int = field(
        default=100,
        metadata={
            "help": "steps of L-BFGS at one scale and temperature, at most",
            "source": "cicada_learn_kbest --iteration",
            "minimum": 1,
        },
    )
    flatness: float = field(
        default=1e-7,
        metadata={
            "help": "weights have settled when a step lowers the objective by a smaller share of "
            "it, or of 1 if that is more",
            "source": "measured",
            "minimum": 0.0,
        },
    )

    def stages(self) -> tuple[AnnealingStage, ...]:
        """The schedule.

        Raises:
            UsageError: it begins nowhere or does not end.
        """
        if not self.scale > 0.0:
            raise UsageError(f"scale is more than 0, not {self.scale:g}")
        if self.quench_end > self.scale and not self.quench_rate > 1.0:
            raise UsageError(f"quench_rate is more than 1, not {self.quench_rate:g}")
        if self.temperature > 0.0 and not (0.0 < self.cooling_rate < 1.0 and self.temperature_end):
            raise UsageError(
                "a temperature is lowered by a cooling_rate between 0 and 1 to a temperature_end "
                f"above 0, not by {self.cooling_rate:g} to {self.temperature_end:g}"
            )
        found = []
        for stage in self._endless():
            found.append(stage)
            if len(found) > _STAGES:
                raise UsageError(
                    f"more than {_STAGES} stages of annealing: take rates farther from 1, or ends "
                    "nearer to the start"
                )
        return tuple(found)

    def _endless(self) -> Iterator[AnnealingStage]:
        """Cooling, then quenching; the last scale is ``quench_end`` itself."""
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

    def regularised(self) -> DescentSettings:
        """What each stage minimises beside the objective."""
        return DescentSettings(
            l1=0.0,
            l2=self.l2,
            learns_scale=self.learn_scale,
            iterations=self.stage_iterations,
            tolerance=self.flatness,
        )


def fit_stages(
    problem: Problem,
    initial: Floats,
    stages: tuple[AnnealingStage, ...],
    settings: DescentSettings,
    objective: Callable[[AnnealingStage, Floats], Objective],
    progress: Progress,
) -> Solution:
    """Descend stage by stage.

    It starts from the initial weights, at a size that gives model scores within lists a standard
    deviation of 1; from 0 if they tell no hypotheses apart.

    Args:
        problem: hypotheses, metric and active features.
        initial: float64 ``[n_features]``, checked.
        stages: at least one.
        settings: regularisers and tolerances.
        objective: ``(stage, weights) -> objective``, called at the beginning of each stage with the
            weights that the decoder would have then, float64 ``[n_features]``.
        progress: told of the stages.

    Raises:
        OptimizerError: nothing tells hypotheses apart, or the weights that were found are all zero
            or not finite.
    """
    coordinates = Coordinates.of(problem, initial)
    if not (coordinates.variances[: int(problem.active_mask.sum())] > 0.0).any():
        raise OptimizerError(
            "all hypotheses of a sentence have the same active features; there is nothing to learn"
        )
    x, history = _descended(problem, initial, coordinates, stages, settings, objective, progress)
    if coordinates.inactive is not None and not x[-1] > 0.0:
        held = replace(coordinates, held=True)
        x, history = _descended(problem, initial, held, stages, settings, objective, progress)
    weights = coordinates.decoders(x, initial)
    if not (np.isfinite(weights).all() and weights.any()):
        raise OptimizerError(
            "the weights that were found are all zero or not finite: features do not tell good "
            "hypotheses from bad ones, or the regulariser is too strong (l1, l2)"
        )
    weights = normalise(problem, weights)
    return Solution(weights, corpus_score(problem, weights), tuple(history))


def _descended(
    problem: Problem,
    initial: Floats,
    coordinates: Coordinates,
    stages: tuple[AnnealingStage, ...],
    settings: DescentSettings,
    objective: Callable[[AnnealingStage, Floats], Objective],
    progress: Progress,
) -> tuple[Floats, list[dict[str, Any]]]:
    """Where the last stage ended, float64 ``[n_coordinates]``, and the steps of all."""
    history: list[dict[str, Any]] = []
    x = coordinates.start / stages[0].scale
    for number, stage in enumerate(stages):
        usable = coordinates.inactive is None or x[-1] > 0.0
        now = coordinates.decoders(x, initial) if usable else initial
        found = minimise_stage(objective(stage, now), coordinates, x, stage.scale, settings)
        x = found.x
        about = {"stage": number + 1, "scale": found.scale, "temperature": stage.temperature}
        history.extend({**about, **step} for step in found.steps)
        progress(number + 1, len(stages), "stages")
    # Stages before the last one lead there, and need not settle.
    history[-1]["converged"] = found.converged
    return x, history
