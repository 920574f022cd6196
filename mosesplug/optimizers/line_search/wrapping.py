"""Upper hull by gift wrapping (Jarvis 1973), where rounding may decide.

Three points nearly on one line are on the hull or not by the last bits. Then all points of the
sentence decide, in one way that does not depend on what was known before.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import lean_kernel
from mosesplug.optimizers.line_search.marking import HEIGHT, SLOPE, THRESHOLD

__all__ = ["wrap_hull"]


@lean_kernel
def wrap_hull(
    slopes: NDArray[Any],
    heights: NDArray[np.float64],
    points: NDArray[np.float64],
    hull: NDArray[np.int64],
) -> int:
    """Write the upper hull of all points; return its size.

    From the point of the least slope on, the next one is that which overtakes first, and of equal
    ones that of the greatest slope. Rows with empty intervals, by rounding, are dropped. Of equal
    points, the first is taken.

    Args:
        slopes: float32 or float64 ``[n]``, at least one.
        heights: float64 ``[n]``.
        points: output, slopes, heights and thresholds of the hull.
        hull: output, its rows by rising slope.
    """
    row = 0
    for other in range(1, len(slopes)):
        # At minus infinity the least slope is highest; of equal slopes, the greatest height.
        if slopes[other] < slopes[row] or (
            slopes[other] == slopes[row] and heights[other] > heights[row]
        ):
            row = other
    size = 0
    while row >= 0:
        x, y = np.float64(slopes[row]), heights[row]
        threshold = -np.inf
        while size > 0:
            last = size - 1
            threshold = (points[HEIGHT, last] - y) / (x - points[SLOPE, last])
            # The first row has no threshold to be dropped by, even if this one overflows.
            if size == 1 or threshold > points[THRESHOLD, last]:
                break
            size -= 1
        points[SLOPE, size], points[HEIGHT, size] = x, y
        points[THRESHOLD, size], hull[size] = threshold, row
        size += 1
        row, first = -1, np.inf
        for other in range(len(slopes)):
            # Lines of no greater slope never overtake.
            run = slopes[other] - x
            if run > 0.0:
                threshold = (y - heights[other]) / run
                if (
                    row < 0
                    or threshold < first
                    or (threshold == first and slopes[other] > slopes[row])
                ):
                    row, first = other, threshold
    return size
