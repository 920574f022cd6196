"""What dense features are like over the distinct hypotheses of a run, in memory of some sentences.

Every figure is a sum over sentences, or of sums, so lists are taken a part at a time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.inspection.lists import sentence_scores
from mosesplug.inspection.run import Run
from mosesplug.report.data import FeatureFacts
from mosesplug.tuning_set import TuningSet

__all__ = ["FeatureSums", "feature_facts", "merged_parts"]

_SENTENCES = 64
"""Sentences that are merged at a time."""

_NO_VARIATION = 1e-9
"""What is left of a constant by rounding."""


def merged_parts(run: Run, iterations: int | None = None) -> Iterator[TuningSet]:
    """The lists of one iteration, or of all, merged: some sentences at a time."""
    for first in range(0, run.n_sentences, _SENTENCES):
        last = min(first + _SENTENCES, run.n_sentences)
        yield run.store.batch(np.arange(first, last), iterations)


def feature_facts(run: Run, parts: Iterable[TuningSet]) -> tuple[FeatureFacts, ...]:
    """Every dense feature over the distinct hypotheses.

    Args:
        run: the run.
        parts: its lists, merged; each sentence in one of them.
    """
    sums = FeatureSums.none(len(run.names))
    for part in parts:
        sums = sums.added(run, part)
    return sums.facts(run)


@dataclass(frozen=True)
class FeatureSums:
    """Sums over hypotheses; "inside" are values less the mean of their sentence's.

    Attributes:
        hypotheses: how many.
        sentences: those that have one.
        values: of the values, float64 ``[n_dense]``.
        active: hypotheses for which a feature is not 0, float64 ``[n_dense]``.
        spread: of sentences' standard deviations, float64 ``[n_dense]``.
        squares: of the squares inside, float64 ``[n_dense]``.
        products: of values inside times scores inside, float64 ``[n_dense]``.
        largest: largest size inside, float64 ``[n_dense]``.
        score_squares: of the squares of scores inside.
        largest_score: largest size of a score inside.
    """

    hypotheses: int
    sentences: int
    values: NDArray[np.float64]
    active: NDArray[np.float64]
    spread: NDArray[np.float64]
    squares: NDArray[np.float64]
    products: NDArray[np.float64]
    largest: NDArray[np.float64]
    score_squares: float
    largest_score: float

    @classmethod
    def none(cls, n_dense: int) -> FeatureSums:
        """Of no hypothesis."""
        zeros = np.zeros(n_dense)
        return cls(0, 0, zeros, zeros, zeros, zeros, zeros, zeros, 0.0, 0.0)

    def added(self, run: Run, part: TuningSet) -> FeatureSums:
        """With the hypotheses of more sentences."""
        offsets = part.offsets[:-1][np.diff(part.offsets) > 0]
        if not len(offsets):
            return self
        widths = np.diff(np.append(offsets, part.n_hyps))
        values = part.dense.astype(np.float64)
        inside = _centred(values, offsets, widths)
        scores = _centred(sentence_scores(run.metric, part.stats)[:, None], offsets, widths)[:, 0]
        squares = np.add.reduceat(inside**2, offsets, axis=0)
        return FeatureSums(
            hypotheses=self.hypotheses + part.n_hyps,
            sentences=self.sentences + len(offsets),
            values=self.values + values.sum(axis=0),
            active=self.active + (values != 0.0).sum(axis=0),
            spread=self.spread + np.sqrt(squares / widths[:, None]).sum(axis=0),
            squares=self.squares + squares.sum(axis=0),
            products=self.products + scores @ inside,
            largest=np.maximum(self.largest, np.abs(inside).max(axis=0)),
            score_squares=self.score_squares + float(scores @ scores),
            largest_score=max(self.largest_score, float(np.abs(scores).max())),
        )

    def facts(self, run: Run) -> tuple[FeatureFacts, ...]:
        """What they tell of each feature."""
        return tuple(
            FeatureFacts(
                name=name,
                weight=float(run.vector[column]),
                mean=float(self.values[column] / self.hypotheses),
                spread=float(self.spread[column] / self.sentences),
                active=float(self.active[column] / self.hypotheses),
                correlation=self._correlation(column),
            )
            for column, name in enumerate(run.names)
        )

    def _correlation(self, column: int) -> float:
        """Pearson's, with the scores; NaN where one never varies."""
        if min(self.largest[column], self.largest_score) < _NO_VARIATION:
            return float("nan")
        norms = np.sqrt(self.squares[column] * self.score_squares)
        return float(self.products[column] / norms)


def _centred(
    values: NDArray[np.float64], offsets: NDArray[np.int64], widths: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Values less the mean of their sentence's, float64 of the shape of ``values``."""
    means = np.add.reduceat(values, offsets, axis=0) / widths[:, None]
    return np.asarray(values - np.repeat(means, widths, axis=0))
