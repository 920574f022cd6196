"""Arrays that grow inside kernels."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel

__all__ = ["double_length"]


@kernel
def double_length(array: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return a copy of twice the length whose first half is the array."""
    larger = np.empty(2 * len(array), dtype=np.int64)
    larger[: len(array)] = array
    return larger
