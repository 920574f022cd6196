"""Read the model in a ``moses.ini``: its features, their order and their weights."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np

from formats.errors import FormatError
from formats.moses.ini import FeatureLine, MosesIni
from formats.moses.ini_features import FALSE_WORDS, TRUE_WORDS
from formats.weights.files import parse_weight_overwrite
from mosesplug.arrays import Floats
from mosesplug.errors import DataError, UsageError
from mosesplug.templates.declaration import FUNCTIONS, read_ini_function
from mosesplug.templates.template import PhraseTemplate, Template

_Fault = Callable[..., FormatError]

N_REORDERING = 6
REORDERING_TYPES = (
    "wbe-msd-bidirectional-fe-allff",
    "wbe-msd-bidirectional-fe",
    "msd-bidirectional-fe",
    "phrase-msd-bidirectional-fe",
)


@dataclass(frozen=True)
class _Kind:
    """Arguments of a Moses feature function; ``width`` None means ``num-features``."""

    stateful: bool
    width: int | None = 1
    arguments: tuple[str, ...] = ()
    tuneable: bool = True


_KINDS: Mapping[str, _Kind] = {
    "UnknownWordPenalty": _Kind(stateful=False, tuneable=False),
    "WordPenalty": _Kind(stateful=False),
    "PhrasePenalty": _Kind(stateful=False),
    "PhraseDictionaryMemory": _Kind(
        stateful=False,
        width=None,
        arguments=("path", "table-limit", "input-factor", "output-factor"),
    ),
    "LexicalReordering": _Kind(
        stateful=True,
        width=N_REORDERING,
        arguments=("path", "type", "input-factor", "output-factor"),
    ),
    "Distortion": _Kind(stateful=True),
    "KENLM": _Kind(stateful=True, arguments=("path", "order", "factor", "lazyken", "load")),
}
_NEEDED = ("PhraseDictionaryMemory", "KENLM", "UnknownWordPenalty")


@dataclass(frozen=True)
class Feature:
    """One feature function: a line of ``[feature]``.

    Attributes:
        kind: Moses' name of the function, ``PhraseDictionaryMemory``.
        name: the name of its weights, ``TranslationModel0``.
        columns: the columns of its values among all values, in file order.
        tuneable: for each value, whether tuning may change its weight.
        is_stateful: whether its value depends on the preceding translation.
        arguments: the other arguments on its line, ``path=...``.
        line: its line number in the configuration.
    """

    kind: str
    name: str
    columns: range
    tuneable: tuple[bool, ...]
    is_stateful: bool
    arguments: Mapping[str, str]
    line: int


@dataclass(frozen=True)
class ModelFeatures:
    """All feature functions, in the order of the configuration, and their weights.

    Attributes:
        features: the feature functions, at most one of each kind.
        weights: float64 ``[number of values]``.
        path: the path of the configuration.
        templates: the sparse feature functions, whose target contexts have a window.
        sparse_weights: the weights of their features, by name; missing ones are 0.
    """

    features: tuple[Feature, ...]
    weights: Floats
    path: str
    templates: tuple[Template, ...] = ()
    sparse_weights: Mapping[str, float] = field(default_factory=dict)

    def templates_of(self, scope: Literal["phrase", "source"]) -> tuple[PhraseTemplate, ...]:
        """Return the parts of sparse feature functions that have a scope."""
        return tuple(
            part for part in self._parts if isinstance(part, PhraseTemplate) and part.scope == scope
        )

    @property
    def target_templates(self) -> tuple[Template, ...]:
        """The parts of sparse feature functions that see target words before a phrase."""
        return tuple(part for part in self._parts if part.scope == "target")

    @property
    def _parts(self) -> Iterator[Template]:
        return (part for template in self.templates for part in template.split_scopes())

    def weigh(self, counts: Mapping[str, float]) -> float:
        """Return the weighted sum of values of sparse features."""
        weights = self.sparse_weights
        return sum(weights.get(name, 0.0) * value for name, value in counts.items())

    def of_kind(self, kind: str) -> Feature | None:
        """Return the feature of that kind, if the model has one."""
        return next((feature for feature in self.features if feature.kind == kind), None)

    def weights_of(self, kind: str, width: int = 1) -> Floats:
        """Return a feature's weights, float64; zeros ``[width]`` without the feature."""
        feature = self.of_kind(kind)
        if feature is None:
            return np.zeros(width)
        return self.weights[feature.columns.start : feature.columns.stop]

    def in_output_order(self) -> tuple[Feature, ...]:
        """Return the features in Moses' output order: stateful ones first."""
        return tuple(sorted(self.features, key=lambda feature: not feature.is_stateful))


