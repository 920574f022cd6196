"""The weights of ``batch-tune``: their limits, and which of them it writes.

``-weight_ranges`` are ``MIN|MAX|NAME MIN|MAX``. An empty limit means that there is no limit. A
range without a name is that of all features without a range of their own. Travatar reads limits as
integers, and keeps them in ``greedy-mert`` only.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.errors import DataError, UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.bounds import Bounds

Range = tuple[float, float]


@dataclass(frozen=True)
class WeightRanges:
    """Limits of weights.

    Attributes:
        by_name: the range of each feature that has one.
        others: the range of all other features.
    """

    by_name: Mapping[str, Range] = field(default_factory=dict)
    others: Range = (-np.inf, np.inf)

    def bounds(self, space: FeatureSpace) -> Bounds | None:
        """Return the bounds of all features; None without any limit."""
        unknown = [name for name in self.by_name if name not in space.labels]
        if unknown:
            raise DataError(f"-weight_ranges: {explain_unknown_feature(unknown[0], space.labels)}")
        limits = np.array([self.by_name.get(name, self.others) for name in space.labels])
        if not np.isfinite(limits).any():
            return None
        closed = np.zeros(len(space), dtype=np.bool_)
        return Bounds(limits[:, 0], limits[:, 1], closed, closed)


def parse_ranges(text: str) -> WeightRanges:
    """Parse the value of ``-weight_ranges``.

    Raises:
        UsageError: a range has another form, a limit is no integer, or a feature has two ranges.
    """
    named: dict[str | None, Range] = {}
    for piece in text.split():
        fields = piece.split("|")
        if len(fields) not in (2, 3):
            raise UsageError(
                f"-weight_ranges: {piece!r} is not of the form MIN|MAX or MIN|MAX|NAME"
            )
        low = -np.inf if not fields[0] else _integer(fields[0], piece)
        high = np.inf if not fields[1] else _integer(fields[1], piece)
        if low > high:
            raise UsageError(f"-weight_ranges: {piece!r}: the minimum is above the maximum")
        name = fields[2] if len(fields) == 3 else None
        if name in named:
            what = f"the feature {name}" if name else "the other features"
            raise UsageError(f"-weight_ranges has two ranges of {what}: give one")
        named[name] = (low, high)
    others = named.pop(None, (-np.inf, np.inf))
    return WeightRanges({str(name): limits for name, limits in named.items()}, others)


def _integer(text: str, piece: str) -> float:
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise UsageError(
            f"-weight_ranges: {piece!r}: Travatar reads integers only, {text!r} as another number. "
            "Give an integer, or use mosesplug optimize --bound"
        )
    return float(text)


def printed_weights(
    space: FeatureSpace, weights: Floats, given: Collection[str]
) -> dict[str, float]:
    """Return the weights to write by name.

    Travatar leaves out weights that became 0. Here, only sparse features with a weight of 0 are
    left out, and only if they had no starting weight: programs look up the weight of each feature.
    """
    pairs = zip(space.labels, weights.tolist(), strict=True)
    return {
        name: value
        for column, (name, value) in enumerate(pairs)
        if value or column < space.n_dense or name in given
    }
