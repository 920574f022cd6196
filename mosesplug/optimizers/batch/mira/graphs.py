"""MIRA with hope and fear from a search instead of a list.

The updates are those of k-best MIRA (``kbmira``); a ``HopeFearSearch``, such as of search graphs,
finds the hypotheses.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError
from mosesplug.optimizers.batch.mira.kbmira import (
    LARGEST,
    KbmiraOptions,
    make_settings,
    start_state,
)
from mosesplug.optimizers.batch.mira.search import (
    N_STATISTICS,
    HopeAndFear,
    HopeFearSearch,
    SearchHypothesis,
    first_best_bleu,
)
from mosesplug.optimizers.batch.mira.step import (
    NEGLIGIBLE,
    MiraSettings,
    MiraState,
    average_weights,
    update_background,
    update_weights,
)
from mosesplug.optimizers.bounds import Bounds

__all__ = ["SearchMiraLearner", "SearchVisits", "subtract_features"]


class SearchVisits(NamedTuple):
    """Hope and fear of each visited sentence.

    Attributes:
        hopes_and_fears: hope and fear.
        hope_gain, fear_gain: float32 ``[n]``.
        loss: float32 ``[n]``; 0 if fear and hope have the same gain, negative if the
            margin is large enough.
        occasion: bool ``[n]``; whether the gain of the hope is larger than that of the fear.
    """

    hopes_and_fears: list[HopeAndFear]
    hope_gain: NDArray[np.float32]
    fear_gain: NDArray[np.float32]
    loss: NDArray[np.float32]
    occasion: NDArray[np.bool_]


class SearchMiraLearner:
    """Weights that learn from a search.

    Attributes:
        settings: the settings of the algorithm.
        state: weights, totals and background; changes with each visit.
        n_shards: 1.
    """

    settings: MiraSettings
    state: MiraState
    n_shards: int = 1

    def __init__(
        self,
        search: HopeFearSearch,
        n_dense: int,
        initial: NDArray[np.float64],
        options: KbmiraOptions,
        active: NDArray[np.bool_] | None = None,
        bounds: Bounds | None = None,
    ) -> None:
        """Start from the initial weights.

        Args:
            search: finds the hypotheses.
            n_dense: number of dense features, the first columns; a difference of a sparse feature
                up to 1e-6 counts as 0.
            initial: float64 ``[n_features]``.
            options: ``epochs`` and ``shuffle`` are not used.
            active: bool ``[n_features]``, the weights that may change; None: all.
            bounds: the bounds of the weights; None: none.

        Raises:
            OptimizerError: the weights are not finite, or too large for single precision.
        """
        if not (np.abs(initial) <= LARGEST).all():
            raise OptimizerError(
                f"starting weights must be finite numbers up to {LARGEST:g}; scale them down"
            )
        self._search = search
        self._n_dense = n_dense
        weights = initial.astype(np.float32)
        everything = np.ones(len(weights), dtype=np.bool_)
        self.settings = make_settings(options, everything if active is None else active, bounds)
        self.state = start_state(weights, N_STATISTICS)

    @property
    def updates(self) -> int:
        """Number of updates since the start."""
        return int(self.state.updates[0])

    @property
    def n_sentences(self) -> int:
        """Number of sentences that can be searched."""
        return self._search.n_sentences

    def visit(self, order: NDArray[np.int64]) -> SearchVisits:
        """Learn from the given sentences, int64 ``[n]``, one after the other."""
        found = []
        losses = np.zeros(len(order), dtype=np.float32)
        for visit, sentence in enumerate(order.tolist()):
            pair = self._search.hope_and_fear(
                sentence,
                self.state.weights,
                self.state.background,
                safe_hope=self.settings.safe_hope,
            )
            found.append(pair)
            if not pair.hope_gain > pair.fear_gain:
                continue
            chosen = pair.hope
            if self.settings.model_background:
                chosen = self._search.model_best(sentence, self.state.weights)
            losses[visit] = update_weights(
                self.settings,
                self.state,
                *subtract_features(pair.hope, pair.fear, self._n_dense),
                np.float32(pair.hope_gain - pair.fear_gain),
            )
            update_background(self.settings, self.state, chosen.statistics)
        hope_gain = np.array([pair.hope_gain for pair in found], dtype=np.float32)
        fear_gain = np.array([pair.fear_gain for pair in found], dtype=np.float32)
        return SearchVisits(found, hope_gain, fear_gain, losses, hope_gain > fear_gain)

    def average(self) -> NDArray[np.float32]:
        """Return the averaged weights, float32 ``[n_features]``, in Moses' scale.

        See ``ListMiraLearner.average``.
        """
        return average_weights(self.state)

    def score(self, weights: NDArray[np.float32]) -> float:
        """Return BLEU of the 1-best hypotheses at ``weights``, float32 ``[n_features]``."""
        return first_best_bleu(self._search, weights)


def subtract_features(
    hope: SearchHypothesis, fear: SearchHypothesis, n_dense: int
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
