"""Objectives of distributions over lists: softmax, risk and xBLEU, minus entropy.

An objective is minimized. It returns the cost of a distribution and its derivatives by the weights,
which are sums over shards; ``BlockedLists.gradient_parts`` applies the chain rule from scores to
features. The temperature ``T`` of risk and xBLEU subtracts ``T H``, where ``H`` is the mean entropy
(survey, equations 44 and 45). Deterministic annealing lowers it; a higher temperature keeps the
distribution undecided.

Search graphs have the same objectives over all their derivations (``forest.objectives``).
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.candidates import Objective
from mosesplug.kernels import read_only
from mosesplug.metrics.expected_bleu import expected_bleu
from mosesplug.optimizers.lists.blocks import (
    BlockedLists,
    Distribution,
    GradientParts,
    add_gradients,
    add_parts,
    add_statistics,
    add_weighted_statistics,
    compute_oracle_losses,
)
from mosesplug.optimizers.lists.shards import ListShard, ListShards

Floats = NDArray[np.float64]


def evaluate_scaled(
    objective: Objective, weights: Floats, scale: float
) -> tuple[float, Floats, float]:
    """Return the objective at ``scale * weights`` (survey, eq. 22) and derivatives.

    Args:
        objective: the objective of the weights of a distribution.
        weights: float64 ``[n_features]``.
        scale: ``gamma``.

    Returns:
        The value, its gradient by the weights, float64 ``[n_features]``, and its derivative by the
        scale (survey, equation A.8, and the same for the other factor).
    """
    value, gradient = objective(scale * weights)
    return value, scale * gradient, float(gradient @ weights)


@dataclass(frozen=True)
class _Sums:
    """Sums of an objective over the sentences of a shard.

    Attributes:
        values: float64 ``[n_sentences]``.
        gradient: the gradient of their sum.
    """

    values: Floats
    gradient: GradientParts


def _add(sums: Sequence[_Sums]) -> tuple[float, Floats]:
    values = np.concatenate([each.values for each in sums])
    return float(values.sum()), add_gradients([each.gradient for each in sums])


def _count_filled(shards: ListShards) -> int:
    """Return the number of sentences that have hypotheses."""
    return int(np.count_nonzero(np.diff(shards.offsets)))


@dataclass(frozen=True)
class _OracleLists:
    """A shard of the softmax loss; see ``softmax``."""

    lists: BlockedLists
    is_oracle: NDArray[np.bool_]
    costs: Floats | None


def softmax(
    shards: ListShards, is_oracle: NDArray[np.bool_], costs: Floats | None = None
) -> Objective:
    """Return minus the mean log-probability of the oracles (survey, eq. 20 and 21).

    The survey prints a product over sentences where it means its logarithm, a sum. The objective is
    convex if each sentence has one oracle.

    Args:
        shards: the hypotheses in shards.
        is_oracle: bool ``[n_hyps]``; at least one of each sentence that has hypotheses.
        costs: float64 ``[n_hyps]``, added to the scores. With the costs of the hypotheses, 0 for
            oracles, it is the softmax-margin of Gimpel & Smith (2010).
    """
    rows: dict[str, NDArray[Any]] = {"is_oracle": is_oracle}
    if costs is not None:
        rows["costs"] = costs
    prepared, n_filled = shards.prepare(_oracle_lists, rows=rows), _count_filled(shards)

    def objective(weights: Floats) -> tuple[float, Floats]:
        value, gradient = _add(prepared.map(_oracle_sums, repeat(weights)))
        return value / n_filled, gradient / n_filled

    return objective


def _oracle_lists(
    shard: ListShard, is_oracle: NDArray[np.bool_], costs: Floats | None = None
) -> _OracleLists:
    return _OracleLists(BlockedLists.of(shard), is_oracle, costs)


def _oracle_sums(part: _OracleLists, weights: Floats) -> _Sums:
    lists = part.lists
    found = lists.distribution(weights, part.costs)
    losses, coefficients = np.empty(lists.n_sentences), np.empty(lists.n_hyps)
    lists.for_each_block(
        lambda first, last: compute_oracle_losses(
            lists.offsets,
            first,
            last,
            found.scores,
            found.logs,
            found.shares,
            part.is_oracle,
            losses,
            coefficients,
        )
    )
    return _Sums(losses, lists.gradient_parts(coefficients))


@dataclass(frozen=True)
class _ErrorLists:
    """A shard of the expected error; see ``risk``."""

    lists: BlockedLists
    errors: Floats


def risk(shards: ListShards, errors: Floats, temperature: float = 0.0) -> Objective:
    """Return the mean expected error of a sentence (survey, eq. 24) minus entropy.

    Args:
        shards: the hypotheses in shards.
        errors: float64 ``[n_hyps]``.
        temperature: the temperature of the entropy, ``T``.
    """
    prepared = shards.prepare(_error_lists, rows={"errors": errors})
    n_filled = _count_filled(shards)

    def objective(weights: Floats) -> tuple[float, Floats]:
        value, gradient = _add(prepared.map(_error_sums, repeat(weights), repeat(temperature)))
        return value / n_filled, gradient / n_filled

    return objective


def _error_lists(shard: ListShard, errors: Floats) -> _ErrorLists:
    return _ErrorLists(BlockedLists.of(shard), errors)


def _error_sums(part: _ErrorLists, weights: Floats, temperature: float) -> _Sums:
    return _average(part.lists, part.lists.distribution(weights), part.errors, temperature)


@dataclass(frozen=True)
class _StatisticsLists:
    """A shard of xBLEU.

    Attributes:
        lists: the hypotheses.
        stats: float64 ``[n_hyps, 9]``, C-contiguous.
        last: the last distribution of each thread, and its weights.
    """

    lists: BlockedLists
    stats: Floats
    last: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    def keep_distribution(self, weights: Floats) -> Distribution:
        """Return the distribution, and keep it for ``take_distribution``."""
        found = self.lists.distribution(weights)
        self.last.kept = weights.tobytes(), found
        return found

    def take_distribution(self, weights: Floats) -> Distribution:
        """Return the kept distribution, or compute it if it has other weights."""
        key, found = self.last.__dict__.pop("kept", (b"", None))
        return found if key == weights.tobytes() else self.lists.distribution(weights)


def xbleu(shards: ListShards, temperature: float = 0.0) -> Objective:
    """Return minus BLEU of expected statistics (survey, eq. 53-55), minus entropy.

    Args:
        shards: the hypotheses in shards, with statistics of BLEU.
        temperature: the temperature of the entropy, ``T``.
    """
    prepared = shards.prepare(_statistics_lists)
    share = temperature / _count_filled(shards)

    def objective(weights: Floats) -> tuple[float, Floats]:
        totals = add_parts(prepared.map(_expected_statistics, repeat(weights)))
        bleu, by_statistics = expected_bleu(totals)
        sums = prepared.map(_bleu_sums, repeat(weights), repeat(by_statistics), repeat(share))
        linear, gradient = _add(sums)
        # These errors add up to BLEU's linear approximation, which is replaced by BLEU itself.
        return linear + float(by_statistics @ totals) - bleu, gradient

    return objective


def _statistics_lists(shard: ListShard) -> _StatisticsLists:
    return _StatisticsLists(BlockedLists.of(shard), read_only(shard.lists.stats, np.float64))


def _expected_statistics(part: _StatisticsLists, weights: Floats) -> Floats:
    """Return the expected statistics of each block, float64 ``[n_blocks, 9]``."""
    lists, stats = part.lists, part.stats
    found = part.keep_distribution(weights)
    return lists.block_sums(
        stats.shape[1],
        lambda first, last, own: add_statistics(*lists.rows(first, last), stats, found.shares, own),
    )


def _bleu_sums(
    part: _StatisticsLists, weights: Floats, by_statistics: Floats, temperature: float
) -> _Sums:
    """Return the sums of errors by the derivatives of BLEU, float64 ``[9]``."""
    lists, errors = part.lists, np.zeros(part.lists.n_hyps)
    lists.for_each_block(
        lambda first, last: add_weighted_statistics(
            *lists.rows(first, last), part.stats, -by_statistics, errors
        )
    )
    return _average(lists, part.take_distribution(weights), errors, temperature)


def _average(lists: BlockedLists, found: Distribution, errors: Floats, temperature: float) -> _Sums:
    """Return expected errors of sentences minus the temperature times their entropies.

    The entropy of a sentence is ``log sum exp(s) - E[s]``, so the scores ``s`` act as errors too.
    """
    if temperature == 0.0:
        means, coefficients = lists.expectations(found, errors)
        return _Sums(means, lists.gradient_parts(coefficients))
    means, coefficients = lists.expectations(found, errors + temperature * found.scores)
    return _Sums(means - temperature * found.logs, lists.gradient_parts(coefficients))
