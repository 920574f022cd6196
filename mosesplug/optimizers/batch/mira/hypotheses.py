"""Hypotheses for batch MIRA, in lists or in search graphs: hope, fear and 1-best."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Statistics
from mosesplug.candidates import Candidates, ScoredDerivation
from mosesplug.metrics.bleu.sentence import single_bleu
from mosesplug.metrics.protocol import Metric, needs_references
from mosesplug.optimizers.batch.mira.kernels import (
    NEGLIGIBLE,
    first_best,
    update_weights,
    visit_sentences,
)
from mosesplug.optimizers.batch.mira.state import MiraDecisions, MiraSettings, MiraState
from mosesplug.optimizers.lists.single_precision import mira_lists
from mosesplug.tuning_set import TuningSet

SingleWeights = NDArray[np.float32]
"""``[n_features]``, in single precision."""

Order = NDArray[np.int64]
"""``[n]``: the sentences to visit, one after the other."""


class MiraHypotheses(Protocol):
    """The hypotheses of the sentences that have any, in lists or in search graphs."""

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""

    def visit(self, order: Order, settings: MiraSettings, state: MiraState) -> MiraDecisions:
        """Choose hope and fear of each sentence in turn, and update ``state``."""

    def features(self, hypothesis: Any) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return columns, ascending, and values of a hypothesis in ``MiraDecisions``."""

    def score(self, weights: SingleWeights) -> float:
        """Return the metric of the 1-best at ``weights``."""


