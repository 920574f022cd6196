"""Means, mixtures, norms and differences of weights.

Multiplying all weights by one positive number changes no decision, so weights of different size
may mean the same. Before points are mixed, each is divided by the L1 norm of its dense weights
unless that is not wanted: else the largest would decide alone. Sparse weights are multiplied by
the same number. A sparse weight that a point lacks is 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from mosesplug.errors import DataError
from mosesplug.inspection.weights.points import Point
from mosesplug.tuning.weights import Weights

__all__ = [
    "Difference",
    "Norm",
    "aligned",
    "check_usable",
    "combined",
    "cosine",
    "differences",
    "norm_of",
    "normalised",
]

Norm = Literal["l1", "l2", "max"]


@dataclass(frozen=True)
class Difference:
    """One feature of two points.

    Attributes:
        name: of the feature.
        first, second: its weights; None where a point does not have it.
    """

    name: str
    first: float | None
    second: float | None

    @property
    def change(self) -> float:
        """Second less first; what is not there counts as 0."""
        return (self.second or 0.0) - (self.first or 0.0)

    @property
    def relative(self) -> float | None:
        """The change over the size of the first; None where that is 0 or not there."""
        return self.change / abs(self.first) if self.first else None


def check_usable(point: Point) -> None:
    """Refuse weights by which nothing can be ranked.

    Raises:
        DataError: all are 0, or one is not finite.
    """
    values = point.named.values()
    if not all(map(math.isfinite, values)):
        raise DataError(f"{point.source}: a weight is not finite: the numbers are too large")
    if not any(values):
        raise DataError(f"{point.source}: all weights are 0, which ranks nothing")


def norm_of(point: Point, norm: Norm = "l1") -> float:
    """The norm of the dense weights: the sum of their sizes, Euclid's, or the largest size."""
    sizes = [abs(value) for value in point.weights.dense]
    match norm:
        case "l1":
            return math.fsum(sizes)
        case "l2":
            return math.hypot(*sizes)
        case "max":
            return max(sizes, default=0.0)


def normalised(point: Point, norm: Norm = "l1") -> Point:
    """All weights over the norm of the dense ones.

    Raises:
        DataError: there are no dense weights, or all of them are 0.
    """
    size = norm_of(point, norm)
    if not point.weights.dense:
        raise DataError(
            f"{point.source} has no dense weights, whose norm is needed: give them too, as "
            f"DENSE+{point.source}"
        )
    if size == 0.0:
        raise DataError(f"{point.source}: all dense weights are 0, and have no direction")
    dense = tuple(value / size for value in point.weights.dense)
    sparse = {name: value / size for name, value in point.weights.sparse.items()}
    found = point.with_weights(Weights(dense, sparse), point.source)
    check_usable(found)
    return found


def aligned(points: Sequence[Point]) -> list[Point]:
    """The same points, their dense weights in the order of the first that has names for them.

    Numbers without names take the names of that point, in whose order they must be.

    Raises:
        DataError: they have not the same dense features.
    """
    leader = next((point for point in points if point.is_named and point.weights.dense), points[0])
    return [_like(point, leader) for point in points]


def _like(point: Point, leader: Point) -> Point:
    if len(point.weights.dense) != len(leader.weights.dense):
        raise DataError(
            f"{point.source} has {len(point.weights.dense)} dense weights, and {leader.source} "
            f"{len(leader.weights.dense)}: weights of one system are needed"
        )
    if not leader.is_named:
        return point
    if not point.is_named:
        if leader.format == "moses.ini":
            raise DataError(
                f"{point.source} has numbers alone, in the decoder's order, which {leader.source} "
                "does not tell: give their names by a runN.dense or a features.list"
            )
        return replace(point, show=leader.show.with_values(point.weights.dense))
    known = dict(zip(point.names, point.weights.dense, strict=True))
    missing = [name for name in leader.names if name not in known]
    if missing:
        raise DataError(
            f"{point.source} has no weight of {missing[0]}, which {leader.source} has: weights of "
            "one system are needed"
        )
    dense = tuple(known[name] for name in leader.names)
    return replace(
        point,
        show=leader.show.with_values(dense),
        weights=Weights(dense, point.weights.sparse),
    )


def combined(
    points: Sequence[Point], shares: Sequence[float], source: str, *, normalise: bool
) -> Point:
    """The sum of the points, each multiplied by its share; of equal points it is that point.

    Args:
        points: at least one; the result has the form of the first.
        shares: one a point; their sum is 1.
        source: what the result is, for messages.
        normalise: whether each point is divided by the L1 norm of its dense weights first.

    Raises:
        DataError: they have not the same dense features, there is no norm, or the result is 0.
    """
    points = aligned(points)
    if normalise:
        points = [normalised(point) for point in points]

    def mixed(values: Sequence[float]) -> float:
        if len(set(values)) == 1:
            return values[0]
        return math.fsum(share * value for share, value in zip(shares, values, strict=True))

    columns = zip(*(point.weights.dense for point in points), strict=True)
    names = dict.fromkeys(name for point in points for name in point.weights.sparse)
    sparse = {
        name: mixed([point.weights.sparse.get(name, 0.0) for point in points]) for name in names
    }
    found = points[0].with_weights(Weights(tuple(map(mixed, columns)), sparse), source)
    check_usable(found)
    return found


def differences(first: Point, second: Point) -> list[Difference]:
    """The weights of two points, the largest change first.

    Raises:
        DataError: one has no names, and the other not as many weights.
    """
    if first.is_named != second.is_named:
        first, second = aligned([first, second])
    one, other = first.named, second.named
    found = [
        Difference(name, one.get(name), other.get(name)) for name in dict.fromkeys([*one, *other])
    ]
    return sorted(found, key=lambda each: -abs(each.change))


def cosine(rows: Sequence[Difference]) -> float | None:
    """The cosine of the angle between two points, 1 where they rank alike; None if one is 0."""
    one = [row.first or 0.0 for row in rows]
    other = [row.second or 0.0 for row in rows]
    sizes = math.hypot(*one), math.hypot(*other)
    if 0.0 in sizes:
        return None
    # Each over its norm first: products of very large or very small numbers leave the range.
    return math.fsum((a / sizes[0]) * (b / sizes[1]) for a, b in zip(one, other, strict=True))
