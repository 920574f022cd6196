"""The step that derives features from others: expressions, bins and pairs of bins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from mosesplug.arrays import Scores
from mosesplug.errors import UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.learning.lists.steps import (
    LARGEST_VALUE,
    ListStep,
    check_new_name,
)
from mosesplug.settings.expressions import (
    Bin,
    Call,
    Expression,
    FeatureName,
    Number,
    Operation,
    Pair,
    TextSize,
    list_features,
)
from mosesplug.settings.features import DerivedFeature


class DeriveFeatures(ListStep):
    """Appends dense features computed from others, in their order.

    Expressions are evaluated in double precision, and may use features that were derived before.
    Bins and pairs of bins are groups of indicators. A definition that weights record is left out if
    a block has the feature, or lacks what it is computed from.

    Raises:
        UsageError: bins have no bounds yet.
    """

    def __init__(self, features: Sequence[DerivedFeature]) -> None:
        self._features = features
        self._units = _list_units(features)
        self._check_bounds()

    def _check_bounds(self) -> None:
        for feature in self._features:
            if not feature.has_bounds:
                raise UsageError(
                    f"{{--derive}} {feature.name}={feature.text}: the bounds of bins are learned"
                    " with weights, which record them. Give such weights, or the bounds, as"
                    " bin(lm, [-20.5, -10])"
                )

    def apply(self, block: NBestList) -> NBestList:
        groups, parts = list(block.groups), [block.dense]
        features = self._features
        if any(feature.is_recorded for feature in features):
            features = _select_recorded(features, block)
        units = self._units if len(features) == len(self._features) else _list_units(features)
        if units and not block.has_texts:
            spelled = " and ".join(sorted(units))
            raise UsageError(f"{{--derive}} counts {spelled}, but {block.path} has no texts")
        operands = _Operands(block, units)
        for feature in features:
            option = f"{{--derive}} {feature.name}={feature.text}"
            check_new_name(feature.name, option, groups, block)
            match feature.expression:
                case Bin():
                    values = self._find_bins(option, feature.expression, operands)
                case Pair(left, right):
                    first = self._find_bins(option, left, operands)
                    second = self._find_bins(option, right, operands)
                    values = (first[:, :, np.newaxis] * second[:, np.newaxis, :]).reshape(
                        len(block), first.shape[1] * second.shape[1]
                    )
                case expression:
                    single = _evaluate_finite(option, expression, operands)
                    operands.derived[feature.name] = single
                    values = single.astype(np.float32)[:, np.newaxis]
            groups.append((feature.name, values.shape[1]))
            parts.append(values)
        return replace(block, groups=tuple(groups), dense=np.concatenate(parts, axis=1))

    def _find_bins(self, option: str, own_bin: Bin, operands: _Operands) -> NDArray[np.float32]:
        """Return the indicators of bins, float32 ``[n_hyps, count]``."""
        values = _evaluate_finite(option, own_bin.argument, operands)
        numbers = self.number(own_bin, values)
        return np.eye(own_bin.count, dtype=np.float32)[numbers]

    def number(self, own_bin: Bin, values: Scores) -> NDArray[np.int64]:
        """Return the bin of each value; a value on a bound is in the bin above it."""
        return np.searchsorted(np.array(own_bin.bounds), values, side="right")


def _list_units(features: Sequence[DerivedFeature]) -> set[str]:
    """Return the sizes of texts that definitions use."""
    return {
        operand.unit
        for feature in features
        for operand in list_features(feature.expression)
        if isinstance(operand, TextSize)
    }


def _select_recorded(
    features: Sequence[DerivedFeature], block: NBestList
) -> Sequence[DerivedFeature]:
    """Leave out recorded definitions that a block has or cannot compute."""
    space = FeatureSpace(block.groups)
    known = {*space.group_names, *space.labels, *space.names}
    selected = []
    for feature in features:
        names = [n.name for n in list_features(feature.expression) if isinstance(n, FeatureName)]
        if feature.is_recorded and (feature.name in known or not known.issuperset(names)):
            continue
        selected.append(feature)
        known.add(feature.name)
    return selected


def _evaluate_finite(option: str, expression: Expression, operands: _Operands) -> Scores:
    """Return the values of an expression, float64 ``[n_hyps]``, which must be finite."""
    block = operands.block
    with np.errstate(all="ignore"):
        values = np.broadcast_to(_evaluate(option, expression, operands), len(block))
    is_usable = np.abs(values) <= LARGEST_VALUE
    if not is_usable.all():
        row = int(np.argmin(is_usable))
        raise FormatError(
            f"{option} is {values[row]:g} here" + operands.spell_values(option, expression, row),
            path=block.path,
            line=int(block.lines[row]),
            remedy="Change the expression, so that every hypothesis has a finite value",
        )
    return values


_FUNCTIONS = {"log": np.log, "exp": np.exp, "sqrt": np.sqrt, "abs": np.abs, "-": np.negative}
_OPERATORS = {
    "+": np.add,
    "-": np.subtract,
    "*": np.multiply,
    "/": np.divide,
    "**": np.power,
}


def _evaluate(option: str, expression: Expression, operands: _Operands) -> Scores:
    """Return the values of an expression for each hypothesis, or one for all of them."""
    match expression:
        case Number():
            return np.array(expression.value, dtype=np.float64)
        case FeatureName():
            return operands.find(option, expression)
        case TextSize():
            return operands.sizes[expression.unit]
        case Call():
            function = _FUNCTIONS[expression.function]
            return np.asarray(function(_evaluate(option, expression.argument, operands)))
        case Operation():
            left = _evaluate(option, expression.left, operands)
            right = _evaluate(option, expression.right, operands)
            return np.asarray(_OPERATORS[expression.operator](left, right))


class _Operands:
    """Values that expressions can use: dense and derived features, sizes of texts.

    Attributes:
        derived: the values of features that were derived before.
        sizes: by ``words`` or ``chars``.
    """

    def __init__(self, block: NBestList, units: set[str]) -> None:
        self.block = block
        self._labels = FeatureSpace(block.groups).labels
        self._columns = {name: column for column, name in enumerate(self._labels)}
        # LM0_0 is another name of LM0 if that has one value, as everywhere.
        for column, name in enumerate(FeatureSpace(block.groups).names):
            self._columns.setdefault(name, column)
        self.derived: dict[str, Scores] = {}
        counters = {"words": count_words, "chars": count_chars}
        self.sizes = {unit: counters[unit](block).astype(np.float64) for unit in units}

    def find(self, option: str, wanted: FeatureName) -> Scores:
        """Return the values of a feature."""
        name, path = wanted.name, self.block.path
        if name in self.derived:
            return self.derived[name]
        if name in self._columns:
            return self.block.dense[:, self._columns[name]].astype(np.float64)
        if (width := dict(self.block.groups).get(name, 0)) > 1:
            raise UsageError(
                f"{option}: {name} has {width} values in {path}: use one of "
                f"{name}_0 to {name}_{width - 1}"
            )
        if name in self.block.sparse_names:
            raise UsageError(f"{option}: {name} is a sparse feature of {path}: use dense ones")
        raise UsageError(
            f"{option}, character {wanted.position} of the expression: {path}: "
            f"{explain_unknown_feature(name, [*self._labels, *self.derived])}"
        )

    def spell_values(self, option: str, expression: Expression, row: int) -> str:
        """Return the values of one hypothesis that an expression uses, for a message."""
        values: dict[str, float] = {}
        for operand in list_features(expression):
            if isinstance(operand, TextSize):
                values[operand.unit] = float(self.sizes[operand.unit][row])
            else:
                values[operand.name] = float(self.find(option, operand)[row])
        spelled = ", ".join(f"{name} is {value:g}" for name, value in values.items())
        return f" ({spelled})" if spelled else ""


def count_words(block: NBestList) -> NDArray[np.int64]:
    """Count the words of hypotheses, separated by blanks."""
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
    """Count the UTF-8 characters of hypotheses, with blanks."""
    return _count((block.buffer & 0xC0) != 0x80, block)


def _count(flags: NDArray[np.bool_], block: NBestList) -> NDArray[np.int64]:
    """Return the number of flags within each text."""
    before = np.concatenate([[0], np.cumsum(flags, dtype=np.int64)])
    counts: NDArray[np.int64] = before[block.text_ends] - before[block.text_starts]
    return counts