class ListHypotheses:
    """Hypotheses of n-best lists, in the layout of the kernels.

    Attributes:
        lists: the distinct hypotheses.
        rows: int64; the row of the tuning set that each of them comes from.
    """

    def __init__(self, tuning_set: TuningSet, metric: Metric) -> None:
        self._metric = metric
        self.lists, self.rows = mira_lists(tuning_set)
        names, offsets = metric.statistics_names, self.lists.offsets
        self._length_column = (
            names.index("reference_length") if "reference_length" in names else None
        )
        lengths = tuning_set.lengths[self.rows]
        if not needs_references(metric):  # a mean of scores from outside: each counts alike
            lengths = np.ones_like(lengths)
        self._lengths = np.maximum(1.0, np.add.reduceat(lengths, offsets[:-1]) / np.diff(offsets))

    @property
    def n_sentences(self) -> int:
        """Number of sentences that have a hypothesis."""
        return len(self.lists.offsets) - 1

    def visit(self, order: Order, settings: MiraSettings, state: MiraState) -> MiraDecisions:
        """See ``MiraHypotheses``."""
        decisions = MiraDecisions.empty(len(order), np.int64)
        if self._metric.has_bleu_statistics:
            visit_sentences(self.lists, settings, state, order, decisions)
            return decisions
        # No kernel knows the metric: its gains are computed sentence by sentence.
        for visit, sentence in enumerate(order.tolist()):
            gains = self._gains(sentence, state)
            one = slice(visit, visit + 1)
            own = MiraDecisions._make(column[one] for column in decisions)
            visit_sentences(self.lists, settings, state, order[one], own, gains)
            if decisions.occasion[visit]:
                state.length[0] *= float(settings.decay)
                count = float(self.lists.sentence_weights[sentence])
                state.length[0] += count * self._lengths[sentence]
        return decisions

    def _gains(self, sentence: int, state: MiraState) -> NDArray[np.float32]:
        """Return the gain of each statistics row of the sentence; see the module."""
        start, end = self.lists.row_offsets[sentence : sentence + 2]
        totals = self.lists.rows[start:end].astype(np.float64) + state.background
        if self._length_column is None:
            length = self._lengths[sentence] + state.length[0]
        else:
            length = totals[:, self._length_column]
        return np.asarray(self._metric.score(totals) * length, dtype=np.float32)

    def features(self, hypothesis: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return all dense features of a hypothesis, and its sparse ones."""
        n_dense, offsets, dense, indptr, columns, values, *_ = self.lists
        sentence = int(np.searchsorted(offsets, hypothesis, side="right")) - 1
        start, end = offsets[sentence : sentence + 2]
        block = dense[start * n_dense : end * n_dense].reshape(n_dense, end - start)
        own = slice(*indptr[hypothesis : hypothesis + 2])
        return (
            np.concatenate([np.arange(n_dense, dtype=np.int32), columns[own]]),
            np.concatenate([block[:, hypothesis - start], values[own]]),
        )

    def statistics(self, weights: SingleWeights) -> Statistics:
        """Return the weighted sum of the statistics of the 1-best at ``weights``."""
        best = first_best(self.lists, weights)
        rows = self.lists.rows[self.lists.row_of[best]].astype(np.float64)
        return np.asarray((self.lists.sentence_weights[:, None] * rows).sum(axis=0))

    def score(self, weights: SingleWeights) -> float:
        """Return the metric of the 1-best at ``weights``."""
        return score_totals(self._metric, self.statistics(weights))


def score_totals(metric: Metric, totals: Statistics) -> float:
    """Return the metric of summed statistics."""
    if metric.has_bleu_statistics:  # in single precision, as in Moses
        return float(single_bleu(totals.astype(np.float32)))
    return float(metric.score(totals))


@dataclass(frozen=True)
class GraphHypotheses:
    """Hypotheses that a search finds in search graphs.

    Attributes:
        search: finds hope and fear by BLEU.
        n_dense: number of dense features, the first columns.
    """

    search: Candidates
    n_dense: int

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return self.search.n_sentences

    def visit(self, order: Order, settings: MiraSettings, state: MiraState) -> MiraDecisions:
        """See ``MiraHypotheses``."""
        decisions = MiraDecisions.empty(len(order), object)
        hopes, fears, hope_gains, fear_gains, losses, occasions, spreads = decisions
        counts = self.search.sentence_weights
        for visit, sentence in enumerate(order.tolist()):
            pair = self.search.hope_and_fear(
                sentence, state.weights, state.background, safe_hope=settings.safe_hope
            )
            hopes[visit], fears[visit] = pair.hope, pair.fear
            spreads[visit] = pair.hope.score - self.search.lowest_score(sentence, state.weights)
            hope_gains[visit], fear_gains[visit] = pair.hope_gain, pair.fear_gain
            occasions[visit] = pair.hope_gain > pair.fear_gain
            if not occasions[visit]:
                continue
            chosen = pair.hope
            if settings.model_background:
                chosen = self.search.model_best(sentence, state.weights)
            difference = subtract_features(pair.hope, pair.fear, self.n_dense)
            margin = np.float32(pair.hope_gain - pair.fear_gain)
            # As for lists, the weight of the sentence multiplies the largest step.
            count = np.float32(1.0 if counts is None else counts[sentence])
            own = settings._replace(step_cap=count * settings.step_cap)
            losses[visit] = update_weights(own, state, *difference, margin)
            background = state.background
            background *= settings.decay
            background += count * chosen.statistics
        return decisions

    def features(
        self, hypothesis: ScoredDerivation
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Return all dense features of a hypothesis, and its sparse ones."""
        columns = np.union1d(np.arange(self.n_dense, dtype=np.int32), hypothesis.columns)
        values = np.zeros(len(columns), dtype=np.float32)
        values[np.searchsorted(columns, hypothesis.columns)] = hypothesis.values
        return columns, values

    def score(self, weights: SingleWeights) -> float:
        """Return BLEU of the 1-best at ``weights``."""
        return self.search.score(weights.astype(np.float64))


def subtract_features(
    hope: ScoredDerivation, fear: ScoredDerivation, n_dense: int
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Return features of hope minus those of fear, ascending.

    Sparse features are kept only where they differ.
    """
    columns = np.union1d(hope.columns, fear.columns)
    values = np.zeros(len(columns), dtype=np.float32)
    values[np.searchsorted(columns, hope.columns)] = hope.values
    values[np.searchsorted(columns, fear.columns)] -= fear.values
    kept = (columns < n_dense) | (np.abs(values) > NEGLIGIBLE)
    # As in Moses, a difference is negligible only if both have the feature.
    kept |= ~(np.isin(columns, hope.columns) & np.isin(columns, fear.columns))
    return columns[kept], values[kept]
