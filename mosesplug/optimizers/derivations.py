"""How optimizers see the derivations of search graphs.

A graph has more derivations than can be listed. It can list the best ones at given weights, sum
over all of them under the model's distribution, and search them for hope and fear.
``Problem.derivations`` holds such graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.metrics.linear_bleu import LinearBleu
from mosesplug.tuning_set import TuningSet

__all__ = [
    "LIST_SIZE",
    "DerivationSource",
    "Objective",
    "OracleChoice",
    "OracleUpdates",
    "choose_sentences",
    "count_reachable",
    "require_local",
]

Floats = NDArray[np.float64]

LIST_SIZE = 100
"""Translations of a sentence, at most, that measure variances and spreads on search graphs."""

OracleUpdates = Literal["local", "bold", "hybrid"]
"""What learners move towards (Liang et al. 2006): the best hypotheses (``local``); derivations that
yield a reference, without sentences that have none (``bold``); or these where there are some, and
else the best hypotheses (``hybrid``)."""


@runtime_checkable
class OracleChoice(Protocol):
    """Settings of an algorithm that has several kinds of oracles."""

    @property
    def oracles(self) -> str:
        """The kind; ``bold`` and ``hybrid`` are those of ``OracleUpdates``."""


Objective = Callable[[Floats], tuple[float, Floats]]
"""From the weights of a distribution, float64 ``[n_features]``, to a value and its gradient."""


class DerivationSource(Protocol):
    """The derivations of each sentence's search graphs."""

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have graphs."""

    def best_lists(self, weights: Floats, k: int) -> TuningSet:
        """Return lists of up to ``k`` best distinct translations at ``weights``.

        Each translation has the features of its best derivation. Lists are shorter where the best
        translations have many derivations each. Sentences are counted from 0.
        """

    def matches(self) -> NDArray[np.bool_]:
        """Return whether some translation has a match of each n-gram length, bool ``[4]``."""

    def risk(self, gains: LinearBleu, temperature: float) -> Objective:
        """Return the mean expected error minus entropy; the error is minus the gain."""

    def xbleu(self, temperature: float) -> Objective:
        """Return minus BLEU of expected statistics, minus entropy."""

    def reachable(self) -> NDArray[np.bool_]:
        """Return whether a derivation of each sentence yields a reference, bool."""

    def softmax(
        self,
        gains: LinearBleu,
        tolerance: float | None,
        margin: float,
        sentences: NDArray[np.int64] | None = None,
        *,
        bold: bool = False,
    ) -> Objective:
        """Return minus the mean log-probability of the oracles.

        Args:
            gains: gain of a derivation; its cost is the highest gain of its sentence minus its own.
            tolerance: oracles use only edges of derivations with at most this cost; None: the best
                derivation of each sentence is its oracle.
            margin: factor of the costs, which are added to the model scores of other derivations.
            sentences: int64; places of the sentences of the mean, from 0; None: all.
            bold: the oracles of a sentence whose graph yields a reference are all derivations that
                yield one, instead.
        """

    def hopes_and_fears(
        self,
        sentences: NDArray[np.int64],
        weights: Floats,
        k: int,
        beam: int,
        *,
        bold: bool = False,
    ) -> TuningSet:
        """Return lists of translations for learners of margins, of the given sentences.

        A list has the ``k`` best translations by model score, first the 1-best, then the ``k``
        best each by model score plus and minus sentence BLEU (BLEU+1), without repetitions.

        Args:
            sentences: int64; places of sentences, from 0.
            weights: float64 ``[n_features]``.
            k: number of translations of each kind.
            beam: number of partial derivations that a node keeps in the searches by BLEU.
            bold: add the best derivation that yields a reference to the list of each sentence that
                has one, as its oracle.
        """


def choose_sentences(graphs: DerivationSource, updates: OracleUpdates) -> NDArray[np.int64]:
    """Return the sentences to learn from, int64: places from 0.

    Raises:
        OptimizerError: updates are bold or hybrid, and no search graph yields a reference.
    """
    if updates == "local":
        return np.arange(graphs.n_sentences)
    found = np.flatnonzero(graphs.reachable())
    if not len(found):
        raise OptimizerError(
            f"oracles={updates}: no search graph yields a reference of its sentence. References "
            "must be tokenized and cased as the decoder's output is. Prune graphs less, decode "
            "with a larger beam, or learn with local updates."
        )
    return found if updates == "bold" else np.arange(graphs.n_sentences)


def count_reachable(graphs: DerivationSource, updates: OracleUpdates) -> tuple[str, ...]:
    """Return how many sentences get bold updates, as a note; none for local updates."""
    if updates == "local":
        return ()
    found, other = int(graphs.reachable().sum()), {"bold": "left out", "hybrid": "local updates"}
    return (
        f"oracles={updates}: {found} of {graphs.n_sentences} sentences have a derivation of a "
        f"reference; the others: {other[updates]}",
    )


def require_local(updates: str) -> None:
    """Check that updates are possible without search graphs.

    Raises:
        UsageError: they are bold or hybrid.
    """
    if updates in ("bold", "hybrid"):
        raise UsageError(
            f"oracles={updates} needs search graphs (tune --forest, optimize --graphs), not lists "
            "or shards. For lists, see tune --forced-decoding."
        )
