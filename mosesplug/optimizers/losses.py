"""Losses of model scores that learners minimize by gradients.

A *pairwise* loss is a function of the margin between a better hypothesis and a worse one; a
*listwise* loss of all hypotheses of a sentence. Features come in by the chain rule, outside: the
derivatives by scores are coefficients of the hypotheses' feature vectors.

Arrays are flat, float64 and never written; no value overflows, however large the scores.

Batch objectives have compiled, threaded versions of the softmax and the expected error
(``lists.blocks``), too large for a mini-batch; tests compare them with these.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats

__all__ = [
    "CROSS_ENTROPY",
    "EXPECTED_ERROR",
    "HINGE",
    "LOGISTIC",
    "SOFTMAX",
    "SQUARED",
    "ListLoss",
    "PairLoss",
    "softmax_shares",
]


@dataclass(frozen=True)
class PairLoss:
    """A loss of pairs of hypotheses, the better one first.

    Attributes:
        source: the paper.
        value_and_gradient: ``(margins, gaps) -> (values, derivatives)``, all float64 ``[n_pairs]``.
            ``margins`` are differences of model scores and ``gaps`` of gains, better minus worse;
            derivatives are by the margins.
        margin: pairs with a margin of at most this are violations.
    """

    source: str
    value_and_gradient: Callable[[Floats, Floats], tuple[Floats, Floats]]
    margin: float = 0.0

    def value(self, margins: Floats, gaps: Floats) -> Floats:
        """Return the loss of each pair, float64 ``[n_pairs]``."""
        return self.value_and_gradient(margins, gaps)[0]

    def gradient(self, margins: Floats, gaps: Floats) -> Floats:
        """Return the derivative of each pair's loss by its margin, float64 ``[n_pairs]``."""
        return self.value_and_gradient(margins, gaps)[1]


@dataclass(frozen=True)
class ListLoss:
    """A loss of all hypotheses of a sentence.

    Attributes:
        source: the paper.
        value_and_gradient: ``(scores, offsets, goals) -> (values, derivatives)``. ``scores`` and
            ``goals`` are float64 ``[n_hyps]``, ``offsets`` int64 ``[n_sentences + 1]``. ``values``
            are float64 ``[n_sentences]``, 0 for empty sentences; ``derivatives`` float64
            ``[n_hyps]``, by the scores. Each loss defines its goals.
    """

    source: str
    value_and_gradient: Callable[[Floats, NDArray[np.int64], Floats], tuple[Floats, Floats]]

    def value(self, scores: Floats, offsets: NDArray[np.int64], goals: Floats) -> Floats:
        """Return the loss of each sentence, float64 ``[n_sentences]``."""
        return self.value_and_gradient(scores, offsets, goals)[0]

    def gradient(self, scores: Floats, offsets: NDArray[np.int64], goals: Floats) -> Floats:
        """Return the derivative of the summed loss by each score, float64 ``[n_hyps]``."""
        return self.value_and_gradient(scores, offsets, goals)[1]


def _logistic(margins: Floats, gaps: Floats) -> tuple[Floats, Floats]:
    """``log(1 + exp(-m))``; ignores the gap."""
    values = np.maximum(-margins, 0.0) + np.log1p(np.exp(-np.abs(margins)))
    return values, 0.5 * np.tanh(0.5 * margins) - 0.5


def _hinge(margins: Floats, gaps: Floats) -> tuple[Floats, Floats]:
    """``max(0, 1 - m)``; ignores the gap; the derivative at 1 is 0."""
    return np.maximum(1.0 - margins, 0.0), np.where(margins < 1.0, -1.0, 0.0)


def _squared(margins: Floats, gaps: Floats) -> tuple[Floats, Floats]:
    """``(m - gap)^2``."""
    misses = margins - gaps
    return misses * misses, 2.0 * misses


