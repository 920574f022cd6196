"""Steps that change the blocks of n-best lists as they are read.

Blocks pass the steps of ``make_steps`` in order, those of the first file first: compute features
of templates, drop and rename features, add features from outside, derive features from others,
attach scores, change the texts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.scores import ScoreRows
from mosesplug.arrays import Scores
from mosesplug.errors import OptionName, UsageError, suggest
from mosesplug.features import FeatureSpace
from mosesplug.learning.lists.value_columns import ValueColumn
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
from mosesplug.settings.features import AddedFeature, DerivedFeature
from mosesplug.settings.scores.files import ScoreSource
from mosesplug.templates.blocks import TemplateFeatures
from mosesplug.templates.declaration import Templates

_LARGEST = float(np.finfo(np.float32).max)

_SHOWN = 30
"""Names in a message."""


class ListStep:
    """A change of blocks.

    A step may need those of a whole file at once, in bounded memory.
    """

    def apply(self, block: NBestList) -> NBestList:
        """Return the changed block."""
        return block

    def stream(self, blocks: Iterator[NBestList]) -> Iterator[NBestList]:
        """Yield the changed blocks of a file."""
        return map(self.apply, blocks)

    def finish(self) -> None:
        """Check, after the last block of the last file, that nothing is left over."""


class _NameStep(ListStep):
    """A step that names features; a strict one rejects unknown names."""

    def __init__(self, names: Collection[str], is_strict: bool) -> None:
        self._is_strict = is_strict
        self._unused = dict.fromkeys(names)
        self._seen: dict[str, None] = {}

    def note(self, block: NBestList) -> None:
        """Note which of the names a block has."""
        if not self._unused:
            return
        names = (*(name for name, _ in block.groups), *block.sparse_names)
        self._seen.update(dict.fromkeys(names[:_SHOWN]))
        present = set(names)
        for wanted in list(self._unused):
            prefix = wanted[:-1] if wanted.endswith("*") else None
            if wanted in present or (
                prefix is not None and any(name.startswith(prefix) for name in names)
            ):
                del self._unused[wanted]

    def spell(self, name: str) -> str:
        """Return the option that has this name."""
        raise NotImplementedError

    def finish(self) -> None:
        if self._unused and self._is_strict:
            known = ", ".join([*self._seen][:_SHOWN]) or "none"
            option = self.spell(next(iter(self._unused)))
            raise UsageError(f"{option}: no list has this feature; known: {known}")


class DropFeatures(_NameStep):
    """Removes features by name, or by the beginning of their names (``NAME*``)."""

    def __init__(self, names: Sequence[str], *, is_strict: bool = True) -> None:
        super().__init__(names, is_strict)
        self._names = {name for name in names if not name.endswith("*")}
        self._prefixes = tuple(name[:-1] for name in names if name.endswith("*"))

    def spell(self, name: str) -> str:
        return f"{{--drop-feature}} {name}"

    def apply(self, block: NBestList) -> NBestList:
        self.note(block)
        keeps_group = [self._keeps(name) for name, _ in block.groups]
        if not all(keeps_group):
            columns = np.repeat(keeps_group, [width for _, width in block.groups])
            kept = tuple(group for group in block.groups if self._keeps(group[0]))
            dense = np.ascontiguousarray(block.dense[:, columns])
            block = replace(block, groups=kept, dense=dense)
        keeps = np.array([self._keeps(name) for name in block.sparse_names], dtype=np.bool_)
        if keeps.all():
            return block
        new_columns = (np.cumsum(keeps) - 1).astype(np.int32)
        stays = keeps[block.sparse_indices]
        before = np.concatenate([[0], np.cumsum(stays)])
        return replace(
            block,
            sparse_names=tuple(name for name in block.sparse_names if self._keeps(name)),
            sparse_indptr=before[block.sparse_indptr],
            sparse_indices=new_columns[block.sparse_indices[stays]],
            sparse_data=block.sparse_data[stays],
        )

    def _keeps(self, name: str) -> bool:
        return name not in self._names and not name.startswith(self._prefixes)


class RenameFeatures(_NameStep):
    """Renames dense features (whole groups) and sparse ones."""

    def __init__(self, renames: Iterable[tuple[str, str]], *, is_strict: bool = True) -> None:
        self._new = dict(renames)
        super().__init__(self._new, is_strict)

    def spell(self, name: str) -> str:
        return f"{{--rename}} {name}={self._new[name]}"

    def apply(self, block: NBestList) -> NBestList:
        present = {*(name for name, _ in block.groups), *block.sparse_names}
        for old, new in self._new.items():
            # Lists that call one feature by two names are fine; two features of one list are not.
            if old in present and new in present and new not in self._new:
                raise UsageError(
                    f"{{--rename}} {old}={new}: {block.path} has another feature {new}; choose a "
                    f"new name, or ignore that feature ({{--drop-feature}} {new})"
                )
        self.note(block)
        return replace(
            block,
            groups=tuple((self._new.get(name, name), width) for name, width in block.groups),
            sparse_names=tuple(self._new.get(name, name) for name in block.sparse_names),
        )


def original_names(names: Sequence[str], renames: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Return the names that features have in the files."""
    old = {new: old for old, new in renames}
    return tuple(old.get(name, name) for name in names)


