"""Find which weights of a ``moses.ini`` are tuned, and which are sparse.

``[weight]`` holds all weights. ``tuneable=false`` and ``tuneable-components=true,false`` in a line
of ``[feature]`` exclude weights from tuning; the unknown-word penalty is excluded by default.
Sparse weights are in the files of ``[weight-file]``; those in ``[weight]`` override them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from formats.errors import FormatError
from formats.graphs.hypergraph import hypergraph_names
from formats.moses.ini import FeatureLine, MosesIni
from formats.text import require_regular_file
from formats.weights.files import ShowWeights, WeightGroup, read_sparse

TRUE_WORDS = frozenset({"true", "t", "1", "yes", "y"})
"""Moses' spellings of true."""

FALSE_WORDS = frozenset({"false", "f", "0", "no", "n"})
"""Moses' spellings of false."""

UNKNOWN_WORD = "UnknownWordPenalty"
"""Moses' only feature function that is not tuned by default; its weight is 1. The names of its
features begin with this."""


@dataclass(frozen=True)
class FeatureWeights:
    """The weights of one dense feature function, and which of them are tuned."""

    name: str
    values: tuple[float, ...]
    is_tuned: tuple[bool, ...]

    @property
    def group(self) -> WeightGroup:
        """The group without the values of components that are not tuned."""
        pairs = zip(self.values, self.is_tuned, strict=True)
        return WeightGroup(self.name, tuple(value if tuned else None for value, tuned in pairs))


def feature_weights(ini: MosesIni) -> tuple[FeatureWeights, ...]:
    """Return the dense features that have weights, in the order of ``[feature]``.

    A name in ``[weight]`` without a line there counts, too, unless it looks like a sparse feature.

    Raises:
        FormatError: a line of either section is invalid.
    """
    lines = {line.name: line for line in ini.features}
    given = {name: values for name, values in ini.weights.items() if not _is_sparse(name, lines)}
    for name, line in lines.items():
        if line.kind == UNKNOWN_WORD:
            given.setdefault(name, (1.0,))
    ordered = (*(name for name in lines if name in given), *given)
    return tuple(
        FeatureWeights(name, given[name], _are_tuned(lines.get(name), len(given[name])))
        for name in dict.fromkeys(ordered)
    )


def list_features(ini: MosesIni) -> ShowWeights:
    """Return the features as ``-show-weights`` does, in the order of ``[feature]``.

    Raises:
        FormatError: as ``feature_weights``.
    """
    features = feature_weights(ini)
    names = {feature.name for feature in features}
    return ShowWeights(
        tuple(feature.group for feature in features if any(feature.is_tuned)),
        tuple(feature.name for feature in features if not any(feature.is_tuned)),
        tuple(line.name for line in ini.features if line.name not in names),
    )


def fixed_weights(ini: MosesIni) -> dict[str, float]:
    """Return the weights that are not tuned, by their names in search graphs.

    Raises:
        FormatError: as ``feature_weights``.
    """
    fixed: dict[str, float] = {}
    for feature in feature_weights(ini):
        names = hypergraph_names([(feature.name, len(feature.values))])
        spelled = zip(names, feature.values, feature.is_tuned, strict=True)
        fixed |= {name: value for name, value, is_tuned in spelled if not is_tuned}
    return fixed


def sparse_weights(ini: MosesIni) -> dict[str, float]:
    """Return the weights of sparse features in ``[weight-file]`` and ``[weight]``.

    Relative file names are resolved against the directory of the configuration, then against the
    current directory, as in Moses.

    Raises:
        FormatError: a file is missing or is not a file of sparse weights.
    """
    all_weights: dict[str, float] = {}
    for path in find_sparse_files(ini):
        all_weights |= read_sparse(path)
    lines = {line.name: line for line in ini.features}
    for name, values in ini.weights.items():
        if _is_sparse(name, lines):
            if len(values) != 1:
                raise FormatError(
                    f"the sparse feature {name} has {len(values)} weights",
                    path=ini.path,
                    remedy="Give it one weight",
                )
            all_weights[name] = values[0]
    return all_weights


def find_sparse_files(ini: MosesIni) -> list[Path]:
    """Return the files of ``[weight-file]``; see ``sparse_weights``."""
    paths: list[Path] = []
    for value in ini.section("weight-file"):
        places = dict.fromkeys((Path(ini.path).parent / value.text, Path(value.text)))
        path = next((place for place in places if require_regular_file(place).exists()), None)
        if path is None:
            raise FormatError(
                f"the file {value.text} of [weight-file] does not exist",
                path=ini.path,
                line=value.line,
                remedy="Put it beside the configuration or into the current directory",
            )
        paths.append(path)
    return paths


def _is_sparse(name: str, lines: Mapping[str, FeatureLine]) -> bool:
    return "_" in name and name not in lines


def _are_tuned(line: FeatureLine | None, width: int) -> tuple[bool, ...]:
    """Return which components of a feature are tuned, bool ``[width]``."""
    if line is None:
        return (True,) * width
    default = "false" if line.kind == UNKNOWN_WORD else "true"
    whole = _is_true(line.arguments.get("tuneable", default))
    words = line.arguments.get("tuneable-components", ",".join(["true"] * width)).split(",")
    components = [whole and _is_true(word) for word in words]
    return tuple((components + [whole] * width)[:width])


def _is_true(word: str) -> bool:
    return word.lower() not in FALSE_WORDS
