"""Features and weights of search graphs, as the configuration of their system names them.

A decoder announces its features; where graphs take its place, ``moses.ini`` and the graphs
themselves say the same. Features that are not tuned (``UnknownWordPenalty0`` always) have no
columns in n-best lists, but edges have them, and the score of a derivation depends on them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

from formats.graphs.hypergraph import hypergraph_names
from formats.graphs.search_graph import core_names
from formats.moses.ini import MosesIni, read_moses_ini
from formats.moses.ini_features import UNKNOWN_WORD, announced, fixed_weights
from formats.weights.files import ShowWeights, WeightGroup
from mosesplug.errors import DataError

__all__ = ["UNKNOWN_WORD", "UNTUNED", "ConfiguredFeatures", "configured_features", "features_of"]

UNTUNED: Mapping[str, float] = MappingProxyType({f"{UNKNOWN_WORD}0": 1.0})
"""The weights of features that are not tuned, where no configuration tells them."""

Groups = tuple[tuple[str, int], ...]


@dataclass(frozen=True)
class ConfiguredFeatures:
    """What a ``moses.ini`` says of features.

    Attributes:
        path: the file.
        groups: feature functions with weights; a component is None if it is not tuned. In the
            order of the file, which is that of the features in search graphs.
        fixed: weights of features that are not tuned, by their names in search graphs.
        untuneable: feature functions that are not tuned at all.
        sparse: feature functions without weights: they make sparse features.
        core: all features with weights as search graphs name them, tuned or not, in their order
            where they have no names.
    """

    path: str
    groups: tuple[WeightGroup, ...]
    fixed: Mapping[str, float]
    untuneable: tuple[str, ...]
    sparse: tuple[str, ...]
    core: tuple[str, ...]

    @property
    def columns(self) -> Groups:
        """Name and width of each dense group of an n-best list."""
        return tuple((group.name, _width(group)) for group in self.groups)

    @property
    def names(self) -> tuple[str, ...]:
        """The features that are tuned, as search graphs name them."""
        every = hypergraph_names((group.name, len(group.values)) for group in self.groups)
        return tuple(name for name in every if name not in self.fixed)

    def announced(self, groups: Groups, source: Path) -> ShowWeights:
        """The same in the order of some graphs: what a decoder would announce.

        Args:
            groups: dense groups of the graphs, in the order of n-best lists.
            source: where the graphs are, for messages.

        Raises:
            DataError: the graphs have other features.
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


def configured_features(path: Path) -> ConfiguredFeatures:
    """Features and weights of a configuration.

    Sparse weights in ``[weight]`` are passed over: they are no features of their own.

    Raises:
        FormatError: it is no ``moses.ini``.
    """
    return features_of(read_moses_ini(path))


def features_of(ini: MosesIni) -> ConfiguredFeatures:
    """Features and weights of a configuration that is read.

    Raises:
        FormatError: a line of a feature or a weight is none.
    """
    show = announced(ini)
    return ConfiguredFeatures(
        ini.path, show.groups, fixed_weights(ini), show.untuneable, show.sparse, core_names(ini)
    )


def _width(group: WeightGroup) -> int:
    return sum(value is not None for value in group.values)
