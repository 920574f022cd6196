"""Norms and linear combinations of weights.

Multiplying all weights by one positive number changes no decision. Weights are therefore divided by
the L1 norm of their dense weights before they are combined, unless the caller prevents it; sparse
weights are divided by the same norm. A sparse weight that is missing counts as 0.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

from mosesplug.errors import DataError
from mosesplug.results.weights.sources import ResolvedWeights
from mosesplug.tuning.weights import Weights

Norm = Literal["l1", "l2", "max"]


def check_usable(weights: ResolvedWeights) -> None:
    """Check that weights can rank hypotheses.

    Raises:
        DataError: all are 0, or one is not finite.
    """
    values = weights.by_name.values()
    if not all(map(math.isfinite, values)):
        raise DataError(f"{weights.source}: a weight is not finite: the numbers are too large")
    if not any(values):
        raise DataError(f"{weights.source}: all weights are 0 and cannot rank hypotheses")


def compute_norm(weights: ResolvedWeights, norm: Norm = "l1") -> float:
    """Return the L1, L2 or maximum norm of the dense weights."""
    sizes = [abs(value) for value in weights.weights.dense]
    match norm:
        case "l1":
            return math.fsum(sizes)
        case "l2":
            return math.hypot(*sizes)
        case "max":
            return max(sizes, default=0.0)


def normalize(weights: ResolvedWeights, norm: Norm = "l1") -> ResolvedWeights:
    """Divide all weights by the norm of the dense ones.

    Raises:
        DataError: there are no dense weights, or all of them are 0.
    """
    size = compute_norm(weights, norm)
    if not weights.weights.dense:
        raise DataError(
            f"{weights.source} has no dense weights to normalize by: give them too, as "
            f"DENSE+{weights.source}"
        )
    if size == 0.0:
        raise DataError(f"{weights.source}: all dense weights are 0 and cannot be normalized")
    dense = tuple(value / size for value in weights.weights.dense)
    sparse = {name: value / size for name, value in weights.weights.sparse.items()}
    scaled = weights.with_weights(Weights(dense, sparse), weights.source)
    check_usable(scaled)
    return scaled


def align(every: Sequence[ResolvedWeights]) -> list[ResolvedWeights]:
    """Arrange dense weights in the order of the first that have names.

    Weights without names get these names, and must already be in this order.

    Raises:
        DataError: they have different dense features.
    """
    leader = next(
        (weights for weights in every if weights.is_named and weights.weights.dense), every[0]
    )
    return [_arrange_like(weights, leader) for weights in every]


def _arrange_like(weights: ResolvedWeights, leader: ResolvedWeights) -> ResolvedWeights:
    if len(weights.weights.dense) != len(leader.weights.dense):
        raise DataError(
            f"{weights.source} has {len(weights.weights.dense)} dense weights, but "
            f"{leader.source} has {len(leader.weights.dense)}: give weights of one system"
        )
    if not leader.is_named:
        return weights
    if not weights.is_named:
        if leader.format == "moses.ini":
            raise DataError(
                f"{weights.source} has numbers without names, in the decoder's order, which "
                f"{leader.source} does not tell: name them with a runN.dense or a features.list"
            )
        return replace(weights, show=leader.show.with_values(weights.weights.dense))
    known = dict(zip(weights.names, weights.weights.dense, strict=True))
    missing = [name for name in leader.names if name not in known]
    if missing:
        raise DataError(
            f"{weights.source} has no weight of {missing[0]}, which {leader.source} has: give "
            "weights of one system"
        )
    dense = tuple(known[name] for name in leader.names)
    return replace(
        weights,
        show=leader.show.with_values(dense),
        weights=Weights(dense, weights.weights.sparse),
    )


def combine(
    every: Sequence[ResolvedWeights], shares: Sequence[float], source: str, *, normalized: bool
) -> ResolvedWeights:
    """Return the linear combination of weights; equal values are kept to the last bit.

    Args:
        every: at least one; the result has the format of the first.
        shares: their coefficients, which sum to 1.
        normalized: divide each by the L1 norm of its dense weights first.

    Raises:
        DataError: they have different dense or derived features, templates or length exponents, a
            norm is 0, or the result is 0.
    """
    every = align(every)
    exponents = [weights.changes.length_exponent for weights in every]
    if differing := next((place for place, e in enumerate(exponents) if e != exponents[0]), 0):
        one, other = (
            f"{every[place].source} ({exponents[place] or 'none'})" for place in (0, differing)
        )
        raise DataError(
            f"{one} and {other} were learned with different length exponents: their scores are "
            "divided by different numbers, so a sum of the weights has no meaning"
        )
    derived = [weights.changes.derived_features for weights in every]
    if differing := next((place for place, d in enumerate(derived) if d != derived[0]), 0):
        one, other = (
            f"{every[place].source} ({_spell(derived[place])})" for place in (0, differing)
        )
        raise DataError(
            f"{one} and {other} were learned with different derived features, so a sum of the "
            "weights has no meaning"
        )
    digests = {d: w.source for w in every if (d := w.changes.templates_digest)}
    if len(digests) > 1:
        raise DataError(
            f"{' and '.join(list(digests.values())[:2])} were learned with different templates: "
            "features of one name differ, so a sum of the weights has no meaning"
        )
    if normalized:
        every = [normalize(weights) for weights in every]

    def mix(values: Sequence[float]) -> float:
        if len(set(values)) == 1:
            return values[0]
        return math.fsum(share * value for share, value in zip(shares, values, strict=True))

    columns = zip(*(weights.weights.dense for weights in every), strict=True)
    names = dict.fromkeys(name for weights in every for name in weights.weights.sparse)
    sparse = {
        name: mix([weights.weights.sparse.get(name, 0.0) for weights in every]) for name in names
    }
    combined = every[0].with_weights(Weights(tuple(map(mix, columns)), sparse), source)
    check_usable(combined)
    return combined


def _spell(derived: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={text}" for name, text in derived.items()) or "none"
