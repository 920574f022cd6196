"""Hypotheses of lists, scored and searched in double precision as graphs are."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.candidates import Candidates, HopeFear, ScoredDerivation
from mosesplug.metrics.bleu.corpus import bleu_score_row
from mosesplug.metrics.bleu.sentence import single_bleu
from mosesplug.tuning_set import TuningSet


def background_bleu(statistics: NDArray[Any], background: NDArray[Any]) -> NDArray[np.float64]:
    """Return the gain of hypotheses for kbmira (Chiang et al. 2008): float64 ``[m]``.

    It is BLEU of a row plus the background, times the reference length of this sum.

    Args:
        statistics: ``[m, 9]``, of the hypotheses of a sentence.
        background: ``[9]``, decayed sum of the statistics of earlier choices.
    """
    totals = statistics.astype(np.float64) + background
    return np.array([bleu_score_row(row) for row in totals]) * totals[:, 8]


def dense_features(made: TuningSet) -> NDArray[np.float64]:
    """All features as one matrix."""
    features = np.zeros((made.n_hyps, len(made.space)))
    features[:, : made.space.n_dense] = made.dense
    if made.sparse is not None:
        owner = np.repeat(np.arange(made.n_hyps), np.diff(made.sparse.indptr))
        features[owner, made.space.n_dense + made.sparse.indices] = made.sparse.data
    return features


@dataclass(frozen=True)
class ListSearch(Candidates):
    """Looks through the lists of a tuning set."""

    made: TuningSet

    answers = frozenset({"updates"})
    sentence_weights = None

    def first_best(self, weights: NDArray[Any]) -> NDArray[Any]:
        single = weights.astype(np.float32)
        best = [self.model_best(k, single).statistics for k in range(self.n_sentences)]
        return np.sum(best, axis=0)

    def score(self, weights: NDArray[Any]) -> float:
        return float(single_bleu(self.first_best(weights)))

    @property
    def sentences(self) -> NDArray[np.int64]:
        return np.flatnonzero(np.diff(self.made.offsets))

    @property
    def n_sentences(self) -> int:
        return len(self.sentences)

    def _list(self, sentence: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        rows = slice(*self.made.offsets[self.sentences[sentence] :][:2])
        return dense_features(self.made)[rows], self.made.stats[rows].astype(np.float64)

    def _found(
        self, sentence: int, values: NDArray[np.float64], scores: NDArray[np.float64]
    ) -> tuple[ScoredDerivation, int]:
        features, statistics = self._list(sentence)
        row = int(np.argmax(np.round(values, 5)))
        columns = np.flatnonzero((features[row] != 0) | (np.arange(features.shape[1]) < 3))
        made = ScoredDerivation(
            np.zeros(0, dtype=np.int64),
            columns.astype(np.int32),
            features[row, columns].astype(np.float32),
            statistics[row].astype(np.float32),
            np.float32(scores[row]),
        )
        return made, row

    def hope_and_fear(
        self,
        sentence: int,
        weights: NDArray[np.float32],
        background: NDArray[np.float32],
        *,
        safe_hope: bool,
    ) -> HopeFear:
        features, statistics = self._list(sentence)
        scores = features @ weights
        gains = background_bleu(statistics, background.astype(np.float64))
        hope, best = self._found(sentence, scores + gains, scores)
        if safe_hope and abs(scores[best]) > 1e-8:
            scale = min(1.0, abs(5 * gains[best] / scores[best]))
            hope, best = self._found(sentence, scale * scores + gains, scores)
        fear, worst = self._found(sentence, scores - gains, scores)
        return HopeFear(hope, fear, np.float32(gains[best]), np.float32(gains[worst]))

    def model_best(self, sentence: int, weights: NDArray[np.float32]) -> ScoredDerivation:
        features, _ = self._list(sentence)
        return self._found(sentence, features @ weights, features @ weights)[0]

    def lowest_score(self, sentence: int, weights: NDArray[np.float32]) -> float:
        features, _ = self._list(sentence)
        return float((features @ weights).min())
