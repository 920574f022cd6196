"""How optimizers see the derivations of search graphs.

A graph has more derivations than can be listed. It can list the best ones at given weights, sum
over all of them under the model's distribution, and search them for hope and fear.
``Problem.derivations`` holds such graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.linear_bleu import LinearBleu
from mosesplug.tuning_set import TuningSet

__all__ = ["LIST_SIZE", "DerivationSource", "Objective"]

Floats = NDArray[np.float64]

LIST_SIZE = 100
"""Translations of a sentence, at most, that measure variances and spreads on search graphs."""

Objective = Callable[[Floats], tuple[float, Floats]]
"""From the weights of a distribution, float64 ``[n_features]``, to a value and its gradient."""


class DerivationSource(Protocol):
    """The derivations of each sentence's search graphs."""

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have graphs."""

    def best_lists(self, weights: Floats, k: int) -> TuningSet:
        """Return lists of the best distinct translations at ``weights``, up to ``k`` a sentence.

        Each translation has the features of its best derivation. Lists are shorter where the best
        translations have many derivations each. Sentences are counted from 0.
        """

    def matches(self) -> NDArray[np.bool_]:
        """Return whether some translation has a match of each n-gram length, bool ``[4]``."""

    def risk(self, gains: LinearBleu, temperature: float) -> Objective:
        """Return the mean expected error minus entropy; the error is minus the gain."""

    def xbleu(self, temperature: float) -> Objective:
        """Return minus BLEU of expected statistics, minus entropy."""

    def softmax(self, gains: LinearBleu, tolerance: float | None, margin: float) -> Objective:
        """Return minus the mean log-probability of the oracles.

        Args:
            gains: gain of a derivation; its cost is the highest gain of its sentence minus its own.
            tolerance: oracles use only edges of derivations with at most this cost; None: the best
                derivation of each sentence is its oracle.
            margin: factor of the costs, which are added to the model scores of other derivations.
        """

    def hopes_and_fears(
        self, sentences: NDArray[np.int64], weights: Floats, k: int, beam: int
    ) -> TuningSet:
        """Return lists of translations for learners of margins, of the given sentences.

        A list has the ``k`` best translations by model score, first the 1-best, then the ``k``
        best each by model score plus and minus sentence BLEU (BLEU+1), without repetitions.

        Args:
            sentences: int64; places of sentences, from 0.
            weights: float64 ``[n_features]``.
            k: number of translations of each kind.
            beam: number of partial derivations that a node keeps in the searches by BLEU.
        """
