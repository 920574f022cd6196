"""The protocols by which a search for weights sees hypotheses.

MERT climbs along lines on which the corpus score is known exactly. Lists of hypotheses know it
(``LineSpace``), and so does any other representation that knows which hypotheses win where on a
line, such as search graphs (Macherey et al. 2008): ``Problem.source`` holds it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["LineSearcher", "SearchSpace", "SpaceSource", "Surface"]

Vector = NDArray[np.float64]

Surface = tuple[Vector, Vector]
"""The score along a line: thresholds, float64 ``[m]``, sorted, and scores, float64 ``[m + 1]``.
``scores[i]`` is valid between ``thresholds[i - 1]`` and ``thresholds[i]``."""


class LineSearcher(Protocol):
    """Finds the score along lines; each climb has its own, with its working memory."""

    def along_axes(self, axes: NDArray[np.int64], point: Vector) -> Iterable[Surface]:
        """Return the score along some axes.

        Args:
            axes: int64, numbers of active features.
            point: where the lines start, from ``SearchSpace.at``.
        """

    def along(self, directions: Vector, point: Vector) -> Iterable[Surface]:
        """Return the score along ``directions``, float64 ``[n_directions, n_active]``."""


class SearchSpace(Protocol):
    """Hypotheses under weights of which the active ones are searched for."""

    @property
    def spread(self) -> Vector:
        """Spread of each active feature within a sentence, float64 ``[n_active]``.

        The mean over sentences of its greatest value minus its least.
        """

    def at(self, weights: Vector) -> Vector:
        """Return the point of active weights, float64 ``[n_active]``, for other methods.

        Its contents depend on the space: with lists, all model scores.
        """

    def decode(self, point: Vector) -> float:
        """Return the corpus score of the hypotheses that score highest there."""

    def searcher(self, n_directions: int) -> LineSearcher:
        """Return a searcher for one thread, with memory for so many directions at once."""


class SpaceSource(Protocol):
    """Hypotheses that are not lists, for ``Problem.source``."""

    def space(self, active: NDArray[np.bool_], weights: Vector) -> SearchSpace:
        """Return the space of the active weights, bool ``[n_features]``.

        Raises:
            MosesplugError: the hypotheses cannot be searched.
        """

    def score(self, weights: Vector) -> float:
        """Return the corpus score of decoding at ``weights``, float64 ``[n_features]``."""

    def statistics(self, weights: Vector) -> Vector:
        """Return the summed statistics of decoding there, float64 ``[n_stats]``."""
