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

from formats.hypergraph import hypergraph_names
from formats.moses_ini import FeatureLine, MosesIni, read_moses_ini
from formats.search_graph import core_names
from formats.weights import ShowWeights, WeightGroup
from mosesplug.decoders.phrase.settings import FALSE_WORDS
from mosesplug.errors import DataError

__all__ = ["UNKNOWN_WORD", "UNTUNED", "ConfiguredFeatures", "configured_features"]

UNKNOWN_WORD = "UnknownWordPenalty"
"""Moses' only feature function that is not tuned unless its line says so; its weight is 1. The
names of its features begin with this."""

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

    Sparse weights in ``[weight]`` are passed over: those of ``[weight-file]`` count.

    Raises:
        FormatError: it is no ``moses.ini``.
    """
    ini = read_moses_ini(path)
    lines = {line.name: line for line in ini.features}
    weights = _weights(ini, lines)
    groups: list[WeightGroup] = []
    fixed: dict[str, float] = {}
    untuneable: list[str] = []
    for name, values in weights.items():
        tuned = _tuned(lines.get(name), len(values))
        kept = zip(hypergraph_names([(name, len(values))]), values, tuned, strict=True)
        fixed |= {spelled: value for spelled, value, is_tuned in kept if not is_tuned}
        if any(tuned):
            pairs = zip(values, tuned, strict=True)
            kept_values = tuple(value if is_tuned else None for value, is_tuned in pairs)
            groups.append(WeightGroup(name, kept_values))
        else:
            untuneable.append(name)
    sparse = tuple(name for name in lines if name not in weights)
    return ConfiguredFeatures(
        ini.path, tuple(groups), fixed, tuple(untuneable), sparse, core_names(ini)
    )


def _weights(ini: MosesIni, lines: Mapping[str, FeatureLine]) -> dict[str, tuple[float, ...]]:
    """Weights of feature functions, in the order of ``[feature]``."""
    given = {
        name: values for name, values in ini.weights.items() if name in lines or "_" not in name
    }
    for name, line in lines.items():
        if line.kind == UNKNOWN_WORD:
            given.setdefault(name, (1.0,))
    return {name: given[name] for name in (*(n for n in lines if n in given), *given)}


def _tuned(line: FeatureLine | None, width: int) -> tuple[bool, ...]:
    """Which components of a feature are tuned, bool ``[width]``."""
    if line is None:
        return (True,) * width
    default = "false" if line.kind == UNKNOWN_WORD else "true"
    whole = _is_true(line.arguments.get("tuneable", default))
    words = line.arguments.get("tuneable-components", ",".join(["true"] * width)).split(",")
    components = [whole and _is_true(word) for word in words]
    return tuple((components + [whole] * width)[:width])


def _is_true(word: str) -> bool:
    return word.lower() not in FALSE_WORDS


def _width(group: WeightGroup) -> int:
    return sum(value is not None for value in group.values)
