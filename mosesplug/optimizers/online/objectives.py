"""From a mini-batch to a function of scores that a learner descends.

A pairwise loss is asked about some pairs of hypotheses, drawn as PRO draws them (Hopkins & May
2011), so that only a few hypotheses of a sentence count. A listwise loss is asked about all
hypotheses; its oracles are those of largest gain, of each sentence, or of the batch where gains
are the metric's own on the batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

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
]

Loss = Literal["logistic", "hinge", "squared", "softmax", "expected-error"]

PAIRWISE: Mapping[str, PairLoss] = {
    "logistic": losses.LOGISTIC,
    "hinge": losses.HINGE,
    "squared": losses.SQUARED,
}
LISTWISE: Mapping[str, ListLoss] = {
    "softmax": losses.SOFTMAX,
    "expected-error": losses.EXPECTED_ERROR,
}


@dataclass(frozen=True)
class Pull:
    """The value of a loss, and its derivatives by the scores.

    Attributes:
        loss: summed over pairs or sentences.
        coefficients: float64 ``[n_rows]``; the derivative of the loss by each score.
        violations: pairs in the wrong order, or without the margin that the loss asks for;
            sentences whose first best is no oracle.
    """

    loss: float
    coefficients: NDArray[np.float64]
    violations: int


@dataclass(frozen=True)
class Objective:
    """A loss of the scores of some hypotheses of a batch.

    Attributes:
        rows: int64 ``[n_rows]``, ascending, each once: the hypotheses that count.
        terms: pairs or sentences that the loss is a sum over.
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
        loss: of a pair.
        offsets: int64 ``[n_sentences + 1]``; the sentences of the batch.
        gains: float64 ``[n_hyps]``; what each hypothesis is worth.
        sampling: how pairs are sampled.
        rng: draws them.
    """
    pairs = sample_pairs(offsets, gains, lambda top, count: rng.integers(0, top, count), sampling)
    rows, places = np.unique(np.concatenate([pairs.better, pairs.worse]), return_inverse=True)
    own = RankedPairs(places[: len(pairs)], places[len(pairs) :])
    gaps = gains[pairs.better] - gains[pairs.worse]

    def pull(scores: NDArray[np.float64]) -> Pull:
        margins = scores[own.better] - scores[own.worse]
        values, derivatives = loss.value_and_gradient(margins, gaps)
        coefficients = np.zeros(len(rows))
        np.add.at(coefficients, own.better, derivatives)
        np.subtract.at(coefficients, own.worse, derivatives)
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
        loss: of a list.
        offsets: int64 ``[n_sentences + 1]``; the sentences of the batch.
        goals: float64 ``[n_hyps]``; as the loss takes them.
        oracles: the best hypotheses.
    """
    n_hyps = int(offsets[-1])
    is_oracle = np.zeros(n_hyps, dtype=np.bool_)
    is_oracle[oracles.rows] = True
    starts = offsets[:-1][np.diff(offsets) > 0]

    def pull(scores: NDArray[np.float64]) -> Pull:
        values, derivatives = loss.value_and_gradient(scores, offsets, goals)
        if not len(starts):
            return Pull(0.0, derivatives, 0)
        best = np.maximum.reduceat(np.where(is_oracle, scores, -np.inf), starts)
        missed = int(np.sum(best < np.maximum.reduceat(scores, starts)))
        return Pull(float(values.sum()), derivatives, missed)

    return Objective(np.arange(n_hyps), len(starts), pull)
