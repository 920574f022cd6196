"""The questions that optimizers ask about hypotheses, wherever they are.

Hypotheses are in n-best lists, in shards of lists that other workers hold, or in search graphs,
which have more derivations than can be listed. An algorithm names the questions that it asks
(``optimizers.registry.Algorithm.asks``); it can learn from all candidates that answer them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import FeatureMask, Floats32, SentenceValues, Statistics, Weights
from mosesplug.errors import UsageError
from mosesplug.tuning_set import TuningSet

__all__ = [
    "GRAPH_ANSWERS",
    "LIST_SIZE",
    "SHARD_ANSWERS",
    "Candidates",
    "HopeFear",
    "Objective",
    "OracleUpdates",
    "Question",
    "ScoredDerivation",
    "SearchSpace",
    "Surface",
    "require_local",
]

LIST_SIZE = 100
"""Translations of a sentence, at most, that measure variances and spreads on search graphs."""

Question = Literal["lists", "lines", "expectations", "updates", "batches"]
"""Questions of an algorithm: rows of the lists' arrays (``lists``), error surfaces (``lines``),
expectations with their gradients, hope and fear of one sentence after the other (``updates`` of
batch MIRA), or lists of hopes and fears for mini-batches."""

GRAPH_ANSWERS: frozenset[Question] = frozenset({"lines", "expectations", "updates", "batches"})
"""Questions that some kind of search graphs answers."""

SHARD_ANSWERS: frozenset[Question] = frozenset({"lines", "expectations", "updates"})
"""Questions whose work the shards of lists share."""

OracleUpdates = Literal["local", "bold", "hybrid"]
"""Targets of learners (Liang et al. 2006): the best hypotheses (``local``); derivations that
yield a reference, without sentences that have none (``bold``); or these where there are some, and
else the best hypotheses (``hybrid``)."""

Objective = Callable[[Weights], tuple[float, Weights]]
"""From the weights of a distribution to a value and its gradient."""

Surface = tuple[NDArray[np.float64], NDArray[np.float64]]
"""The score along a line: thresholds, float64 ``[m]``, sorted, and scores, float64 ``[m + 1]``.
``scores[i]`` is valid between ``thresholds[i - 1]`` and ``thresholds[i]``."""


class SearchSpace(Protocol):
    """Hypotheses under weights of which the active ones are searched for.

    Several threads may search it at once.
    """

    @property
    def spread(self) -> NDArray[np.float64]:
        """Spread of each active feature within a sentence, float64 ``[n_active]``.

        The mean over sentences of its greatest value minus its least.
        """

    def at(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the point of active weights, float64 ``[n_active]``, for other methods.

        Its contents depend on the space: with lists, all model scores.
        """

    def decode(self, point: NDArray[np.float64]) -> float:
        """Return the corpus score of the hypotheses that score highest there."""

    def along_axes(self, axes: NDArray[np.int64], point: NDArray[np.float64]) -> Iterable[Surface]:
        """Return the score along some axes, which are numbers of active features.

        A surface may be overwritten when the next one is taken.
        """

    def along(
        self, directions: NDArray[np.float64], point: NDArray[np.float64]
    ) -> Iterable[Surface]:
        """Return the score along ``directions``, float64 ``[n_directions, n_active]``."""


@dataclass(frozen=True)
class ScoredDerivation:
    """A derivation of a search graph with its features and BLEU statistics.

    Attributes:
        edges: int64; each edge before those of its tails.
        columns: int32; the features of its edges, ascending.
        values: float32; their sums, added in the order of Moses' tools.
        statistics: float32 ``[9]``; statistics of ``metrics.Bleu``.
        score: the model score, summed edge by edge.
    """

    edges: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: Floats32
    statistics: Floats32
    score: np.float32


@dataclass(frozen=True)
class HopeFear:
    """The hope and fear derivations of a graph.

    Attributes:
        hope, fear: derivations with high model score and high (hope) or low (fear) BLEU.
        hope_gain, fear_gain: their BLEU with the background, times the reference length.
    """

    hope: ScoredDerivation
    fear: ScoredDerivation
    hope_gain: np.float32
    fear_gain: np.float32


