"""Steps that change the blocks of n-best lists as they are read.

Blocks pass the steps of ``make_steps`` in order, those of the first file first: compute features
of templates, drop and rename features, add features from outside, derive features from others,
attach scores, change the texts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds
from formats.scores import ScoreRows
from mosesplug.errors import OptionName, UsageError, explain_unknown_feature
from mosesplug.features import FeatureSpace
from mosesplug.learning.lists.value_columns import ValueColumn
from mosesplug.metrics.outside import Formula, find_formula_of_width
from mosesplug.settings.features import AddedFeature
from mosesplug.settings.scores.files import ScoreSource
from mosesplug.templates.blocks import TemplateFeatures
from mosesplug.templates.declaration import Templates

LARGEST_VALUE = float(np.finfo(np.float32).max)
"""Largest absolute value of a feature, which is stored in single precision."""


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


class _NameStep(ListStep, ABC):
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
        self._seen.update(dict.fromkeys(names))
        present = set(names)
        for wanted in list(self._unused):
            prefix = wanted[:-1] if wanted.endswith("*") else None
            if wanted in present or (
                prefix is not None and any(name.startswith(prefix) for name in names)
            ):
                del self._unused[wanted]

    @abstractmethod
    def spell(self, name: str) -> str:
        """Return the option that has this name."""

    def finish(self) -> None:
        if self._unused and self._is_strict:
            name = next(iter(self._unused))
            raise UsageError(f"{self.spell(name)}: {explain_unknown_feature(name, self._seen)}")


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
            check_new_name(name, option, groups, block)
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
                check=partial(_check_formula, source.formula),
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
    is_usable = (np.abs(rows.values) <= LARGEST_VALUE).all(axis=1)
    if not is_usable.all():
        row = int(np.argmin(is_usable))
        raise FormatError(
            f"{np.abs(rows.values[row]).max():g} is too large for a feature",
            path=rows.path,
            line=rows.first + row,
            remedy="Give numbers that single precision can hold",
        )


def _check_formula(formula: Formula | None, rows: ScoreRows) -> None:
    """Check that a formula takes the numbers; None: by their number."""
    formula = formula or find_formula_of_width(rows.values.shape[1])
    if formula is None or (fault := formula.find_fault(rows.values)) is None:
        return
    row, why = fault
    raise FormatError(
        why,
        path=rows.path,
        line=rows.first + row,
        remedy=f"{formula.name} takes {formula.describe()}",
    )


def check_new_name(
    name: str, option: str, groups: Sequence[tuple[str, int]], block: NBestList
) -> None:
    """Check that no feature of a list has a name yet, nor one of its values."""
    space = FeatureSpace(tuple(groups), block.sparse_names)
    if name in space.group_names or name in space.labels:
        raise UsageError(f"{option}: {block.path} has a feature {name} already: give another name")
