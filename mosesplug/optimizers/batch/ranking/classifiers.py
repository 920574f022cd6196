"""Binary classifiers on the differences of pairs.

The survey's equation of ranking (section 3.5) leaves the classifier open: softmax, which for two
classes is logistic regression, hinge or perceptron loss between right and wrong order.

The averaged perceptron visits examples in random order; one on the wrong side is added to the
weights. The mean of the weights over all steps decides better than the last ones (Freund & Schapire
1999; Collins 2002). It has no prior and no minimum: it stops after so many passes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Weights
from mosesplug.errors import UsageError
from mosesplug.kernels import kernel, read_only
from mosesplug.optimizers.batch.fits import fit_active
from mosesplug.optimizers.batch.ranking.hinge import fit_hinge
from mosesplug.optimizers.batch.ranking.logistic import fit_logistic
from mosesplug.optimizers.batch.ranking.pairs import RankedPairs, differences
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.solvers.bounded import Box
from mosesplug.optimizers.solvers.quasi_newton import Minimum
from mosesplug.options import Opt


def fit_perceptron(
    examples: Any,
    rng: np.random.Generator,
    *,
    offsets: Floats | float = 0.0,
    counts: Floats | float = 1.0,
    epochs: int = 10,
    box: Box | None = None,
) -> Minimum:
    """Return weights averaged over all steps.

    Args:
        examples: SciPy sparse array (CSR), float64 ``[n_examples, n_features]``.
        rng: the random generator of the order in each pass.
        offsets: float64 ``[n_examples]``, added to the margins.
        counts: float64 ``[n_examples]``, the factor of each example's steps, or of all.
        epochs: maximum passes over the examples; a pass without a mistake is the last.
        box: limits of the weights after each step, and so of the average; None if there are none.

    Returns:
        ``loss`` is the weighted sum of the margins below 0, ``iterations`` counts passes, and
        ``converged`` says whether the last pass made no mistake.
    """
    n_examples, n_features = examples.shape
    indptr, indices = examples.indptr.astype(np.int64), examples.indices.astype(np.int64)
    own_offsets, own_counts = (
        read_only(np.broadcast_to(values, n_examples), np.float64) for values in (offsets, counts)
    )
    weights, late = np.zeros(n_features), np.zeros(n_features)
    low, high = box or (np.full(n_features, -np.inf), np.full(n_features, np.inf))
    weights[:] = np.clip(weights, low, high)
    mistakes, epoch = 1, 0
    while epoch < epochs and mistakes:
        mistakes = _pass(
            indptr, indices, examples.data, own_offsets, own_counts, rng.permutation(n_examples),
            weights, late, epoch * n_examples, low, high,
        )  # fmt: skip
        epoch += 1
    average = weights - late / max(1, epoch * n_examples)
    margins = np.asarray(examples @ average + own_offsets)
    loss = float((own_counts * np.maximum(-margins, 0.0)).sum())
    return Minimum(average, loss, epoch, not mistakes)


@kernel
def _pass(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: NDArray[np.float64],
    offsets: NDArray[np.float64],
    counts: NDArray[np.float64],
    order: NDArray[np.int64],
    weights: NDArray[np.float64],
    late: NDArray[np.float64],
    steps: int,
    low: Weights,
    high: Weights,
) -> int:
    """Make one pass; return the number of mistakes.

    Args:
        indptr: int64 ``[n_examples + 1]``.
        indices: int64 ``[nnz]``.
        data: float64 ``[nnz]``.
        offsets: float64 ``[n_examples]``.
        counts: float64 ``[n_examples]``, factors of the steps.
        order: int64 ``[n_examples]``.
        weights: in and output, float64 ``[n_features]``.
        late: in and output, float64 ``[n_features]``: each change of the weights times the steps
            before it, which the average lacks.
        steps: before this pass.
        low: lower limits of the weights.
        high: upper limits.
    """
    mistakes = 0
    for example in order:
        first, last = indptr[example], indptr[example + 1]
        margin = offsets[example]
        for entry in range(first, last):
            margin += data[entry] * weights[indices[entry]]
        if margin <= 0.0 and last > first:
            mistakes += 1
            for entry in range(first, last):
                column, change = indices[entry], counts[example] * data[entry]
                if not low[column] <= weights[column] + change <= high[column]:
                    limit = low[column] if change < 0.0 else high[column]
                    change = limit - weights[column]
                weights[column] += change
                late[column] += steps * change
        steps += 1
    return mistakes


@dataclass(frozen=True)
class ClassifierOptions:
    """Settings of the classifier, with the defaults of ``megam``."""

    classifier: Annotated[
        Literal["logistic", "hinge", "perceptron"],
        Opt(
            "logistic regression, support vector machine, or averaged perceptron",
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
    l1: Annotated[
        float,
        Opt(
            "factor of |w|_1, added to the loss of all pairs, which makes weights exactly 0",
            source="Andrew & Gao 2007",
            only_with="classifier=logistic",
            minimum=0.0,
        ),
    ] = 0.0
    perceptron_epochs: Annotated[
        int,
        Opt(
            "most passes over pairs",
            source="Collins 2002",
            only_with="classifier=perceptron",
            minimum=1,
        ),
    ] = 10


def fit_pairs(
    problem: Problem,
    initial: Weights,
    pairs: RankedPairs,
    options: ClassifierOptions,
    rng: np.random.Generator,
) -> tuple[Floats, Minimum]:
    """Return all weights, and the classifier that the active ones come from.

    A pair is an example of each class, once in each direction. Both have the same loss: one
    direction with half the prior has the same minimum. Inactive weights keep their values
    (``fit_active``).

    Args:
        problem: hypotheses and active features.
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
    counts = pairs.take(problem.tuning_set.row_weights)

    def fit(column: Floats | None, offsets: Floats | float, box: Box | None = None) -> Minimum:
        own = examples
        if column is not None:
            own = hstack([examples, csr_array(column[:, None])], format="csr")
        # The added column holds the score of inactive weights, which keep their values.
        is_tuned = np.arange(own.shape[1]) < examples.shape[1]
        return _fit(own, offsets, counts, options, rng, box, is_tuned)

    return fit_active(
        problem, initial, lambda scores: scores[pairs.better] - scores[pairs.worse], fit
    )


def _fit(
    examples: Any,
    offsets: Floats | float,
    counts: Floats | float,
    options: ClassifierOptions,
    rng: np.random.Generator,
    box: Box | None,
    is_tuned: NDArray[np.bool_],
) -> Minimum:
    precision = 0.5 * options.prior_precision
    if options.classifier == "hinge":
        return fit_hinge(examples, precision=precision, offsets=offsets, counts=counts, box=box)
    if options.classifier == "perceptron":
        epochs = options.perceptron_epochs
        return fit_perceptron(examples, rng, offsets=offsets, counts=counts, epochs=epochs, box=box)
    labels = np.ones(examples.shape[0])
    penalties = np.where(is_tuned, 0.5 * options.l1, 0.0) if options.l1 > 0.0 else None
    return fit_logistic(
        examples,
        labels,
        precision=precision,
        offsets=offsets,
        box=box,
        penalties=penalties,
        counts=counts,
    )


def describe_fit(pairs: RankedPairs, fit: Minimum, options: ClassifierOptions) -> Mapping[str, Any]:
    """Return the step for the history; a perceptron has no minimum to converge to."""
    step = {"pairs": len(pairs), **fit.facts()}
    if options.classifier == "perceptron":
        step["without_mistakes"] = step.pop("converged")
    return step
