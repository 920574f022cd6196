"""Features that settings add to lists: ``NAME=FILE`` and ``NAME=EXPRESSION``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mosesplug.errors import OptionName, UsageError
from mosesplug.settings.expressions import (
    BUILT_IN,
    Definition,
    ExpressionError,
    Pair,
    list_bins,
    parse_definition,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, eq=False)
class AddedFeature:
    """A feature with values from outside, in the order of the hypotheses.

    Attributes:
        paths: files, one after the other as one sequence; empty with ``values``.
        values: float64 ``[n]`` or ``[n, k]`` instead.
    """

    name: str
    paths: tuple[Path, ...] = ()
    values: NDArray[Any] | None = None
    option: str = "add-feature"

    @property
    def place(self) -> str:
        """Where its values are, for messages."""
        return ",".join(map(str, self.paths)) if self.paths else f"the array of {self.name}"


@dataclass(frozen=True)
class DerivedFeature:
    """A feature that is computed from others, or indicators of its bins.

    Attributes:
        text: the definition as it was given, or with the bounds that were learned.
        is_recorded: whether a file of weights defines it: lists that have it keep theirs.
    """

    name: str
    text: str
    expression: Definition
    is_recorded: bool = False

    @property
    def has_bounds(self) -> bool:
        """Whether all bounds of bins are known."""
        return all(each.bounds is not None for each in list_bins(self.expression))

    def with_bounds(self, bounds: Sequence[tuple[float, ...]]) -> DerivedFeature:
        """Return the feature with the bounds of its bins."""
        bins = [
            replace(each, count=len(own) + 1, bounds=own)
            for each, own in zip(list_bins(self.expression), bounds, strict=True)
        ]
        definition = Pair(*bins) if isinstance(self.expression, Pair) else bins[0]
        return replace(self, text=definition.spelled, expression=definition)

    def agrees(self, recorded: DerivedFeature) -> bool:
        """Return whether weights record this definition, perhaps with bounds."""
        if self.has_bounds or not recorded.has_bounds:
            return self.expression == recorded.expression
        pairs = zip(list_bins(self.expression), list_bins(recorded.expression), strict=False)
        # Equal values may have left fewer bins than this definition asks for.
        return type(self.expression) is type(recorded.expression) and all(
            own.argument == other.argument
            and (own.count >= other.count if own.bounds is None else own.bounds == other.bounds)
            for own, other in pairs
        )


def parse_added_features(
    texts: Sequence[str | AddedFeature], option: str = "add-feature"
) -> tuple[AddedFeature, ...]:
    """Return the features that texts name.

    Args:
        texts: ``LM=run1.lm,run2.lm``, or ``LM= FILE`` as names are written in lists; features are
            returned as they are.

    Raises:
        UsageError: a text has another form, or a name occurs twice.
    """
    features = tuple(
        text if isinstance(text, AddedFeature) else _parse(text, option) for text in texts
    )
    names = [feature.name for feature in features]
    for feature in features:
        if names.count(feature.name) > 1:
            raise UsageError(
                f"{OptionName(option)} {feature.name}={feature.place}: another "
                f"{OptionName(option)} has a feature {feature.name} already: give another name, "
                f"or several files as {feature.name}=FILE,FILE"
            )
    return features


def arrange_held_out_features(
    features: Sequence[AddedFeature], held_out: Sequence[AddedFeature]
) -> tuple[AddedFeature, ...]:
    """Return the added features of held-out lists in the order of those to learn from.

    Raises:
        UsageError: the names differ.
    """
    known = {feature.name: feature for feature in held_out}
    names = [feature.name for feature in features]
    if unknown := [name for name in known if name not in names]:
        raise UsageError(
            f"{{--heldout-add-feature}} names {unknown[0]}, which {{--add-feature}} does not: give "
            "the values for both lists"
        )
    if missing := [name for name in names if name not in known]:
        raise UsageError(
            f"the held-out lists have no values of {missing[0]}: add {{--heldout-add-feature}} "
            f"{missing[0]}=FILE"
        )
    return tuple(known[name] for name in names)


def parse_derived_features(
    texts: Sequence[str | DerivedFeature] | Mapping[str, str],
) -> tuple[DerivedFeature, ...]:
    """Return the derived features that texts define.

    Args:
        texts: ``len=words``, ``lm_norm=lm/len``; or expressions by name.

    Raises:
        UsageError: a text has another form, or a name occurs twice.
    """
    if isinstance(texts, Mapping):
        texts = [f"{name}={expression}" for name, expression in texts.items()]
    features = tuple(text if isinstance(text, DerivedFeature) else _derive(text) for text in texts)
    names = [feature.name for feature in features]
    if twice := [name for name in names if names.count(name) > 1]:
        raise UsageError(f"{{--derive}} names {twice[0]} twice: give each feature another name")
    return features


def is_feature_name(name: str) -> bool:
    """Return whether a feature can have this name."""
    return bool(name) and not any(map(str.isspace, name)) and "=" not in name and "|||" not in name


def _parse(text: str, option: str) -> AddedFeature:
    name, equals, files = text.partition("=")
    paths = [path.strip() for path in files.split(",")]
    if not (equals and is_feature_name(name) and all(paths)):
        raise UsageError(
            f"{OptionName(option)} {text!r}: give NAME=FILE, or NAME=FILE,FILE for several lists, "
            "with a name without blanks"
        )
    return AddedFeature(name, tuple(map(Path, paths)), option=option)


def _derive(text: str) -> DerivedFeature:
    name, equals, expression = (part.strip() for part in text.partition("="))
    if not (equals and is_feature_name(name)):
        raise UsageError(
            f"{{--derive}} {text!r}: give NAME=EXPRESSION, as len=words or lm_norm=lm/words, with "
            "a name without blanks"
        )
    if name in BUILT_IN:
        raise UsageError(
            f"{{--derive}} {text!r}: {name} is the number of {name} in expressions: give the "
            "feature another name"
        )
    try:
        return DerivedFeature(name, expression, parse_definition(expression))
    except ExpressionError as error:
        raise UsageError(f"{{--derive}} {text!r}, {error}") from None
