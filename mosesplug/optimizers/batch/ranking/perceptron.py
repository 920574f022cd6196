"""The averaged perceptron on examples of one class, such as feature differences.

Examples are visited in random order; one on the wrong side is added to the weights. The mean of the
weights over all steps decides better than the last ones (Freund & Schapire 1999; Collins 2002). It
has no prior and no minimum: it stops after so many passes.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel
from mosesplug.optimizers.batch.fits import WeightFit
from mosesplug.optimizers.solvers.bounded import Box

Floats = NDArray[np.float64]


def fit_perceptron(
    examples: Any,
    rng: np.random.Generator,
    *,
    offsets: Floats | float = 0.0,
    epochs: int = 10,
    box: Box | None = None,
) -> WeightFit:
    """Return weights averaged over all steps.

    Args:
        examples: SciPy sparse array (CSR), float64 ``[n_examples, n_features]``.
        rng: the random generator of the order in each pass.
        offsets: float64 ``[n_examples]``, added to the margins.
        epochs: maximum passes over the examples; a pass without a mistake is the last.
        box: limits of the weights after each step, and so of the average; None: none.

    Returns:
        ``loss`` is the sum of the margins below 0, ``iterations`` counts passes, and ``converged``
        says whether the last pass made no mistake.
    """
    n_examples, n_features = examples.shape
    indptr, indices = examples.indptr.astype(np.int64), examples.indices.astype(np.int64)
    given = np.ascontiguousarray(np.broadcast_to(offsets, n_examples), dtype=np.float64)
    weights, late = np.zeros(n_features), np.zeros(n_features)
    low, high = box or (np.full(n_features, -np.inf), np.full(n_features, np.inf))
    weights[:] = np.clip(weights, low, high)
    mistakes, epoch = 1, 0
    while epoch < epochs and mistakes:
        mistakes = _pass(
            indptr, indices, examples.data, given, rng.permutation(n_examples), weights, late,
            epoch * n_examples, low, high,
        )  # fmt: skip
        epoch += 1
    average = weights - late / max(1, epoch * n_examples)
    margins = np.asarray(examples @ average + given)
    return WeightFit(average, float(np.maximum(-margins, 0.0).sum()), epoch, not mistakes)


@kernel
def _pass(
    indptr: NDArray[np.int64],
    indices: NDArray[np.int64],
    data: NDArray[np.float64],
    offsets: NDArray[np.float64],
    order: NDArray[np.int64],
    weights: NDArray[np.float64],
    late: NDArray[np.float64],
    steps: int,
    low: NDArray[np.float64],
    high: NDArray[np.float64],
) -> int:
    """Make one pass; return the number of mistakes.

    Args:
        indptr: int64 ``[n_examples + 1]``.
        indices: int64 ``[nnz]``.
        data: float64 ``[nnz]``.
        offsets: float64 ``[n_examples]``.
        order: int64 ``[n_examples]``.
        weights: in and output, float64 ``[n_features]``.
        late: in and output, float64 ``[n_features]``: each change of the weights times the steps
            before it, which the average lacks.
        steps: before this pass.
        low: float64 ``[n_features]``, lower limits of the weights.
        high: float64 ``[n_features]``, upper limits.
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
                column, change = indices[entry], data[entry]
                if not low[column] <= weights[column] + change <= high[column]:
                    limit = low[column] if change < 0.0 else high[column]
                    change = limit - weights[column]
                weights[column] += change
                late[column] += steps * change
        steps += 1
    return mistakes
