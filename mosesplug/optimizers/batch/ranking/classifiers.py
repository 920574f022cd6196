"""What learns to tell better hypotheses from worse: a binary classifier on pairs' differences.

The survey's equation of ranking (section 3.5) leaves the classifier open: softmax, which for two
classes is logistic regression, hinge or perceptron loss between right and wrong order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.fits import Fit, fit_active
from mosesplug.optimizers.batch.ranking.hinge import HingeFit, fit_hinge
from mosesplug.optimizers.batch.ranking.logistic import fit_logistic
from mosesplug.optimizers.batch.ranking.pairs import RankedPairs, differences
from mosesplug.optimizers.batch.ranking.perceptron import fit_perceptron
from mosesplug.optimizers.problem import Problem

__all__ = ["ClassifierOptions", "describe_fit", "fit_pairs"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class ClassifierOptions:
    """Settings of the classifier, with the defaults of ``megam``."""

    classifier: Literal["logistic", "hinge", "perceptron"] = field(
        default="logistic",
        metadata={
            "help": "what learns from the pairs: logistic regression, a support vector machine "
            "(hinge), or the averaged perceptron",
            "source": "Hopkins & May 2011; Neubig & Watanabe 2016, section 3.5",
        },
    )
    prior_precision: float = field(
        default=1.0,
        metadata={
            "help": "of the Gaussian prior on the classifier's weights, 1 over its variance",
            "source": "megam -lambda",
            "only_with": "classifier=logistic|hinge",
            "minimum": 0.0,
        },
    )
    perceptron_epochs: int = field(
        default=10,
        metadata={
            "help": "passes of the perceptron over the pairs, at most",
            "source": "Collins 2002",
            "only_with": "classifier=perceptron",
            "minimum": 1,
        },
    )


def fit_pairs(
    problem: Problem,
    initial: Floats,
    pairs: RankedPairs,
    options: ClassifierOptions,
    rng: np.random.Generator,
) -> tuple[Floats, Fit]:
    """All weights, and the classifier that the active ones come from.

    A pair is an example of either class, once in each direction. Both have the same loss: one
    direction under half the prior has the same minimum. Weights that are not active keep their
    values, and the others are found in proportion to them (``fit_in_proportion``).

    Args:
        problem: hypotheses and active features.
        initial: float64 ``[n_features]``, checked.
        pairs: of hypotheses.
        options: settings.
        rng: of the perceptron's orders.

    Raises:
        OptimizerError: no active feature differs within pairs, or nothing was learnt of them.
    """
    from scipy.sparse import csr_array, hstack

    examples = differences(problem.tuning_set, pairs, problem.active_mask)

    def fit(column: Floats | None, offsets: Floats | float) -> Fit:
        own = examples
        if column is not None:
            own = hstack([examples, csr_array(column[:, None])], format="csr")
        return _fit(own, offsets, options, rng)

    return fit_active(
        problem, initial, lambda scores: scores[pairs.better] - scores[pairs.worse], fit
    )


def _fit(
    examples: Any,
    offsets: Floats | float,
    options: ClassifierOptions,
    rng: np.random.Generator,
) -> Fit:
    precision = 0.5 * options.prior_precision
    if options.classifier == "hinge":
        return fit_hinge(examples, precision=precision, offsets=offsets)
    if options.classifier == "perceptron":
        return fit_perceptron(examples, rng, offsets=offsets, epochs=options.perceptron_epochs)
    labels = np.ones(examples.shape[0])
    return fit_logistic(examples, labels, precision=precision, offsets=offsets)


def describe_fit(pairs: RankedPairs, fit: Fit, options: ClassifierOptions) -> Mapping[str, Any]:
    """The step as a history has it; a perceptron looks for no minimum, and has none to miss."""
    ended = "without_mistakes" if options.classifier == "perceptron" else "converged"
    step = {
        "pairs": len(pairs),
        "loss": fit.loss,
        "iterations": fit.iterations,
        ended: fit.converged,
    }
    return {**step, "gap": fit.gap} if isinstance(fit, HingeFit) else step