def read_features(
    ini: MosesIni, overwrite: str = "", sparse_weights: Mapping[str, float] | None = None
) -> ModelFeatures:
    """Return the model of a configuration, with ``-weight-overwrite`` applied.

    Args:
        sparse_weights: of ``-weight-file``.

    Raises:
        FormatError: an unsupported feature, an unknown argument, or a missing or surplus weight.
    """
    features: list[Feature] = []
    templates: list[Template] = []
    start = 0
    for line in ini.features:
        if line.kind in FUNCTIONS:
            templates.append(_read_template(ini.path, line))
            continue
        if any(other.kind == line.kind for other in features):
            raise FormatError(
                f"the bundled decoder supports only one {line.kind}", path=ini.path, line=line.line
            )
        features.append(_feature(ini.path, line, start))
        start = features[-1].columns.stop
    for kind in _NEEDED:
        if not any(feature.kind == kind for feature in features):
            raise FormatError(f"[feature] has no {kind}", path=ini.path)
    weights = _overwritten(features, ini.weights, overwrite)
    return ModelFeatures(
        tuple(features),
        _weight_vector(ini.path, features, weights),
        ini.path,
        tuple(templates),
        sparse_weights or {},
    )


def _read_template(path: str, line: FeatureLine) -> Template:
    """Return the template of a sparse feature function."""
    words = [line.kind, f"name={line.name}", *(f"{k}={v}" for k, v in line.arguments.items())]
    try:
        template = read_ini_function(" ".join(words), Path())
    except UsageError as error:
        raise FormatError(str(error), path=path, line=line.line) from error
    if template.reach is None:
        raise FormatError(
            f"target-context of {line.name} has no window: all earlier words are contexts, so no "
            "hypotheses could be recombined",
            path=path,
            line=line.line,
            remedy="Add window=2, for example, or learn these features from n-best lists",
        )
    return template


def _feature(path: str, line: FeatureLine, start: int) -> Feature:
    """Parse one line of ``[feature]``."""

    def fault(message: str, remedy: str | None = None) -> FormatError:
        return FormatError(message, path=path, line=line.line, remedy=remedy)

    kind = _KINDS.get(line.kind)
    if kind is None:
        raise fault(
            f"the bundled decoder does not support {line.kind}",
            f"It supports {', '.join([*_KINDS, *FUNCTIONS])}",
        )
    arguments = dict(line.arguments)
    width = _width(arguments.pop("num-features", None), kind, fault)
    tuneable = _tuneable(arguments, kind, width, fault)
    for key in ("filterable", "verbosity"):
        arguments.pop(key, None)
    for key, value in arguments.items():
        if key not in kind.arguments:
            raise fault(f"the bundled decoder does not support argument {key} of {line.kind}")
        if key.endswith("factor") and value != "0":
            raise fault(f"{key}={value}: the bundled decoder supports only factor 0")
        if key == "table-limit" and not value.isdigit():
            raise fault(f"{key}={value}: a number expected")
    if "path" in kind.arguments and "path" not in arguments:
        raise fault(f"{line.kind} needs path=FILE")
    if line.kind == "LexicalReordering" and arguments.get("type") not in REORDERING_TYPES:
        raise fault(
            f"reordering type '{arguments.get('type', '')}'",
            f"The bundled decoder supports only {REORDERING_TYPES[0]}",
        )
    columns = range(start, start + width)
    return Feature(line.kind, line.name, columns, tuneable, kind.stateful, arguments, line.line)


