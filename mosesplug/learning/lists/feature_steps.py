"""Add features to lists: from files, arrays, or expressions of other features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.scores import ScoreRows
from mosesplug.errors import UsageError, suggest
from mosesplug.features import FeatureSpace
from mosesplug.learning.lists.value_columns import ValueColumn
from mosesplug.settings.expressions import (
    Call,
    Expression,
    FeatureName,
    Number,
    Operation,
    TextSize,
    list_features,
)
from mosesplug.settings.features import AddedFeature, DerivedFeature

_Values = NDArray[np.float64]

_LARGEST = float(np.finfo(np.float32).max)


class AddFeatures:
    """Appends features with values from outside to the dense ones, in their order."""

    def __init__(self, features: Sequence[AddedFeature], ids: SentenceIds) -> None:
        self._features = features
        self._columns = [
            ValueColumn(
                each.paths,
                each.values,
                ids,
                place=each.place,
                what="value",
                option=f"--{each.option} {each.name}",
                check=_check_range,
            )
            for each in features
        ]

    def apply(self, block: NBestList) -> NBestList:
        """Return the block with the values of its hypotheses.

        Raises:
            FormatError: there are too few values, they belong to another list, or one is too large
                for a feature.
            UsageError: the list has a feature of the same name.
        """
        groups, parts = list(block.groups), [block.dense]
        for each, column in zip(self._features, self._columns, strict=True):
            _check_name(each.name, f"--{each.option} {each.name}={each.place}", groups, block)
            values = column.take(block)
            groups.append((each.name, values.shape[1]))
            parts.append(values.astype(np.float32))
        return replace(block, groups=tuple(groups), dense=np.concatenate(parts, axis=1))

    def finish(self) -> None:
        """Check that no value is left.

        Raises:
            FormatError: there are more values than hypotheses.
        """
        for column in self._columns:
            column.finish()


class DeriveFeatures:
    """A step that appends dense features computed from others, in their order.

    Expressions are evaluated in double precision, and may use features that were derived before.
    """

    def __init__(self, features: Sequence[DerivedFeature]) -> None:
        self._features = features
        self._units = {
            each.unit
            for feature in features
            for each in list_features(feature.expression)
            if isinstance(each, TextSize)
        }

    def apply(self, block: NBestList) -> NBestList:
        """Return the block with the derived features.

        Raises:
            FormatError: a value is not finite, or too large for a feature.
            UsageError: an expression uses a feature that the list lacks, or the list has one of the
                same name, or no texts to count words or characters of.
        """
        if self._units and not block.has_texts:
            units = " and ".join(sorted(self._units))
            raise UsageError(f"--derive counts {units}, but {block.path} has no texts")
        groups = list(block.groups)
        known = _Columns(block, self._units)
        for each in self._features:
            _check_name(each.name, f"--derive {each.name}={each.text}", groups, block)
            known.derived[each.name] = self._derive(each, known, block)
            groups.append((each.name, 1))
        parts = [block.dense]
        parts += [values.astype(np.float32)[:, np.newaxis] for values in known.derived.values()]
        return replace(block, groups=tuple(groups), dense=np.concatenate(parts, axis=1))

    def finish(self) -> None:
        """Do nothing: a derived feature needs no more than its hypothesis."""

    def _derive(self, feature: DerivedFeature, known: _Columns, block: NBestList) -> _Values:
        with np.errstate(all="ignore"):
            found = evaluate(feature, feature.expression, known)
        values = np.broadcast_to(found, len(block))
        is_usable = np.abs(values) <= _LARGEST
        if not is_usable.all():
            row = int(np.argmin(is_usable))
            raise FormatError(
                f"--derive {feature.name}={feature.text} is {values[row]:g} here"
                + known.spell_values(feature, row),
                path=block.path,
                line=int(block.lines[row]),
                remedy="Change the expression, so that every hypothesis has a finite value",
            )
        return values


def evaluate(feature: DerivedFeature, expression: Expression, known: _Columns) -> _Values:
    """Return the values of an expression for each hypothesis, or one for all of them.

    Raises:
        UsageError: the lists lack a feature.
    """
    match expression:
        case Number():
            return np.array(expression.value, dtype=np.float64)
        case FeatureName():
            return known.find(feature, expression)
        case TextSize():
            return known.sizes[expression.unit]
        case Call():
            argument = evaluate(feature, expression.argument, known)
            match expression.function:
                case "log":
                    return np.log(argument)
                case "exp":
                    return np.exp(argument)
                case "sqrt":
                    return np.sqrt(argument)
                case "abs":
                    return np.abs(argument)
                case _:
                    return np.negative(argument)
        case Operation():
            left = evaluate(feature, expression.left, known)
            right = evaluate(feature, expression.right, known)
            match expression.operator:
                case "+":
                    return left + right
                case "-":
                    return left - right
                case "*":
                    return left * right
                case "/":
                    return left / right
                case _:
                    return np.power(left, right)


class _Columns:
    """Values that expressions can use: dense and derived features, sizes of texts.

    Attributes:
        derived: float64 ``[n]``, by name.
        sizes: float64 ``[n]``, by ``words`` or ``chars``.
    """

    def __init__(self, block: NBestList, units: set[str]) -> None:
        self._block = block
        self._widths = dict(block.groups)
        names = FeatureSpace(block.groups).labels
        self._places = {name: place for place, name in enumerate(names)}
        # LM0_0 is another name of LM0 if that has one value, as everywhere.
        for place, name in enumerate(FeatureSpace(block.groups).names):
            self._places.setdefault(name, place)
        self.derived: dict[str, _Values] = {}
        counters = {"words": count_words, "chars": count_chars}
        self.sizes = {unit: counters[unit](block).astype(np.float64) for unit in units}

    def find(self, feature: DerivedFeature, wanted: FeatureName) -> _Values:
        """Return the values of a feature, float64 ``[n]``."""
        if wanted.name in self.derived:
            return self.derived[wanted.name]
        place = self._places.get(wanted.name)
        if place is not None:
            return self._block.dense[:, place].astype(np.float64)
        option = f"--derive {feature.name}={feature.text}"
        if (width := self._widths.get(wanted.name, 0)) > 1:
            raise UsageError(
                f"{option}: {wanted.name} has {width} values in {self._block.path}: use one of "
                f"{wanted.name}_0 to {wanted.name}_{width - 1}"
            )
        if wanted.name in self._block.sparse_names:
            raise UsageError(
                f"{option}: {wanted.name} is a sparse feature of {self._block.path}: use dense ones"
            )
        known = [*dict.fromkeys([*self._places, *self.derived])]
        shown = ", ".join([*FeatureSpace(self._block.groups).labels, *self.derived][:30])
        raise UsageError(
            f"{option}, character {wanted.position} of the expression: {self._block.path} has no "
            f"dense feature {wanted.name}; known: {shown or 'none'}{suggest(wanted.name, known)}"
        )

    def spell_values(self, feature: DerivedFeature, row: int) -> str:
        """Return the values of one hypothesis that an expression uses, for a message."""
        values: dict[str, float] = {}
        for each in list_features(feature.expression):
            if isinstance(each, TextSize):
                values[each.unit] = float(self.sizes[each.unit][row])
            else:
                values[each.name] = float(self.find(feature, each)[row])
        spelled = ", ".join(f"{name} is {value:g}" for name, value in values.items())
        return f" ({spelled})" if spelled else ""


def count_words(block: NBestList) -> NDArray[np.int64]:
    """Count the words of hypotheses, separated by blanks, int64 ``[n]``."""
    is_word = block.buffer > 32
    begins = is_word.copy()
    begins[1:] &= ~is_word[:-1]
    # A text may begin next to another: its first byte begins a word there, too.
    is_glued = np.zeros(len(block), dtype=np.bool_)
    filled = block.text_starts < block.text_ends
    first = block.text_starts[filled]
    is_glued[filled] = is_word[first] & ~begins[first]
    return _count(begins, block) + is_glued


def count_chars(block: NBestList) -> NDArray[np.int64]:
    """Count the UTF-8 characters of hypotheses, with blanks, int64 ``[n]``."""
    return _count((block.buffer & 0xC0) != 0x80, block)


def _count(flags: NDArray[np.bool_], block: NBestList) -> NDArray[np.int64]:
    """Return the number of flags within each text."""
    before = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
    counts: NDArray[np.int64] = before[block.text_ends] - before[block.text_starts]
    return counts


def _check_name(
    name: str, option: str, groups: Sequence[tuple[str, int]], block: NBestList
) -> None:
    """Check that no feature of a list has a name yet, nor one of its values."""
    space = FeatureSpace(tuple(groups), block.sparse_names)
    if name in space.group_names or name in space.labels:
        raise UsageError(f"{option}: {block.path} has a feature {name} already: give another name")


def _check_range(rows: ScoreRows) -> None:
    """Check that single precision can hold values."""
    is_usable = (np.abs(rows.values) <= _LARGEST).all(axis=1)
    if not is_usable.all():
        row = int(np.argmin(is_usable))
        raise FormatError(
            f"{np.abs(rows.values[row]).max():g} is too large for a feature",
            path=rows.path,
            line=rows.first + row,
            remedy="Give numbers that single precision can hold",
        )