class ComputeTemplates(ListStep):
    """Appends sparse features computed from segmentation and alignment."""

    def __init__(self, templates: Templates, source: Path, ids: SentenceIds) -> None:
        self._features = TemplateFeatures.of_file(templates, source)
        self._ids = ids

    def apply(self, block: NBestList) -> NBestList:
        if self._ids.names:
            raise UsageError(
                f"{{--templates}} finds source sentences by number, but {block.path} has ids such "
                f"as {self._ids.names[0]}. Number the sentences from 0"
            )
        return self._features.append(block)


class AddFeatures(ListStep):
    """Appends features with values from outside to the dense ones, in their order."""

    def __init__(self, features: Sequence[AddedFeature], ids: SentenceIds) -> None:
        self._columns = [
            (
                feature.name,
                f"{OptionName(feature.option)} {feature.name}={feature.place}",
                ValueColumn(
                    feature.paths,
                    feature.values,
                    ids,
                    place=feature.place,
                    what="value",
                    option=f"{OptionName(feature.option)} {feature.name}",
                    check=_check_range,
                ),
            )
            for feature in features
        ]

    def apply(self, block: NBestList) -> NBestList:
        groups, parts = list(block.groups), [block.dense]
        for name, option, column in self._columns:
            _check_name(name, option, groups, block)
            values = column.take(block)
            groups.append((name, values.shape[1]))
            parts.append(values.astype(np.float32))
        return replace(block, groups=tuple(groups), dense=np.concatenate(parts, axis=1))

    def finish(self) -> None:
        for _, _, column in self._columns:
            column.finish()


class ScoreStep(ListStep):
    """Attaches the scores of several sources to blocks, in their order."""

    def __init__(
        self, sources: Sequence[ScoreSource], ids: SentenceIds, option: str = "scores"
    ) -> None:
        self._columns = [
            ValueColumn(
                source.paths,
                source.values,
                ids,
                place=source.place,
                what="score",
                option=f"{OptionName(option)} {source.name}",
                check=_check_divisors,
            )
            for source in sources
        ]

    def apply(self, block: NBestList) -> NBestList:
        parts = [] if block.outside is None else [block.outside]
        parts += [column.take(block) for column in self._columns]
        return replace(block, outside=np.concatenate(parts, axis=1))

    def finish(self) -> None:
        for column in self._columns:
            column.finish()


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


def _check_divisors(rows: ScoreRows) -> None:
    """Check that the second of two numbers can divide the first."""
    if rows.values.shape[1] == 2 and (rows.values[:, 1] < 0).any():
        row = int(np.argmax(rows.values[:, 1] < 0))
        raise FormatError(
            f"the second number is {rows.values[row, 1]:g}, but it divides the first",
            path=rows.path,
            line=rows.first + row,
            remedy="Give numbers from 0, such as numbers of words",
        )


def _check_name(
    name: str, option: str, groups: Sequence[tuple[str, int]], block: NBestList
) -> None:
    """Check that no feature of a list has a name yet, nor one of its values."""
    space = FeatureSpace(tuple(groups), block.sparse_names)
    if name in space.group_names or name in space.labels:
        raise UsageError(f"{option}: {block.path} has a feature {name} already: give another name")


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
            _check_name(feature.name, option, groups, block)
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
    is_usable = np.abs(values) <= _LARGEST
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
        shown = ", ".join([*self._labels, *self.derived][:_SHOWN])
        raise UsageError(
            f"{option}, character {wanted.position} of the expression: {path} has no dense feature "
            f"{name}; known: {shown or 'none'}{suggest(name, [*self._columns, *self.derived])}"
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
