"""Weights: dense ones in the order of the decoder's features, sparse ones by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from formats.weights.any_format import WeightFile
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import ModelWeights
from mosesplug.errors import UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.settings.intervals import StartRange
from mosesplug.store.stored import Finite

NO_WEIGHTS: Mapping[str, float] = MappingProxyType({})


@dataclass(frozen=True)
class Weights:
    """The weights of a model.

    Attributes:
        dense: one weight per dense feature.
        sparse: weights of sparse features by name; a missing one is 0.
    """

    dense: tuple[Finite, ...]
    sparse: Mapping[str, Finite] = field(default_factory=dict)

    @classmethod
    def of_vector(
        cls,
        space: FeatureSpace,
        vector: NDArray[np.float64],
        fixed: Mapping[str, float] = NO_WEIGHTS,
    ) -> Weights:
        """Return the weights of a vector, float64 ``[len(space)]``.

        Sparse features whose weight is 0 or that are ``fixed`` are left out.
        """
        values = vector.tolist()
        pairs = zip(space.sparse, values[space.n_dense :], strict=True)
        sparse = {name: w for name, w in pairs if w != 0.0 and name not in fixed}
        return cls(tuple(values[: space.n_dense]), sparse)

    @classmethod
    def of_file(cls, file: WeightFile) -> Weights:
        """Return the weights of a file.

        Raises:
            FormatError: a sparse weight file that a ``moses.ini`` names cannot be read.
        """
        return cls(file.dense, file.all_sparse)

    def by_name(self, names: Sequence[str]) -> dict[str, float]:
        """Return all weights by name; ``names`` are those of the dense ones."""
        return {**dict(zip(names, self.dense, strict=True)), **self.sparse}

    def complete(self, earlier: Weights, space: FeatureSpace) -> Weights:
        """Return these weights, and earlier weights of sparse features that they lack.

        A feature that occurs in no list (it is not in ``space``) keeps its proportion to the dense
        weights. One that got weight 0 is listed with 0, or the decoder would take its weight from
        the configuration.
        """
        scale = self.norm / earlier.norm if earlier.norm else 1.0
        seen = set(space.sparse)
        kept = {name: 0.0 if name in seen else scale * w for name, w in earlier.sparse.items()}
        return Weights(self.dense, {**kept, **self.sparse})

    @property
    def norm(self) -> float:
        """The L1 norm of the dense weights."""
        return sum(map(abs, self.dense))

    def vector(
        self, space: FeatureSpace, fixed: Mapping[str, float] = NO_WEIGHTS
    ) -> NDArray[np.float64]:
        """Return float64 ``[len(space)]``, with the weights of ``fixed`` features.

        Sparse features that are not in ``space`` are left out.
        """
        known = {**self.sparse, **fixed}
        sparse = [known.get(name, 0.0) for name in space.sparse]
        return np.array([*self.dense, *sparse], dtype=np.float64)

    def normalize(self) -> Weights:
        """Return all weights divided by the L1 norm of the dense ones."""
        return self if self.norm == 0.0 else self.scale(1.0 / self.norm)

    def scale(self, factor: float) -> Weights:
        """Return all weights multiplied by a factor."""
        sparse = {name: factor * weight for name, weight in self.sparse.items()}
        return Weights(tuple(factor * weight for weight in self.dense), sparse)

    def mix(self, earlier: Weights, share: float) -> Weights:
        """Return ``share`` of these and the rest of earlier ones.

        Source: Hopkins & May (2011), section 5.4.3.
        """
        pairs = zip(self.dense, earlier.dense, strict=True)
        names = [*self.sparse, *(name for name in earlier.sparse if name not in self.sparse)]
        return Weights(
            tuple(share * new + (1 - share) * old for new, old in pairs),
            {
                name: share * self.sparse.get(name, 0.0) + (1 - share) * earlier.sparse.get(name, 0)
                for name in names
            },
        )

    def keep_zeros(self, weights: Weights) -> Weights:
        """Return these weights, but 0 where other ``weights`` are 0."""
        pairs = zip(self.dense, weights.dense, strict=True)
        return Weights(
            tuple(own if other != 0.0 else 0.0 for own, other in pairs),
            {
                name: own if weights.sparse.get(name, 0.0) != 0.0 else 0.0
                for name, own in self.sparse.items()
            },
        )

    def has_direction(self, other: Weights, tolerance: float = 1e-9) -> bool:
        """Return whether these are other weights times a factor, up to rounding."""
        return self.normalize().largest_change(other.normalize()) < tolerance

    def largest_change(self, earlier: Weights) -> float:
        """Return the largest absolute difference of one weight."""
        changes = [abs(a - b) for a, b in zip(self.dense, earlier.dense, strict=True)]
        changes += [
            abs(self.sparse.get(name, 0.0) - earlier.sparse.get(name, 0.0))
            for name in {*self.sparse, *earlier.sparse}
        ]
        return max(changes, default=0.0)


def to_model_weights(show: ShowWeights, weights: Weights) -> ModelWeights:
    """Return weights as a decoder of mini-batches takes them."""
    return ModelWeights(show.with_values(weights.dense).groups, weights.sparse)


def average_weights(every: Sequence[Weights], *, normalize: bool) -> Weights:
    """Return the mean of weights; a missing sparse weight counts as 0.

    Args:
        normalize: divide each by its L1 norm first, so that all count alike. Beside features that
            are not tuned, the scale of the weights matters and must be kept.
    """
    points = [weights.normalize() for weights in every] if normalize else list(every)
    mean = points[0]
    for count, point in enumerate(points[1:], start=2):
        mean = point.mix(mean, 1.0 / count)
    return mean


def arrange_ranges(
    ranges: Sequence[StartRange], group_names: tuple[str, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Return the bounds of random starting weights: minima, maxima per dense feature.

    Features without bounds have 0 to 1.

    Raises:
        UsageError: a range names no group, or a group has too many intervals.
    """
    bounds: dict[str, list[tuple[float, float]]] = {}
    for name, interval in (pair for given in ranges for pair in given.intervals):
        bounds.setdefault(name, []).append((interval.low, interval.high))
    for name, pairs in bounds.items():
        width = group_names.count(name)
        if width == 0:
            raise UsageError(f"{{--range}}: {explain_unknown_feature(name, group_names)}")
        if len(pairs) > width:
            raise UsageError(
                f"{{--range}}: {len(pairs)} bounds for {name}, which has {width} values"
            )
    minima, maxima = [], []
    for name in group_names:
        pairs = bounds.get(name, [])
        low, high = pairs.pop(0) if pairs else (0.0, 1.0)
        minima.append(low)
        maxima.append(high)
    return tuple(minima), tuple(maxima)
