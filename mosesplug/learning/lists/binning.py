"""Learn the bounds of bins: quantiles of values (Nguyen, Mahajan & He 2007).

Only features count, never references, so that bounds fit held-out sentences as they fit others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.text import StrPath
from mosesplug.arrays import Scores
from mosesplug.errors import UsageError
from mosesplug.learning.lists.blocks import find_dense_features, make_steps, read_list_blocks
from mosesplug.learning.lists.deriving import DeriveFeatures
from mosesplug.settings.expressions import Bin, list_bins
from mosesplug.settings.features import DerivedFeature
from mosesplug.settings.lists import ListSettings


class _CollectValues(DeriveFeatures):
    """Collects the values of bins whose bounds are to be learned."""

    def __init__(self, features: Sequence[DerivedFeature]) -> None:
        super().__init__(features)
        self.values: dict[int, list[Scores]] = {}

    def _check_bounds(self) -> None:
        """Accept bins without bounds."""

    def number(self, own_bin: Bin, values: Scores) -> NDArray[np.int64]:
        if own_bin.bounds is not None:
            return super().number(own_bin, values)
        self.values.setdefault(id(own_bin), []).append(values)
        return np.zeros(len(values), dtype=np.int64)


def learn_bins(
    files: Sequence[StrPath | NBestList],
    settings: ListSettings,
    dense: Sequence[str] | None = None,
) -> ListSettings:
    """Return settings with the bounds of all bins, for which the lists are read once.

    A bin has as many hypotheses as the others, as far as equal values allow: bounds that fall on
    one value are one bound.

    Args:
        files: the lists; pipes must be wrapped (``wrap_files``), since they are read again.
        dense: as for ``read_list_blocks``; None: they are found.

    Raises:
        UsageError: the value of a bin is the same in all lists; or as for ``read_list_blocks``.
        FormatError: a list cannot be read, or a value is not finite.
    """
    if all(feature.has_bounds for feature in settings.derive):
        return settings
    plain = replace(settings, derive=(), scores=(), transform=None, templates=None)
    if dense is None:
        dense = find_dense_features(files, plain)
    collect = _CollectValues(settings.derive)
    ids = SentenceIds()
    steps = [*make_steps(plain, ids), collect]
    for blocks in read_list_blocks(files, plain, dense=dense, ids=ids, steps=steps):
        for _ in blocks:
            pass
    return replace(settings, derive=tuple(_learn(feature, collect) for feature in settings.derive))


def _learn(feature: DerivedFeature, collected: _CollectValues) -> DerivedFeature:
    if feature.has_bounds:
        return feature
    bounds = []
    for own_bin in list_bins(feature.expression):
        if own_bin.bounds is not None:
            bounds.append(own_bin.bounds)
            continue
        parts = collected.values.get(id(own_bin), [])
        values = np.sort(np.concatenate([np.zeros(0), *parts]))
        places = np.arange(1, own_bin.count) * len(values) // own_bin.count
        chosen = np.unique(values[places]) if len(values) else values
        chosen = chosen[chosen > values[0]] if len(values) else chosen
        if not len(chosen):
            raise UsageError(
                f"{{--derive}} {feature.name}={feature.text}: {own_bin.text} has too few values in"
                " the lists for bins: give bounds, as bin(lm, [-20.5, -10]), or leave it out"
            )
        bounds.append(tuple(chosen.tolist()))
    return feature.with_bounds(bounds)
