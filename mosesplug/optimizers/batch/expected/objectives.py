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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Floats, Scores, SentenceValues, Statistics, Weights
from mosesplug.candidates import Objective
from mosesplug.kernels import read_only
from mosesplug.metrics.bleu.expected import expected_bleu
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


def evaluate_scaled(
    objective: Objective, weights: Weights, scale: float
) -> tuple[float, Weights, float]:
    """Return the objective at ``scale * weights`` (survey, eq. 22) and derivatives.

    Args:
        objective: the objective of the weights of a distribution.
        scale: ``gamma``.

    Returns:
        The value, its gradient by the weights, float64 ``[n_features]``, and its derivative by the
        scale (survey, equation A.8, and the same for the other factor).
    """
    value, gradient = objective(scale * weights)
    return value, scale * gradient, float(gradient @ weights)


@dataclass(frozen=True)
class _Part:
    """A shard of an objective.

    Attributes:
        lists: the hypotheses.
        rows: values of each hypothesis, by name.
        last: the last distribution of each thread, and its weights.
    """

    lists: BlockedLists
    rows: Mapping[str, NDArray[Any]]
    last: threading.local = field(default_factory=threading.local, repr=False, compare=False)

    @classmethod
    def of(cls, shard: ListShard, **rows: NDArray[Any]) -> _Part:
        return cls(BlockedLists.of(shard), rows)

    @classmethod
    def with_statistics(cls, shard: ListShard) -> _Part:
        return cls.of(shard, stats=read_only(shard.lists.stats, np.float64))

    def keep_distribution(self, weights: Weights) -> Distribution:
        """Return the distribution, and keep it for ``take_distribution``."""
        distribution = self.lists.distribution(weights)
        self.last.kept = weights.tobytes(), distribution
        return distribution

    def take_distribution(self, weights: Weights) -> Distribution:
        """Return the kept distribution, or compute it if it has other weights."""
        key, distribution = self.last.__dict__.pop("kept", (b"", None))
        return distribution if key == weights.tobytes() else self.lists.distribution(weights)


_Sums = tuple[SentenceValues, GradientParts]
"""The values of a shard's sentences, and the gradient of their sum."""


def _add(sums: Sequence[_Sums]) -> tuple[float, Weights]:
    values = np.concatenate([values for values, _ in sums])
    return float(values.sum()), add_gradients([gradient for _, gradient in sums])


def softmax(
    shards: ListShards, is_oracle: NDArray[np.bool_], costs: Scores | None = None
) -> Objective:
    """Return minus the mean log-probability of the oracles (survey, eq. 20 and 21).

    The survey prints a product over sentences where it means its logarithm, a sum. The objective is
    convex if each sentence has one oracle.

    Args:
        shards: the hypotheses in shards.
        is_oracle: bool ``[n_hyps]``; at least one of each sentence that has hypotheses.
        costs: added to the scores. With the costs of the hypotheses, 0 for oracles, it is the
            softmax-margin of Gimpel & Smith (2010).
    """
    rows: dict[str, NDArray[Any]] = {"is_oracle": is_oracle}
    if costs is not None:
        rows["costs"] = costs
    prepared, total = shards.prepare(_Part.of, rows=rows), shards.total_weight

    def objective(weights: Weights) -> tuple[float, Weights]:
        value, gradient = _add(prepared.map(_oracle_sums, repeat(weights)))
        return value / total, gradient / total

    return objective


def _oracle_sums(part: _Part, weights: Weights) -> _Sums:
    lists = part.lists
    model = lists.distribution(weights, part.rows.get("costs"))
    is_oracle = read_only(part.rows["is_oracle"])
    losses, coefficients = np.empty(lists.n_sentences), np.empty(lists.n_hyps)
    lists.for_each_block(
        lambda first, last: compute_oracle_losses(
            lists.offsets,
            first,
            last,
            model.scores,
            model.logs,
            model.shares,
            is_oracle,
            losses,
            coefficients,
        )
    )
    losses, coefficients = lists.weigh(losses, coefficients)
    return losses, lists.gradient_parts(coefficients)


def risk(shards: ListShards, errors: Scores, temperature: float = 0.0) -> Objective:
    """Return the mean expected error of a sentence (survey, eq. 24) minus entropy.

    Args:
        shards: the hypotheses in shards.
        temperature: the temperature of the entropy, ``T``.
    """
    prepared = shards.prepare(_Part.of, rows={"errors": errors})
    total = shards.total_weight

    def objective(weights: Weights) -> tuple[float, Weights]:
        value, gradient = _add(prepared.map(_error_sums, repeat(weights), repeat(temperature)))
        return value / total, gradient / total

    return objective


def _error_sums(part: _Part, weights: Weights, temperature: float) -> _Sums:
    return _average(part.lists, part.lists.distribution(weights), part.rows["errors"], temperature)


def xbleu(shards: ListShards, temperature: float = 0.0) -> Objective:
    """Return minus BLEU of expected statistics (survey, eq. 53-55), minus entropy.

    Args:
        shards: the hypotheses in shards, with statistics of BLEU.
        temperature: the temperature of the entropy, ``T``.
    """
    prepared = shards.prepare(_Part.with_statistics)
    share = temperature / shards.total_weight

    def objective(weights: Weights) -> tuple[float, Weights]:
        totals = add_parts(prepared.map(_expected_statistics, repeat(weights)))
        bleu, by_statistics = expected_bleu(totals)
        sums = prepared.map(_bleu_sums, repeat(weights), repeat(by_statistics), repeat(share))
        linear, gradient = _add(sums)
        # These errors add up to BLEU's linear approximation, which is replaced by BLEU itself.
        return linear + float(by_statistics @ totals) - bleu, gradient

    return objective


def _expected_statistics(part: _Part, weights: Weights) -> Floats:
    """Return the expected statistics of each block, float64 ``[n_blocks, 9]``."""
    lists, stats = part.lists, part.rows["stats"]
    shares = part.keep_distribution(weights).shares
    if lists.row_weights is not None:
        shares = shares * lists.row_weights
    return lists.block_sums(
        stats.shape[1],
        lambda first, last, own: add_statistics(*lists.rows(first, last), stats, shares, own),
    )


def _bleu_sums(
    part: _Part, weights: Weights, by_statistics: Statistics, temperature: float
) -> _Sums:
    lists, errors = part.lists, np.zeros(part.lists.n_hyps)
    lists.for_each_block(
        lambda first, last: add_weighted_statistics(
            *lists.rows(first, last), part.rows["stats"], -by_statistics, errors
        )
    )
    return _average(lists, part.take_distribution(weights), errors, temperature)


def _average(lists: BlockedLists, model: Distribution, errors: Scores, temperature: float) -> _Sums:
    """Return expected errors of sentences minus the temperature times their entropies.

    The entropy of a sentence is ``log sum exp(s) - E[s]``, so the scores ``s`` act as errors too.
    """
    if temperature == 0.0:
        means, coefficients = lists.weigh(*lists.expectations(model, errors))
        return means, lists.gradient_parts(coefficients)
    means, coefficients = lists.expectations(model, errors + temperature * model.scores)
    means, coefficients = lists.weigh(means - temperature * model.logs, coefficients)
    return means, lists.gradient_parts(coefficients)
