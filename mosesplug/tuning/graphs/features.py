"""Features and weights of search graphs, from the configuration of their decoder.

A decoder announces its features. With search graphs instead of a decoder, ``moses.ini`` and the
graphs tell them. Features that are not tuned (``UnknownWordPenalty0`` always) have no columns in
n-best lists, but edges have them, and the score of a derivation depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from formats.graphs.hypergraph import hypergraph_names
from formats.graphs.search_graph import core_names
from formats.moses.ini import MosesIni, read_moses_ini
from formats.moses.ini_features import UNKNOWN_WORD, fixed_weights, list_features
from formats.weights.files import ShowWeights, WeightGroup
from mosesplug.errors import DataError

UNTUNED: Mapping[str, float] = MappingProxyType({f"{UNKNOWN_WORD}0": 1.0})
"""The weights of features that are not tuned, if there is no configuration."""

Groups = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class ConfiguredFeatures:
    """The features in a ``moses.ini``.

    Attributes:
        groups: feature functions with weights, in the order of the file, which is the order in
            search graphs; a component that is not tuned is None.
        fixed_weights: weights of features that are not tuned, by their names in search graphs.
        untuneable: feature functions that are not tuned at all.
        sparse: feature functions without weights: they make sparse features.
        core: all features with weights, tuned or not, as search graphs name them, in the order of
            graphs without names.
    """

    path: str
    groups: tuple[WeightGroup, ...]
    fixed_weights: Mapping[str, float]
    untuneable: tuple[str, ...]
    sparse: tuple[str, ...]
    core: tuple[str, ...]

    @property
    def columns(self) -> Groups:
        """Name and width of each dense group of an n-best list."""
        return tuple((group.name, _width(group)) for group in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """The tuned features, as search graphs name them."""
        every = hypergraph_names((group.name, len(group.values)) for group in self.groups)
        return tuple(name for name in every if name not in self.fixed_weights)

    def announce(self, groups: Groups, source: Path) -> ShowWeights:
        """Return what a decoder would announce, in the order of some graphs.

        Args:
            groups: dense groups of the graphs, in the order of n-best lists.
        """
        known = {group.name: group for group in self.groups}
        for name, width in groups:
            if name not in known:
                raise DataError(
                    f"{self.path} has no weight of {name}, which the search graphs in {source}"
                    " have: give the configuration that they were made with"
                )
            if _width(known[name]) != width:
                raise DataError(
                    f"{self.path} has {_width(known[name])} weights of {name} to tune, the search"
                    f" graphs in {source} have {width}: give the configuration that they were made"
                    " with"
                )
        missing = [name for name in known if name not in dict(groups)]
        if missing:
            raise DataError(
                f"{self.path} has a weight of {missing[0]}, and the search graphs in {source} have"
                " no such feature: give the configuration that they were made with"
            )
        return ShowWeights(tuple(known[name] for name, _ in groups), self.untuneable, self.sparse)


def read_configured_features(path: Path) -> ConfiguredFeatures:
    """Read the features and weights of a configuration.

    Sparse weights in ``[weight]`` are ignored: they are not feature functions.
    """
    return parse_configured_features(read_moses_ini(path))


def parse_configured_features(ini: MosesIni) -> ConfiguredFeatures:
    """Return the features and weights of a parsed configuration."""
    show = list_features(ini)
    return ConfiguredFeatures(
        ini.path, show.groups, fixed_weights(ini), show.untuneable, show.sparse, core_names(ini)
    )


def _width(group: WeightGroup) -> int:
    return sum(value is not None for value in group.values)
