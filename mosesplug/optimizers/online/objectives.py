"""The loss of a mini-batch as a function of model scores.

A pairwise loss is computed on sampled pairs of hypotheses, as in PRO (Hopkins & May 2011), and
depends on few hypotheses of a sentence. A listwise loss is computed on all hypotheses. Its oracles
have the largest gain of their sentence, or together the largest corpus score of the batch. xBLEU is
a loss of the whole batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.expected_bleu import expected_bleu
from mosesplug.optimizers import losses
from mosesplug.optimizers.batch.ranking.pairs import PairSampling, RankedPairs, sample_pairs
from mosesplug.optimizers.losses import ListLoss, PairLoss
from mosesplug.optimizers.oracles import OracleSets

__all__ = [
    "LISTWISE",
    "PAIRWISE",
    "Loss",
    "Objective",
    "Pull",
    "list_objective",
    "pair_objective",
    "xbleu_objective",
]

Loss = Literal[
    "logistic", "hinge", "squared", "softmax", "expected-error", "cross-entropy", "xbleu"
]

PAIRWISE: Mapping[str, PairLoss] = {
    "logistic": losses.LOGISTIC,
    "hinge": losses.HINGE,
    "squared": losses.SQUARED,
}
LISTWISE: Mapping[str, ListLoss] = {
    "softmax": losses.SOFTMAX,
    "expected-error": losses.EXPECTED_ERROR,
    "cross-entropy": losses.CROSS_ENTROPY,
}


@dataclass(frozen=True)
class Pull:
    """The value of a loss, and its derivatives with respect to the scores.

    Attributes:
        loss: sum over pairs or sentences.
        coefficients: float64 ``[n_rows]``; derivative of the loss with respect to each score.
        violations: number of pairs that violate the loss's margin, or of sentences whose 1-best is
            not an oracle.
    """

    loss: float
    coefficients: NDArray[np.float64]
    violations: int


@dataclass(frozen=True)
class Objective:
    """A loss as a function of the scores of some hypotheses of a batch.

    Attributes:
        rows: int64 ``[n_rows]``, ascending and distinct: the hypotheses on which the loss depends.
        terms: number of pairs or sentences in the sum.
        pull: ``(scores float64 [n_rows]) -> Pull``.
    """

    rows: NDArray[np.int64]
    terms: int
    pull: Callable[[NDArray[np.float64]], Pull]


def pair_objective(
    loss: PairLoss,
    offsets: NDArray[np.int64],
    gains: NDArray[np.float64],
    sampling: PairSampling,
    rng: np.random.Generator,
) -> Objective:
    """Return a pairwise loss on sampled pairs.

    Args:
        loss: the loss of a pair.
        offsets: int64 ``[n_sentences + 1]``; the sentences of the batch.
        gains: float64 ``[n_hyps]``; higher for better hypotheses.
        sampling: the settings of the sampling.
        rng: random generator of the sampling.
    """
    pairs = sample_pairs(offsets, gains, lambda top, count: rng.integers(0, top, count), sampling)
    rows, places = np.unique(np.concatenate([pairs.better, pairs.worse]), return_inverse=True)
    local = RankedPairs(places[: len(pairs)], places[len(pairs) :])
    gaps = gains[pairs.better] - gains[pairs.worse]

    def pull(scores: NDArray[np.float64]) -> Pull:
        margins = scores[local.better] - scores[local.worse]
        values, derivatives = loss.value_and_gradient(margins, gaps)
        coefficients = np.zeros(len(rows))
        np.add.at(coefficients, local.better, derivatives)
        np.subtract.at(coefficients, local.worse, derivatives)
        return Pull(float(values.sum()), coefficients, int(np.sum(margins <= loss.margin)))

    return Objective(rows, len(pairs), pull)


def list_objective(
    loss: ListLoss,
    offsets: NDArray[np.int64],
    goals: NDArray[np.float64],
    oracles: OracleSets,
) -> Objective:
    """Return a listwise loss on all hypotheses.

    Args:
        loss: the loss of a list.
        offsets: int64 ``[n_sentences + 1]``; the sentences of the batch.
        goals: float64 ``[n_hyps]``; see the loss.
        oracles: the best hypotheses.
    """
    count = _misses(offsets, oracles)

    def pull(scores: NDArray[np.float64]) -> Pull:
        values, derivatives = loss.value_and_gradient(scores, offsets, goals)
        return Pull(float(values.sum()), derivatives, count(scores))

    n_filled = int(np.count_nonzero(np.diff(offsets)))
    return Objective(np.arange(int(offsets[-1])), n_filled, pull)


def xbleu_objective(
    offsets: NDArray[np.int64],
    stats: NDArray[np.float64],
    context: NDArray[np.float64],
    oracles: OracleSets,
) -> Objective:
    """Return 1 - BLEU of expected statistics (Rosti et al. 2011; survey, eq. 54).

    The unit is that of a sentence: BLEU of a corpus is multiplied by its number of sentences. The
    loss of a batch without a match of some n-gram length, and without a context, is constant.

    Args:
        offsets: int64 ``[n_sentences + 1]``; the sentences of the batch.
        stats: float64 ``[n_hyps, 9]``, of BLEU.
        context: float64 ``[10]``; statistics that are added to those of the batch, and their number
            of sentences.
        oracles: the best hypotheses, to count violations.
    """
    count = _misses(offsets, oracles)
    n_filled = int(np.count_nonzero(np.diff(offsets)))
    size = n_filled + float(context[-1])

    def pull(scores: NDArray[np.float64]) -> Pull:
        totals = losses.softmax_shares(scores, offsets) @ stats + context[:-1]
        bleu, slopes = expected_bleu(totals)
        errors = -size * (stats @ slopes)
        _, derivatives = losses.EXPECTED_ERROR.value_and_gradient(scores, offsets, errors)
        return Pull(size * (1.0 - bleu), derivatives, count(scores))

    return Objective(np.arange(int(offsets[-1])), n_filled, pull)


def _misses(
    offsets: NDArray[np.int64], oracles: OracleSets
) -> Callable[[NDArray[np.float64]], int]:
    """Return a function that counts sentences whose 1-best by scores is not an oracle."""
    is_oracle = np.zeros(int(offsets[-1]), dtype=np.bool_)
    is_oracle[oracles.rows] = True
    starts = offsets[:-1][np.diff(offsets) > 0]

    def count(scores: NDArray[np.float64]) -> int:
        if not len(starts):
            return 0
        best = np.maximum.reduceat(np.where(is_oracle, scores, -np.inf), starts)
        return int(np.sum(best < np.maximum.reduceat(scores, starts)))

    return count
