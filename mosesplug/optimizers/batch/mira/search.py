"""What batch MIRA asks of hypotheses that are no lists: that they can be searched.

A search graph has more hypotheses than can be listed. It knows the model's best of them, and hope
and fear (Chiang 2012); those are given to a problem as its *search*.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.single_bleu import single_bleu

__all__ = [
    "HopeAndFear",
    "HopeFearSearch",
    "SearchHypothesis",
    "first_best_bleu",
    "first_best_statistics",
]


class SearchHypothesis(Protocol):
    """A hypothesis."""

    @property
    def columns(self) -> NDArray[np.int32]:
        """Features that it has, ascending."""

    @property
    def values(self) -> NDArray[np.float32]:
        """Their values."""

    @property
    def statistics(self) -> NDArray[np.float32]:
        """Float32 ``[9]``, statistics of ``metrics.Bleu``."""


class HopeAndFear(Protocol):
    """A hope and a fear, with what they are worth beside the background."""

    @property
    def hope(self) -> SearchHypothesis:
        """What model and metric like."""

    @property
    def fear(self) -> SearchHypothesis:
        """What the model likes and the metric does not."""

    @property
    def hope_worth(self) -> np.float32:
        """BLEU with the background, times the reference length of both."""

    @property
    def fear_worth(self) -> np.float32:
        """The same of the fear."""


class HopeFearSearch(Protocol):
    """Finds hypotheses of sentences."""

    @property
    def n_sentences(self) -> int:
        """How many sentences there are."""

    def hope_and_fear(
        self,
        sentence: int,
        weights: NDArray[np.float32],
        background: NDArray[np.float32],
        *,
        safe_hope: bool,
    ) -> HopeAndFear:
        """Hope and fear at float32 weights and a background of float32 ``[9]``."""

    def model_best(self, sentence: int, weights: NDArray[np.float32]) -> SearchHypothesis:
        """The hypothesis of the highest model score."""


def first_best_bleu(search: HopeFearSearch, weights: NDArray[np.float32]) -> float:
    """BLEU of the first-best hypotheses at ``weights``, float32 ``[n_features]``."""
    return float(single_bleu(first_best_statistics(search, weights)))


def first_best_statistics(
    search: HopeFearSearch, weights: NDArray[np.float32]
) -> NDArray[np.float32]:
    """Their summed statistics, float32 ``[9]``."""
    totals = np.zeros(9, dtype=np.float32)
    for sentence in range(search.n_sentences):
        totals += search.model_best(sentence, weights).statistics
    return totals
