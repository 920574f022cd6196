"""Objectives of distributions over lists: softmax, risk and xBLEU, minus entropy.

An objective is minimised. It returns the cost of a distribution and its derivatives by the weights;
``BlockedLists.gradient`` applies the chain rule from scores to features. The temperature ``T`` of
risk and xBLEU subtracts ``T H``, where ``H`` is the mean entropy (survey, equations 44 and 45).
Deterministic annealing lowers it; a higher temperature keeps the distribution undecided.

Search graphs have the same objectives over all their derivations (``forest.objectives``).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.metrics.expected_bleu import expected_bleu
from mosesplug.optimizers.derivations import Objective
from mosesplug.optimizers.lists import block_kernels as kernels
from mosesplug.optimizers.lists.blocks import BlockedLists, Distribution

__all__ = ["Objective", "evaluate_scaled", "risk", "softmax", "xbleu"]

Floats = NDArray[np.float64]


def evaluate_scaled(
    objective: Objective, weights: Floats, scale: float
) -> tuple[float, Floats, float]:
    """Return the objective at ``scale * weights`` (survey, eq. 22) and derivatives.

    Args:
        objective: of the weights of a distribution.
        weights: float64 ``[n_features]``.
        scale: ``gamma``.

    Returns:
        The value, its gradient by the weights, float64 ``[n_features]``, and its derivative by the
        scale (survey, equation A.8, and the same for the other factor).
    """
    value, gradient = objective(scale * weights)
    return value, scale * gradient, float(gradient @ weights)


def softmax(
    lists: BlockedLists, is_oracle: NDArray[np.bool_], costs: Floats | None = None
) -> Objective:
    """Return minus the mean log-probability of the oracles (survey, eq. 20 and 21).

    The survey prints a product over sentences where it means its logarithm, a sum. The objective is
    convex if each sentence has one oracle.

    Args:
        lists: the hypotheses.
        is_oracle: bool ``[n_hyps]``; at least one of each sentence that has hypotheses.
        costs: float64 ``[n_hyps]``, added to the scores. With the costs of the hypotheses, 0 for
            oracles, it is the softmax-margin of Gimpel & Smith (2010).
    """

    def objective(weights: Floats) -> tuple[float, Floats]:
        found = lists.distribution(weights, costs)
        losses, coefficients = np.empty(lists.n_sentences), np.empty(lists.n_hyps)
        lists.for_each_block(
            lambda first, last: kernels.compute_oracle_losses(
                lists.offsets,
                first,
                last,
                found.scores,
                found.logs,
                found.shares,
                is_oracle,
                losses,
                coefficients,
            )
        )
        return float(losses.sum()) / lists.n_filled, lists.gradient(coefficients) / lists.n_filled

    return objective


def risk(lists: BlockedLists, errors: Floats, temperature: float = 0.0) -> Objective:
    """Return the mean expected error of a sentence (survey, eq. 24) minus entropy.

    Args:
        lists: the hypotheses.
        errors: float64 ``[n_hyps]``.
        temperature: of the entropy, ``T``.
    """

    def objective(weights: Floats) -> tuple[float, Floats]:
        found = lists.distribution(weights)
        value, coefficients = _average(lists, found, errors, temperature)
        return value / lists.n_filled, lists.gradient(coefficients) / lists.n_filled

    return objective


def xbleu(lists: BlockedLists, stats: Floats, temperature: float = 0.0) -> Objective:
    """Return minus BLEU of expected statistics (survey, eq. 53-55), minus entropy.

    Args:
        lists: the hypotheses.
        stats: float64 ``[n_hyps, 9]``, C-contiguous; of BLEU.
        temperature: of the entropy, ``T``.
    """

    def objective(weights: Floats) -> tuple[float, Floats]:
        found = lists.distribution(weights)
        totals = lists.sum_blocks(
            stats.shape[1],
            lambda first, last, own: kernels.add_statistics(
                *lists.rows(first, last), stats, found.shares, own
            ),
        )
        bleu, by_statistics = expected_bleu(totals)
        errors = np.zeros(lists.n_hyps)
        lists.for_each_block(
            lambda first, last: kernels.add_weighted_statistics(
                *lists.rows(first, last), stats, -by_statistics, errors
            )
        )
        linear, coefficients = _average(lists, found, errors, temperature / lists.n_filled)
        # These errors add up to BLEU's linear approximation, which is replaced by BLEU itself.
        value = linear + float(by_statistics @ totals) - bleu
        return value, lists.gradient(coefficients)

    return objective


def _average(
    lists: BlockedLists, found: Distribution, errors: Floats, temperature: float
) -> tuple[float, Floats]:
    """Return the summed expected errors minus the temperature times the entropies.

    The entropy of a sentence is ``log sum exp(s) - E[s]``, so the scores ``s`` act as errors too.

    Returns:
        The sum, and its derivatives by the scores, float64 ``[n_hyps]``.
    """
    if temperature == 0.0:
        means, coefficients = lists.expectations(found, errors)
        return float(means.sum()), coefficients
    means, coefficients = lists.expectations(found, errors + temperature * found.scores)
    return float((means - temperature * found.logs).sum()), coefficients
