"""The protocol by which batch MIRA searches hypotheses that are not lists.

A search graph has more hypotheses than can be listed. It can find the model's best one, and hope
and fear (Chiang 2012). ``forest.oracles.graph_search.GraphSearch`` is such a search.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

N_STATISTICS = 9
"""Number of statistics of ``metrics.Bleu``, the metric of searches."""


class SearchHypothesis(Protocol):
    """A hypothesis that a search found."""

    @property
    def columns(self) -> NDArray[np.int32]:
        """Its features, ascending."""

    @property
    def values(self) -> NDArray[np.float32]:
        """Their values."""

    @property
    def statistics(self) -> NDArray[np.float32]:
        """Float32 ``[9]``, statistics of ``metrics.Bleu``."""


class HopeAndFear(Protocol):
    """A hope and a fear, and their scores with the background."""

    @property
    def hope(self) -> SearchHypothesis:
        """The maximum of model score plus metric."""

    @property
    def fear(self) -> SearchHypothesis:
        """The maximum of model score minus metric."""

    @property
    def hope_gain(self) -> np.float32:
        """BLEU with the background, times the reference length of both."""

    @property
    def fear_gain(self) -> np.float32:
        """The same of the fear."""


class HopeFearSearch(Protocol):
    """Finds hypotheses of sentences."""

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""

    def hope_and_fear(
        self,
        sentence: int,
        weights: NDArray[np.float32],
        background: NDArray[np.float32],
        *,
        safe_hope: bool,
    ) -> HopeAndFear:
        """Return hope and fear at float32 weights and a float32 ``[9]`` background."""

    def score(self, weights: NDArray[np.floating]) -> float:
        """Return BLEU of the 1-best hypotheses."""

    def model_best(self, sentence: int, weights: NDArray[np.float32]) -> SearchHypothesis:
        """Return the hypothesis of the highest model score."""

    def widen(self, beam: int) -> HopeFearSearch:
        """Return a search that keeps ``beam`` partial hypotheses where this one keeps one."""