class Candidates(ABC):
    """Hypotheses of sentences; a subclass defines the questions that it answers.

    All candidates have ``n_sentences``, ``score`` and ``first_best``. No class answers all other
    questions: its methods for those that it does not answer raise ``NotImplementedError``. The
    registry gives an algorithm only candidates that answer its questions.

    Attributes:
        answers: the questions that the class answers.
        shards: of lists only, the ``ListShards``; the lists of this process are one shard.
        sentence_weights: of search graphs only, the weights of their sentences, all above 0; None:
            1 each. Lists have them in their ``TuningSet``.
    """

    shards: Any
    sentence_weights: SentenceValues | None

    answers: ClassVar[frozenset[Question]] = frozenset()

    @property
    @abstractmethod
    def n_sentences(self) -> int:
        """Number of sentences that have hypotheses."""

    @abstractmethod
    def score(self, weights: Weights) -> float:
        """Return the corpus score of the 1-best hypotheses."""

    @abstractmethod
    def first_best(self, weights: Weights) -> Statistics:
        """Return the summed statistics of the 1-best hypotheses.

        Statistics of other sentences can be added to them and scored together.
        """

    def lines(self, active: FeatureMask, weights: Weights) -> SearchSpace:
        """Return the space of the active weights; the others keep ``weights``."""
        raise NotImplementedError

    def best_lists(self, weights: Weights, k: int) -> TuningSet:
        """Return lists that stand for all hypotheses.

        They are the lists themselves, or up to ``k`` best distinct translations at ``weights``,
        each with the features of its best derivation. Sentences are counted from 0.
        """
        raise NotImplementedError

    def choose_sentences(self, oracles: str) -> tuple[NDArray[np.int64], tuple[str, ...]]:
        """Return the sentences to learn from, int64 positions from 0, and notes for users.

        Args:
            oracles: ``bold`` and ``hybrid`` are those of ``OracleUpdates``; all others are local.

        Raises:
            UsageError: the updates are bold or hybrid, which requires search graphs.
            OptimizerError: no search graph yields a reference.
        """
        raise NotImplementedError

    def hopes_and_fears(
        self,
        sentences: NDArray[np.int64],
        weights: Callable[[], Weights],
        k: int,
        beam: int,
        *,
        bold: bool = False,
    ) -> TuningSet:
        """Return lists of translations for learners of margins, of the given sentences.

        Lists are returned whole. A list of a search graph has the ``k`` best translations by model
        score, first the 1-best, then the ``k`` best each by model score plus and minus sentence
        BLEU (BLEU+1), without repetitions.

        Args:
            sentences: int64; positions of sentences, from 0.
            weights: returns the weights of the model scores; lists do not need them.
            k: number of translations of each kind.
            beam: number of partial derivations that a node keeps in the searches by BLEU.
            bold: add the best derivation that yields a reference to the list of each sentence that
                has one, as its oracle.
        """
        raise NotImplementedError

    def hope_and_fear(
        self, sentence: int, weights: Floats32, background: Floats32, *, safe_hope: bool
    ) -> HopeFear:
        """Return hope and fear by BLEU with a background added (Chiang 2012).

        ``safe_hope`` limits the model score in the hope.
        """
        raise NotImplementedError

    def model_best(self, sentence: int, weights: Floats32) -> ScoredDerivation:
        """Return the derivation with the highest model score."""
        raise NotImplementedError

    def lowest_score(self, sentence: int, weights: Floats32) -> float:
        """Return the lowest model score of a derivation."""
        raise NotImplementedError

    def widen(self, beam: int) -> Candidates:
        """Return candidates whose searches keep ``beam`` partial derivations per node."""
        raise NotImplementedError

    def matches(self) -> NDArray[np.bool_]:
        """Return whether some translation has a match of each n-gram length, bool ``[4]``."""
        raise NotImplementedError

    def expansion_point(self, weights: Weights) -> Statistics:
        """Return the statistics of the 1-best at which BLEU is linearized."""
        raise NotImplementedError

    def gains(self, kind: Any, option: str, rng: np.random.Generator) -> Callable[[Weights], Any]:
        """Return a function from the weights of a stage to gains for ``expected_error``.

        Args:
            kind: how a hypothesis is scored.
            option: the option that says so, for messages.
            rng: the random generator of the greedy search for oracles.

        Raises:
            UsageError: these candidates cannot be scored like this.
        """
        raise NotImplementedError

    def expected_error(self, gains: Any, temperature: float) -> Objective:
        """Return the mean expected error of a sentence minus entropy.

        Args:
            gains: from ``gains``, or linear BLEU (``metrics.bleu.linear.LinearBleu``), which is
                multiplied by the number of sentences. The error is minus the gain.
            temperature: factor of the entropy.
        """
        raise NotImplementedError

    def expected_bleu(self, temperature: float) -> Objective:
        """Return minus BLEU of expected statistics, minus entropy."""
        raise NotImplementedError

    def oracle_loss(
        self,
        weights: Weights,
        rng: np.random.Generator,
        *,
        gain: Any,
        oracles: str,
        tolerance: float,
        margin: float,
    ) -> Objective:
        """Return minus the mean log-probability of the oracles.

        Args:
            weights: the initial weights.
            rng: the random generator of the greedy search for oracles.
            gain: the score that oracles maximize.
            oracles: ``single``, the best hypothesis of each sentence; ``sets``, all within the
                tolerance; or bold or hybrid ``OracleUpdates``.
            tolerance: largest cost of an oracle.
            margin: factor of the costs, which are added to the scores of other hypotheses.

        Raises:
            UsageError: these candidates cannot be scored like this.
            OptimizerError: references are the oracles, and no search graph yields one.
        """
        raise NotImplementedError


def require_local(oracles: str) -> None:
    """Check that updates are possible without search graphs.

    Raises:
        UsageError: they are bold or hybrid.
    """
    if oracles in ("bold", "hybrid"):
        raise UsageError(
            f"oracles={oracles} needs search graphs (tune {{--forest}}, optimize {{--graphs}}), "
            "not lists or shards. For lists, see tune {--forced-decoding}."
        )
