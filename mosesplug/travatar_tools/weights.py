"""The weights that ``batch-tune`` writes."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace

__all__ = ["printed_weights"]


def printed_weights(
    space: FeatureSpace, weights: NDArray[np.float64], given: Collection[str]
) -> dict[str, float]:
    """Return the weights to write by name.

    Travatar leaves out weights that became 0. Here, only sparse features with a weight of 0 are
    left out, and only if they had no starting weight: programs look up the weight of each feature.

    Args:
        space: the features.
        weights: float64 ``[n_features]``.
        given: features with a starting weight.
    """
    pairs = zip(space.labels, weights.tolist(), strict=True)
    return {
        name: value
        for column, (name, value) in enumerate(pairs)
        if value or column < space.n_dense or name in given
    }
