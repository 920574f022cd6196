"""Binary classifiers on the differences of pairs.

The survey's equation of ranking (section 3.5) leaves the classifier open: softmax, which for two
classes is logistic regression, hinge or perceptron loss between right and wrong order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers.batch.fits import WeightFit, fit_active
from mosesplug.optimizers.batch.ranking.hinge import HingeFit, fit_hinge
from mosesplug.optimizers.batch.ranking.logistic import fit_logistic
from mosesplug.optimizers.batch.ranking.pairs import RankedPairs, differences
from mosesplug.optimizers.batch.ranking.perceptron import fit_perceptron
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.solvers.bounded import Box
from mosesplug.options import Opt

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassifierOptions:
    """Settings of the classifier, with the defaults of ``megam``."""

    classifier: Annotated[
        Literal["logistic", "hinge", "perceptron"],
        Opt(
            "classifier of pairs: logistic regression, support vector machine, or averaged "
            "perceptron",
            source="Hopkins & May 2011; Neubig & Watanabe 2016, section 3.5",
        ),
    ] = "logistic"
    prior_precision: Annotated[
        float,
        Opt(
            "precision (1/variance) of the Gaussian prior on the classifier's weights",
            source="megam -lambda",
            only_with="classifier=logistic|hinge",
            minimum=0.0,
        ),
    ] = 1.0
    perceptron_epochs: Annotated[
        int,
        Opt(
            "maximum passes of the perceptron over the pairs",
            source="Collins 2002",
            only_with="classifier=perceptron",
            minimum=1,
        ),
    ] = 10


def fit_pairs(
    problem: Problem,
    initial: Floats,
    pairs: RankedPairs,
    options: ClassifierOptions,
    rng: np.random.Generator,
) -> tuple[Floats, WeightFit]:
    """Return all weights, and the classifier that the active ones come from.

    A pair is an example of each class, once in each direction. Both have the same loss: one
    direction with half the prior has the same minimum. Inactive weights keep their values
    (``fit_active``).

    Args:
        problem: hypotheses and active features.
        initial: float64 ``[n_features]``, checked.
        pairs: the pairs of hypotheses.
        options: settings.
        rng: the random generator of the perceptron's orders.

    Raises:
        OptimizerError: the fitted weights are all zero.
        UsageError: the perceptron with bounds other than 0, since its loss prefers no scale.
    """
    if options.classifier == "perceptron" and not problem.has_conic_bounds:
        raise UsageError(
            "the perceptron keeps bounds of 0 only; choose the classifier logistic or hinge"
        )
    from scipy.sparse import csr_array, hstack

    examples = differences(problem.tuning_set, pairs, problem.active_mask)

    def fit(column: Floats | None, offsets: Floats | float, box: Box | None = None) -> WeightFit:
        own = examples
        if column is not None:
            own = hstack([examples, csr_array(column[:, None])], format="csr")
        return _fit(own, offsets, options, rng, box)

    return fit_active(
        problem, initial, lambda scores: scores[pairs.better] - scores[pairs.worse], fit
    )


def _fit(
    examples: Any,
    offsets: Floats | float,
    options: ClassifierOptions,
    rng: np.random.Generator,
    box: Box | None,
) -> WeightFit:
    precision = 0.5 * options.prior_precision
    if options.classifier == "hinge":
        return fit_hinge(examples, precision=precision, offsets=offsets, box=box)
    if options.classifier == "perceptron":
        epochs = options.perceptron_epochs
        return fit_perceptron(examples, rng, offsets=offsets, epochs=epochs, box=box)
    labels = np.ones(examples.shape[0])
    return fit_logistic(examples, labels, precision=precision, offsets=offsets, box=box)


def describe_fit(
    pairs: RankedPairs, fit: WeightFit, options: ClassifierOptions
) -> Mapping[str, Any]:
    """Return the step for the history; a perceptron has no minimum to converge to."""
    ended = "without_mistakes" if options.classifier == "perceptron" else "converged"
    step = {
        "pairs": len(pairs),
        "loss": fit.loss,
        "iterations": fit.iterations,
        ended: fit.has_converged,
    }
    return {**step, "gap": fit.gap} if isinstance(fit, HingeFit) else step
