"""Linear BLEU: an approximation of corpus BLEU as a sum over words and n-grams.

A Taylor expansion of log BLEU gives the gain of a sentence in a corpus of ``c`` words and ``m_n``
matching n-grams: each of its words ``-1 / c``, and each n-gram that its references have
``1 / (4 m_n)`` (Tromble et al. 2008; Neubig & Watanabe 2016, section 5.5.1, equation 52).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.metrics.plain import ORDER

HALF_SLOPE = 0.5
"""Factor of the brevity penalty's slope that suits output as long as the reference."""


@dataclass(frozen=True)
class LinearBleu:
    """Gains of words and n-grams.

    Attributes:
        word: gain of each word of a translation.
        ngrams: float64 ``[4]``; gain of each occurrence of an n-gram of the references, by order.
        reference: gain of each word of the reference length. It matters only if the reference
            length depends on the translation.
    """

    word: float
    ngrams: NDArray[np.float64]
    reference: float = 0.0

    @classmethod
    def of_precisions(cls, precision: float, ratio: float) -> LinearBleu:
        """Derive the gains from typical precisions (Tromble et al. 2008, equation 6).

        Args:
            precision: precision of words, ``m_1 / c``.
            ratio: ratio of each precision to that of n-grams one word shorter.

        The number of words ``c`` does not change the best derivation and is set to 1.
        """
        matches = precision * np.power(ratio, np.arange(ORDER, dtype=np.float64))
        return cls(-1.0, 1.0 / (ORDER * matches))

    def scale(self, factor: float) -> LinearBleu:
        """Return all gains times a factor."""
        return LinearBleu(factor * self.word, factor * self.ngrams, factor * self.reference)

    def gains(self, statistics: NDArray[Any]) -> NDArray[np.float64]:
        """Return the gains of translations, float64 ``[n]``.

        Args:
            statistics: ``[n, 9]``, statistics of ``metrics.Bleu``, whose matches are clipped.
        """
        gains = self.word * statistics[:, 1].astype(np.float64)
        for order, gain in enumerate(self.ngrams.tolist()):
            gains += gain * statistics[:, 2 * order]
        return np.asarray(gains + self.reference * statistics[:, -1])


def linear_bleu(totals: NDArray[np.float64], *, brevity: float = 0.0) -> LinearBleu:
    """Expand BLEU around the statistics of a corpus (survey, equation 52).

    Args:
        totals: float64 ``[9]``, statistics of ``metrics.Bleu``.
        brevity: factor of the slope of the brevity penalty's logarithm, ``1 - r / c``: 1 if the
            output is shorter than the references, 0 if it is longer. Equation 52 takes the
            penalty as constant, which is 0.

    Raises:
        DataError: an n-gram order has no match.
    """
    matches = totals[0:-1:2]
    if not (matches > 0.0).all():
        raise DataError(
            "linear BLEU needs matches of all n-gram orders, but no n-gram of "
            f"{int(np.argmin(matches)) + 1} words matches a reference"
        )
    words, reference = float(totals[1]), float(totals[-1])
    return LinearBleu(
        (brevity * reference / words - 1.0) / words, 1.0 / (ORDER * matches), -brevity / words
    )
