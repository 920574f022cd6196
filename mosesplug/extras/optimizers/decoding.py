"""The corpus score at many points at once, by decoding the lists at each.

One pass over the sentences serves all points, while a sentence's features stay in the first cache.
Model scores are summed in the order of the features: hypotheses with the same features tie exactly,
and ties go to the first.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Ints
from mosesplug.kernels import kernel
from mosesplug.optimizers.line_search.lists import LineSpace
from mosesplug.optimizers.lists.arrangement import add_scores, longest_sentence


@dataclass(frozen=True)
class PointDecoder:
    """Decodes the lists of a space at any points.

    Attributes:
        space: the lists, arranged for line search.
        threads: threads that share the points; scores do not depend on their number.
    """

    space: LineSpace
    threads: int = 1

    def scores(self, points: Floats) -> Floats:
        """Return corpus scores, float64 ``[m]``, at active weights, ``[m, n_active]``.

        They equal those of ``space.decode(space.at(point))`` to the last bit.
        """
        points = np.ascontiguousarray(points, dtype=np.float64)
        totals = np.empty((len(points), self.space.stats.shape[1]))
        parts = max(1, min(self.threads, len(points)))
        bounds = [len(points) * part // parts for part in range(parts + 1)]

        def decode(part: int) -> None:
            mine = slice(bounds[part], bounds[part + 1])
            _decode_at(
                self.space.offsets,
                self.space.axes.slopes,
                self.space.base,
                points[mine],
                self.space.stats,
                totals[mine],
            )

        if parts == 1:
            decode(0)
        else:
            with ThreadPoolExecutor(parts) as pool:
                list(pool.map(decode, range(parts)))
        return np.asarray(self.space.metric.score(totals), dtype=np.float64)


@kernel
def _decode_at(
    offsets: Ints,
    slopes: NDArray[Any],
    base: Floats,
    points: Floats,
    stats: NDArray[Any],
    totals: Floats,
) -> None:
    """Write the summed statistics of the 1-best at each point to ``totals``.

    Args:
        offsets: int64 ``[n_sentences + 1]``; no sentence is empty.
        slopes: arranged features, float32 ``[n_hyps * n_active]``.
        base: float64 ``[n_hyps]``, the share of the inactive features.
        points: float64 ``[m, n_active]``.
        stats: int32 or float64 ``[n_hyps, n_stats]``.
        totals: output, float64 ``[m, n_stats]``.
    """
    n_points, n_features = points.shape
    totals[:] = 0.0
    scores = np.empty(longest_sentence(offsets))
    for sentence in range(len(offsets) - 1):
        start = offsets[sentence]
        size = offsets[sentence + 1] - start
        for point in range(n_points):
            for row in range(size):
                scores[row] = base[start + row]
            add_scores(slopes, start, points[point], n_features, scores[:size])
            best = 0
            for row in range(1, size):
                if scores[row] > scores[best]:
                    best = row
            for k in range(stats.shape[1]):
                totals[point, k] += stats[start + best, k]