def _softmax(scores: Floats, offsets: NDArray[np.int64], goals: Floats) -> tuple[Floats, Floats]:
    """``log sum exp(s) - log sum exp(oracles)``; goals are 1 for oracles, else 0."""
    is_oracle = goals > 0.0
    all_logs = _log_sums(scores, offsets)
    oracle_logs = _log_sums(np.where(is_oracle, scores, -np.inf), offsets)
    known = np.isfinite(oracle_logs)
    owner = np.repeat(np.arange(len(known)), np.diff(offsets))
    values = np.zeros(len(known))
    values[known] = all_logs[known] - oracle_logs[known]
    derivatives = np.zeros(len(scores))
    counted = known[owner]
    derivatives[counted] = np.exp(scores[counted] - all_logs[owner[counted]])
    own = counted & is_oracle
    derivatives[own] -= np.exp(scores[own] - oracle_logs[owner[own]])
    return values, derivatives


def _expected_error(
    scores: Floats, offsets: NDArray[np.int64], goals: Floats
) -> tuple[Floats, Floats]:
    """``sum p goal`` with ``p`` the softmax of the scores; goals are errors."""
    n_sentences = len(offsets) - 1
    owner = np.repeat(np.arange(n_sentences), np.diff(offsets))
    shares = softmax_shares(scores, offsets)
    values = np.bincount(owner, shares * goals, n_sentences).astype(np.float64)
    return values, shares * (goals - values[owner])


def _cross_entropy(
    scores: Floats, offsets: NDArray[np.int64], goals: Floats
) -> tuple[Floats, Floats]:
    """``- sum goal log p`` with ``p`` the softmax of the scores.

    Goals are probabilities: they sum to 1 over a sentence, or to 0 if it does not count.
    """
    n_sentences = len(offsets) - 1
    owner = np.repeat(np.arange(n_sentences), np.diff(offsets))
    masses = np.bincount(owner, goals, n_sentences)
    logs = scores - _log_sums(scores, offsets)[owner]
    terms = np.where(goals > 0.0, goals * logs, 0.0)
    values = -np.bincount(owner, terms, n_sentences).astype(np.float64)
    return values, masses[owner] * np.exp(logs) - goals


def softmax_shares(scores: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return the softmax of each sentence's scores, float64 ``[n_hyps]``."""
    owner = np.repeat(np.arange(len(offsets) - 1), np.diff(offsets))
    return np.asarray(np.exp(scores - _log_sums(scores, offsets)[owner]))


def _log_sums(scores: Floats, offsets: NDArray[np.int64]) -> Floats:
    """Return ``log sum exp`` of each sentence's scores, minus infinity if all are 0."""
    n_sentences = len(offsets) - 1
    logs = np.full(n_sentences, -np.inf)
    filled = np.flatnonzero(np.diff(offsets))
    if not len(filled):
        return logs
    tops = np.maximum.reduceat(scores, offsets[:-1][filled])
    shifts = np.zeros(n_sentences)
    shifts[filled] = np.where(np.isfinite(tops), tops, 0.0)
    owner = np.repeat(np.arange(n_sentences), np.diff(offsets))
    sums = np.bincount(owner, weights=np.exp(scores - shifts[owner]), minlength=n_sentences)
    some = sums > 0.0
    logs[some] = shifts[some] + np.log(sums[some])
    return logs


LOGISTIC = PairLoss("Green et al. 2013, eq. 12", _logistic)
HINGE = PairLoss("Watanabe 2012, eq. 5", _hinge, margin=1.0)
SQUARED = PairLoss("Bazrafshan et al. 2012; Neubig & Watanabe 2016, eq. 33", _squared)
SOFTMAX = ListLoss("Watanabe 2012, eq. 6", _softmax)
EXPECTED_ERROR = ListLoss("Neubig & Watanabe 2016, eq. 23-24", _expected_error)
CROSS_ENTROPY = ListLoss("Green et al. 2014, section 3.2", _cross_entropy)
