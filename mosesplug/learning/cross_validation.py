"""Score learned weights on sentences that they were not learned from.

K-fold cross-validation (Stone 1974, "Cross-validatory choice and assessment of statistical
predictions"): each fold is decided with weights learned from the other folds. The decisions on all
folds together have one corpus score, since a corpus score such as BLEU is not a mean over folds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import fmean, stdev
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Statistics
from mosesplug.errors import UsageError
from mosesplug.optimizers.problem import (
    Progress,
    Solution,
    corpus_score,
    no_progress,
)
from mosesplug.tuning.parallel.shards import split_into_shards

if TYPE_CHECKING:
    from mosesplug.learning.domains import LearnFunction
    from mosesplug.learning.inputs import LearningData

_FOLDS, _HELD_OUT = 1, 2
"""Random streams of a seed; learning from all sentences uses the seed itself."""


@dataclass(frozen=True)
class Fold:
    """The scores of one fold.

    Attributes:
        learning: score of the weights on the other folds, which they were learned from.
        held_out: score of the same weights on this fold.
        positions: int64, the positions of its sentences, ascending.
        solution: the weights that were learned from the other folds.
    """

    JSON_KEYS: ClassVar = "sentences learning held_out"

    sentences: int
    learning: float
    held_out: float
    positions: NDArray[np.int64] = field(repr=False, compare=False)
    solution: Solution = field(repr=False, compare=False)


@dataclass(frozen=True)
class CrossValidation:
    """The result of a cross-validation.

    Attributes:
        start: score of the starting weights on all sentences.
        held_out: score of all sentences together, each decided with weights that were learned
            without its fold.
    """

    JSON_KEYS: ClassVar = "start held_out gap folds"

    folds: tuple[Fold, ...]
    start: float
    held_out: float

    @property
    def learning(self) -> tuple[float, float]:
        """Mean and standard deviation (n - 1) over folds of ``Fold.learning``."""
        return _mean_and_deviation([fold.learning for fold in self.folds])

    @property
    def left_out(self) -> tuple[float, float]:
        """Mean and standard deviation (n - 1) over folds of ``Fold.held_out``."""
        return _mean_and_deviation([fold.held_out for fold in self.folds])

    @property
    def gap(self) -> float:
        """Mean over folds of the score on the data learned from minus the score held out."""
        return self.learning[0] - self.left_out[0]


def cross_validate(
    data: LearningData,
    learn: LearnFunction,
    count: int,
    seed: int,
    progress: Progress = no_progress,
) -> CrossValidation:
    """Learn from all folds but one, score that one, and repeat for each fold.

    Args:
        data: with the weights to compare with.
        learn: finds weights; each fold has a random generator of its own.
        count: number of folds, at least 2.

    Raises:
        UsageError: there are fewer than 2 folds, or more folds than sentences.
        OptimizerError: no usable weights were found without one of the folds.
    """
    folds = []
    totals: Statistics | None = None
    for number, own in enumerate(split_folds(data.sentences, count, seed), start=1):
        # Of its own for each fold: what one fold draws changes no other.
        rng = np.random.default_rng([seed, _FOLDS, number])
        others = data.take_sentences(np.setdiff1d(data.sentences, own))
        solution = learn(others, rng, no_progress)
        left_out = data.rescore(data.hold_out(own), solution.length_exponent)
        statistics = left_out.candidates.first_best(solution.weights)
        # Statistics are summed, since a corpus score is no mean of scores of its parts.
        totals = statistics if totals is None else totals + statistics
        score = float(left_out.metric.score(statistics))
        folds.append(Fold(len(own), solution.score, score, np.sort(own), solution))
        progress(number, count, "folds")
    everything = data.hold_out(data.sentences)
    return CrossValidation(
        tuple(folds),
        corpus_score(data.rescore(everything, data.start_exponent), data.start.weights),
        float(everything.metric.score(np.asarray(totals))),
    )


def split_folds(sentences: NDArray[np.int64], count: int, seed: int) -> list[NDArray[np.int64]]:
    """Divide the sentences into folds of similar sizes at random, ascending.

    Args:
        count: number of folds, at least 2.

    Raises:
        UsageError: there are fewer than 2 folds, or more folds than sentences.
    """
    if not 2 <= count <= len(sentences):
        raise UsageError(
            f"{len(sentences)} sentences cannot be split into {count} folds: use at least 2 folds, "
            "and at most as many as there are sentences with hypotheses"
        )
    fold_seed = int(np.random.default_rng([seed, _FOLDS]).integers(1 << 62))
    return split_into_shards(sentences, count, fold_seed)


def split_sentences(
    sentences: NDArray[np.int64], share: float, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Split sentences at random into a part to learn from and a part to hold out.

    Args:
        share: size of the second part, more than 0 and less than 1; it has at least one sentence.

    Returns:
        The two parts, ascending.

    Raises:
        UsageError: another share, or no sentence would be left to learn from.
    """
    if not 0.0 < share < 1.0:
        raise UsageError(
            f"the share to hold out must be more than 0 and less than 1, not {share:g}"
        )
    count = max(1, round(share * len(sentences)))
    if count >= len(sentences):
        raise UsageError(
            f"{count} of {len(sentences)} sentences would be held out, and none left to learn from"
        )
    order = np.random.default_rng([seed, _HELD_OUT]).permutation(sentences)
    return np.sort(order[count:]), np.sort(order[:count])


def _mean_and_deviation(scores: list[float]) -> tuple[float, float]:
    return fmean(scores), stdev(scores)
