"""How weights do on sentences that they were not learnt from: cross-validation, and a share kept.

The score that an optimizer reports is one of the sentences that it was free to fit. Here sentences
are dealt to K folds; each is decided with weights learnt from the others (Stone 1974, "Cross-
validatory choice and assessment of statistical predictions"). The decisions on all folds, every
sentence decided once, have one corpus-level score, which BLEU needs: it is no mean of scores.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import UsageError
from mosesplug.optimizers.problem import (
    Problem,
    Progress,
    Solution,
    corpus_score,
    corpus_statistics,
    no_progress,
)
from mosesplug.tuning.parallel.sharding import dealt

__all__ = ["CrossValidation", "Fold", "Learn", "Sentences", "cross_validated", "divided"]

_FOLDS, _HELD_OUT = 1, 2
"""Streams of random numbers of a seed; the one without a number is for learning from all."""

Learn = Callable[[Problem, np.random.Generator, Progress], Solution]
"""Finds weights for a problem."""


class Sentences(Protocol):
    """Hypotheses of sentences, of which any may be taken."""

    @property
    def listed(self) -> NDArray[np.int64]:
        """Positions of the sentences that have hypotheses, int64, ascending."""

    def part(self, positions: NDArray[np.int64]) -> Problem:
        """The problem of the sentences at some positions."""


@dataclass(frozen=True)
class Fold:
    """A fold.

    Attributes:
        sentences: how many it has.
        learning: score of the weights on the sentences of all other folds, which they were learnt
            from.
        held_out: their score on this one.
    """

    sentences: int
    learning: float
    held_out: float


@dataclass(frozen=True)
class CrossValidation:
    """What cross-validation found.

    Attributes:
        folds: each with its scores.
        start: score of the starting weights on all sentences.
        held_out: score of all sentences together, each decided with weights learnt without its
            fold.
    """

    folds: tuple[Fold, ...]
    start: float
    held_out: float

    @property
    def learning(self) -> tuple[float, float]:
        """Mean and standard deviation (n - 1) over folds of the scores on what was learnt from."""
        return _spread([fold.learning for fold in self.folds])

    @property
    def left_out(self) -> tuple[float, float]:
        """The same of the scores on what was left out."""
        return _spread([fold.held_out for fold in self.folds])

    @property
    def gap(self) -> float:
        """How much better weights do on what they were learnt from: mean over folds."""
        return self.learning[0] - self.left_out[0]


def cross_validated(
    sentences: Sentences,
    start: NDArray[np.float64],
    learn: Learn,
    count: int,
    seed: int,
    progress: Progress = no_progress,
) -> CrossValidation:
    """Learn from all folds but one, score on that one, and so for each.

    Args:
        sentences: to be dealt to folds at random, as evenly as can be.
        start: float64 ``[n_features]``, to compare with.
        learn: finds weights; in each fold with random numbers of its own.
        count: how many folds, 2 at least.
        seed: of the deal and of all random choices.
        progress: told of folds done.

    Raises:
        UsageError: there are fewer than 2 folds, or more than sentences.
        OptimizerError: no usable weights can be learnt from some folds.
    """
    listed = sentences.listed
    if not 2 <= count <= len(listed):
        raise UsageError(
            f"{len(listed)} sentences cannot be dealt to {count} folds: two or more folds are "
            "needed, and a sentence with hypotheses for each"
        )
    parts = dealt(listed, count, int(np.random.default_rng([seed, _FOLDS]).integers(1 << 62)))
    folds = []
    totals = np.zeros(0)
    for number, own in enumerate(parts, start=1):
        others = np.setdiff1d(listed, own)
        rng = np.random.default_rng([seed, _FOLDS, number])
        solution = learn(sentences.part(others), rng, no_progress)
        left_out = sentences.part(own)
        found = corpus_statistics(left_out, solution.weights)
        totals = found if number == 1 else totals + found
        score = float(left_out.metric.score(found))
        folds.append(Fold(len(own), solution.score, score))
        progress(number, count, "folds")
    everything = sentences.part(listed)
    return CrossValidation(
        tuple(folds),
        corpus_score(everything, start),
        float(everything.metric.score(totals)),
    )


def divided(
    sentences: NDArray[np.int64], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Sentences to learn from, and a share of them, drawn at random, to keep out of that.

    Args:
        sentences: int64, each once.
        share: more than 0, less than 1; of the sentences, rounded to whole ones, 1 at least.
        seed: of the draw.

    Returns:
        The two parts, ascending.

    Raises:
        UsageError: no such share, or nothing would be left to learn from.
    """
    if not 0.0 < share < 1.0:
        raise UsageError(f"a share of the sentences is more than 0 and less than 1, not {share:g}")
    count = max(1, round(share * len(sentences)))
    if count >= len(sentences):
        raise UsageError(
            f"of {len(sentences)} sentences, {count} would be held out and none left to learn from"
        )
    order = np.random.default_rng([seed, _HELD_OUT]).permutation(sentences)
    return np.sort(order[count:]), np.sort(order[:count])


def _spread(scores: list[float]) -> tuple[float, float]:
    return fmean(scores), stdev(scores)
