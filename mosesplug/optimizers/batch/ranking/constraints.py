"""Constraints on PRO's pairs, against hypotheses that are too long and too bad.

PRO keeps the pairs with the largest differences, which favors *monsters*: overly long hypotheses
with very low scores. Weights that produce them bring more of them into the next lists, and the
output drifts away from the references' length. Nakov, Guzmán and Vogel (2013) compare remedies:
cut-offs, outlier filters, sampling by how typical a difference is, and random acceptance instead of
the largest differences. The defaults set no limit, as in Hopkins and May's PRO.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.batch.ranking.pairs import Draw, PairRule
from mosesplug.options import Opt

Floats = NDArray[np.float64]

_FINE = 1 << 30
"""Random integers below this represent numbers between 0 and 1."""


@dataclass(frozen=True)
class ConstraintOptions:
    """Settings of the pairs; the defaults are Hopkins and May's own rules."""

    acceptance: Annotated[
        Literal["largest", "sorted", "random"],
        Opt(
            "candidate pairs to keep: largest score differences, or a random sample",
            details="largest: the earliest draws above a threshold, as Moses. sorted: exactly the "
            "largest differences, as in the paper. random: the earliest draws.",
            source="pro of Moses; Hopkins & May 2011, Figure 2; after Nakov et al. 2013",
        ),
    ] = "largest"
    maximum_difference: Annotated[
        float,
        Opt(
            "pairs whose sentence scores differ by more are dropped; 0: no limit",
            source="after Nakov et al. 2013, cut-offs",
            minimum=0.0,
        ),
    ] = 0.0
    maximum_length_difference: Annotated[
        int,
        Opt(
            "pairs whose lengths differ by more words are dropped; 0: no limit",
            source="after Nakov et al. 2013, cut-offs",
            minimum=0,
        ),
    ] = 0
    score_outliers: Annotated[
        float,
        Opt(
            "ignore scores beyond this many deviations within a sentence; 0: none",
            source="after Nakov et al. 2013, outliers",
            minimum=0.0,
        ),
    ] = 0.0
    length_outliers: Annotated[
        float,
        Opt(
            "ignore lengths beyond this many deviations within a sentence; 0: none",
            source="after Nakov et al. 2013, outliers",
            minimum=0.0,
        ),
    ] = 0.0
    typical: Annotated[
        Literal["none", "score", "length"],
        Opt(
            "accept pairs with typical differences of score or length",
            details="Each with the probability of its difference, relative to none, if hypotheses "
            "were normally distributed.",
            source="after Nakov et al. 2013, stochastic sampling",
        ),
    ] = "none"

    def rule(self, scores: Floats, lengths: NDArray[np.int32], draw: Draw) -> PairRule | None:
        """Return the settings as a rule for ``sample_pairs``; None: all pairs are allowed.

        Args:
            scores: float64 ``[n_hyps]``, of each hypothesis.
            lengths: int32 ``[n_hyps]``, tokens of each.
            draw: for sampling by how typical a difference is; otherwise not called.
        """
        length = lengths.astype(np.float64)
        tests: list[PairRule] = []
        if self.maximum_difference > 0.0:
            tests.append(_close(scores, self.maximum_difference))
        if self.maximum_length_difference > 0:
            tests.append(_close(length, float(self.maximum_length_difference)))
        if self.score_outliers > 0.0:
            tests.append(_usual(scores, self.score_outliers))
        if self.length_outliers > 0.0:
            tests.append(_usual(length, self.length_outliers))
        if self.typical != "none":
            tests.append(_typical(scores if self.typical == "score" else length, draw))
        if not tests:
            return None
        return lambda *pairs: np.logical_and.reduce([test(*pairs) for test in tests])


def _close(values: Floats, most: float) -> PairRule:
    """Return a rule for pairs that differ by at most ``most``."""
    return lambda sentence, first, second: np.abs(values[first] - values[second]) <= most


def _usual(values: Floats, deviations: float) -> PairRule:
    """Return a rule for pairs within so many standard deviations of the mean."""

    def test(
        sentence: slice, first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        own = values[sentence]
        reach = deviations * own.std()
        usual = np.abs(own - own.mean()) <= reach
        found: NDArray[np.bool_] = usual[first - sentence.start] & usual[second - sentence.start]
        return found

    return test


def _typical(values: Floats, draw: Draw) -> PairRule:
    """Return a rule that draws pairs by the density of their difference.

    If values are normally distributed with variance ``v``, their differences are so with ``2v``.
    The density is relative to that of no difference.
    """

    def test(
        sentence: slice, first: NDArray[np.int64], second: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        gaps, variance = values[first] - values[second], values[sentence].var()
        density = np.exp(-(gaps**2) / (4.0 * variance)) if variance > 0.0 else np.ones(len(gaps))
        return np.asarray(draw(_FINE, len(gaps)) < density * _FINE)

    return test