def _width(word: str | None, kind: _Kind, fault: _Fault) -> int:
    """Return the number of values of a feature."""
    if word is None:
        return kind.width or 1
    if not word.isdigit() or len(word) > 4 or int(word) == 0:
        raise fault(f"num-features={word}: a number from 1 to 9999 expected")
    if kind.width is not None and int(word) != kind.width:
        raise fault(f"num-features={word}: this feature has {kind.width}")
    return int(word)


def _tuneable(
    arguments: dict[str, str], kind: _Kind, width: int, fault: _Fault
) -> tuple[bool, ...]:
    """Remove ``tuneable`` and ``tuneable-components`` from the arguments."""
    whole = _boolean(arguments.pop("tuneable", str(kind.tuneable)), fault)
    components = arguments.pop("tuneable-components", None)
    if components is None:
        return (whole,) * width
    flags = tuple(_boolean(word, fault) for word in components.split(","))
    if len(flags) != width:
        raise fault(f"tuneable-components={components}: {width} values expected")
    return tuple(whole and flag for flag in flags)


def _boolean(word: str, fault: _Fault) -> bool:
    if word.lower() in TRUE_WORDS | FALSE_WORDS:
        return word.lower() in TRUE_WORDS
    raise fault(f"'{word}': true or false expected")


def _overwritten(
    features: list[Feature], weights: Mapping[str, tuple[float, ...]], overwrite: str
) -> dict[str, tuple[float, ...]]:
    """Return ``weights`` with ``Name= v x v`` applied; ``x`` keeps the old weight."""
    result = dict(weights)
    widths = {feature.name: len(feature.columns) for feature in features}
    try:
        changes = parse_weight_overwrite(overwrite)
    except FormatError as error:
        raise UsageError(f"weight-overwrite: {error}") from None
    for name, values in changes.items():
        if widths.get(name) != len(values):
            raise UsageError(
                f"weight-overwrite: {len(values)} value(s) for {name}, which has "
                f"{widths.get(name, 'no feature in the configuration')}"
            )
        old = weights.get(name, ())
        if None in values and len(old) != len(values):
            raise UsageError(f"weight-overwrite: {name} has no weights to keep")
        result[name] = tuple(
            old[position] if value is None else value for position, value in enumerate(values)
        )
    return result


def _weight_vector(
    path: str, features: list[Feature], weights: dict[str, tuple[float, ...]]
) -> Floats:
    """Return the weights of all values in the order of the features."""
    vector: list[float] = []
    unused = dict(weights)
    for feature in features:
        values = unused.pop(feature.name, ())
        if feature.kind == "UnknownWordPenalty" and not values:
            values = (1.0,)
        if len(values) != len(feature.columns):
            raise FormatError(
                f"{feature.name} has {len(feature.columns)} value(s) and {len(values)} weight(s)",
                path=path,
                line=feature.line,
                remedy=f"Give '{feature.name}= ...' in [weight]",
            )
        vector.extend(values)
    if unused:
        raise FormatError(f"weights without a feature: {', '.join(unused)}", path=path)
    return np.array(vector)


def show_weights(features: ModelFeatures) -> bytes:
    """Format the output of ``-show-weights`` in Moses' order and spelling."""
    lines = []
    for feature in features.in_output_order():
        if not any(feature.tuneable):
            lines.append(f"{feature.name} UNTUNEABLE\n")
            continue
        words = [
            f"{features.weights[column]:.6f}" if tuneable else "UNTUNEABLECOMPONENT"
            for column, tuneable in zip(feature.columns, feature.tuneable, strict=True)
        ]
        lines.append(f"{feature.name}= {' '.join(words)}\n")
    lines += [f"{template.name}=\n" for template in features.templates]
    return "".join(lines).encode()


def find_file(features: ModelFeatures, feature: Feature) -> str:
    """Find a feature's file, relative to the current directory, then to ``moses.ini``.

    Moses searches only the current directory. The name may lack ``.gz``.
    """
    path = Path(feature.arguments["path"])
    for directory in (Path(), Path(features.path).parent):
        for candidate in (directory / path, directory / f"{path}.gz"):
            if candidate.is_file():
                return str(candidate)
    raise DataError(
        f"{features.path}:{feature.line}: {feature.name}: no file {path}, neither in the current "
        f"directory nor next to the configuration"
    )
