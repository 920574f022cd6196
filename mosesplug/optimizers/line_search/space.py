"""What a search for weights asks of hypotheses, however they are held.

MERT climbs along lines on which the corpus score is known exactly. Lists of hypotheses know it
(``line_search.LineSpace``), and so may anything else that can tell which hypotheses win where on
a line, as search graphs can (Macherey et al. 2008): those are given to a problem as its *source*.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["LineSearcher", "SearchSpace", "SpaceSource", "Surface"]

Vector = NDArray[np.float64]

Surface = tuple[Vector, Vector]
"""The score along a line: thresholds, float64 ``[m]``, sorted, and scores, float64 ``[m + 1]``;
``scores[i]`` holds between ``thresholds[i - 1]`` and ``thresholds[i]``."""


class LineSearcher(Protocol):
    """Finds the score along lines; one climb has one, with whatever memory it works in."""

    def along_axes(self, axes: NDArray[np.int64], point: Vector) -> Iterable[Surface]:
        """The score along some axes.

        Args:
            axes: int64, which of the active features.
            point: where the lines start, as ``SearchSpace.at`` gives it.
        """

    def along(self, directions: Vector, point: Vector) -> Iterable[Surface]:
        """The score along ``directions``, float64 ``[n_directions, n_active]``."""


class SearchSpace(Protocol):
    """Hypotheses under weights of which some, the active ones, are searched for."""

    @property
    def spread(self) -> Vector:
        """How much each active feature differs within a sentence, float64 ``[n_active]``.

        The mean over sentences of its greatest value less its least.
        """

    def at(self, weights: Vector) -> Vector:
        """A point, given by its active weights (float64 ``[n_active]``), as the others take it.

        What it is made of is the space's own business: with lists it is all model scores.
        """

    def decode(self, point: Vector) -> float:
        """Corpus score of the hypotheses that score highest there."""

    def searcher(self, n_directions: int) -> LineSearcher:
        """What searches lines, for one thread; up to so many at once need no more memory."""


class SpaceSource(Protocol):
    """Hypotheses that are not lists, as ``Problem.source`` has them."""

    def space(self, active: NDArray[np.bool_], weights: Vector) -> SearchSpace:
        """The space of the active weights (bool ``[n_features]``); the others keep ``weights``.

        Raises:
            MosesplugError: the hypotheses cannot be searched.
        """

    def score(self, weights: Vector) -> float:
        """Corpus score of decoding at ``weights``, float64 ``[n_features]``."""

    def statistics(self, weights: Vector) -> Vector:
        """The metric's statistics of decoding there, summed, float64 ``[n_stats]``."""
