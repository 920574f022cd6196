"""Translations and references whose lines begin with sentence ids, as in Kaldi.

Lines may also be JSON objects with a text, as those of NeMo's manifests, with or without an id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath

import numpy as np
from numpy.typing import NDArray

from formats.errors import quote
from formats.references import read_reference
from mosesplug.errors import DataError
from mosesplug.evaluation.comparison import System
from mosesplug.evaluation.scores import Translation
from mosesplug.learning.lists.references import REFERENCE_KEYS, split_id

__all__ = ["ArrangedTexts", "arrange_by_ids", "arrange_systems"]

_TRANSLATION_KEYS = ("pred_text", "hyp", "hypothesis", "text")
_MARKS = frozenset("-_./:")

_FEWEST = 5
"""Fewer lines do not show that their first words are ids, if only one of two files has them."""

_Lines = Sequence[Sequence[bytes]]


@dataclass(frozen=True)
class ArrangedTexts:
    """Translations and references in the order of the references.

    Attributes:
        translations: texts without ids; a file without ids is left as it is.
        orders: int64 ``[n_sentences]``, the line of each sentence in its translation; None if the
            order is that of the lines.
        references: ``[reference][line]``, without ids.
    """

    translations: tuple[Translation, ...]
    orders: tuple[NDArray[np.int64] | None, ...]
    references: _Lines


@dataclass(frozen=True)
class _Texts:
    """The lines of a file, and what they are without ids.

    Attributes:
        name: the file.
        lines: the lines as they are.
        ids: what the lines begin with.
        texts: what is behind it.
        is_json: whether all lines are JSON objects with a text.
    """

    name: str
    lines: Sequence[bytes]
    ids: Sequence[bytes]
    texts: Sequence[bytes]
    is_json: bool

    @classmethod
    def of_lines(cls, name: str, lines: Sequence[bytes], keys: Sequence[str]) -> _Texts:
        pairs = [split_id(line, keys) for line in lines]
        is_json = all(
            line.startswith(b"{") and text is not line
            for line, (_, text) in zip(lines, pairs, strict=True)
        )
        return cls(name, lines, [pair[0] for pair in pairs], [pair[1] for pair in pairs], is_json)

    @property
    def has_ids(self) -> bool:
        """Whether each line has an id. In text lines, the first word must look like an id."""
        if len({*self.ids}) < len(self.ids) or not all(self.ids):
            return False
        return self.is_json or all(map(_is_like_id, self.ids))

    def check(self) -> None:
        """Check that each line has an id of its own.

        Raises:
            DataError: one has none, or another line has the same.
        """
        seen: set[bytes] = set()
        for number, each in enumerate(self.ids, start=1):
            if not each or each in seen:
                what = f"the sentence id {quote(each)} is repeated" if each else "there is no id"
                raise DataError(f"{self.name}:{number}: {what}. Begin each line with its own id")
            seen.add(each)

    @property
    def without_ids(self) -> Sequence[bytes]:
        """The texts of JSON objects, or the lines."""
        return self.texts if self.is_json else self.lines


def arrange_by_ids(
    translations: Sequence[Translation], references: _Lines, ids: bool | None = None
) -> ArrangedTexts:
    """Match translations and references by the ids that their lines begin with.

    Args:
        translations: files, which may have ids, or texts, which have none.
        references: ``[reference][line]``.
        ids: whether lines begin with ids; None: if all of them look like ids on both sides, as
            ``1089-134686-0000``. JSON objects are recognized, too. False: lines are taken as they
            are.

    Raises:
        FormatError: a file cannot be read.
        DataError: only one side has ids, an id is repeated, or it is on one side only.
    """
    files = [each for each in translations if isinstance(each, str | PathLike)]
    unchanged = ArrangedTexts(tuple(translations), (None,) * len(translations), references)
    if ids is False or not files or not references:
        return unchanged
    refs = [_Texts.of_lines("the reference", lines, REFERENCE_KEYS) for lines in references]
    known = {
        fspath(path): _Texts.of_lines(fspath(path), read_reference(path), _TRANSLATION_KEYS)
        for path in files
    }
    every = [*refs, *known.values()]
    if not all(each.lines for each in every):
        return unchanged  # the error of an empty file is that of all readers
    if ids:
        for each in every:
            each.check()
    elif not all(each.has_ids for each in every):
        _check_sides(refs, [*known.values()])
        if not any(each.is_json for each in every):
            return unchanged
        texts = tuple(
            known[fspath(each)].without_ids if isinstance(each, str | PathLike) else each
            for each in translations
        )
        return ArrangedTexts(texts, unchanged.orders, [each.without_ids for each in refs])
    order = refs[0].ids
    found: list[Translation] = []
    orders: list[NDArray[np.int64] | None] = []
    for translation in translations:
        if not isinstance(translation, str | PathLike):
            found.append(translation)
            orders.append(None)
            continue
        own = known[fspath(translation)]
        rows = _find_rows(own, order)
        found.append([own.texts[row] for row in rows])
        orders.append(np.array(rows, dtype=np.int64))
    arranged = [[own.texts[row] for row in _find_rows(own, order)] for own in refs]
    return ArrangedTexts(tuple(found), tuple(orders), arranged)


def arrange_systems(
    systems: Sequence[System], references: _Lines, ids: bool | None = None
) -> tuple[list[System], _Lines]:
    """Return systems and references matched by ids; errors as for ``arrange_by_ids``."""
    runs = [translation for system in systems for translation in system.translations]
    arranged = arrange_by_ids(runs, references, ids)
    found: list[System] = []
    first = 0
    for system in systems:
        last = first + len(system.translations)
        outside = tuple(
            values if order is None else values[order]
            for values, order in zip(system.outside, arranged.orders[first:last], strict=False)
        )
        translations = arranged.translations[first:last]
        found.append(replace(system, translations=translations, outside=outside))
        first = last
    return found, arranged.references


def _find_rows(own: _Texts, order: Sequence[bytes]) -> list[int]:
    """Return the line of each id.

    Raises:
        DataError: an id is missing, or there are others.
    """
    places = {each: place for place, each in enumerate(own.ids)}
    for one, other, whose in ((order, places, own.name), (own.ids, {*order}, "the reference")):
        missing = next((each for each in one if each not in other), None)
        if missing is not None:
            raise DataError(
                f"{whose} has no line of the sentence id {quote(missing)}. Give all files the same "
                "ids, or lines without ids in one order"
            )
    return [places[each] for each in order]


def _check_sides(references: Sequence[_Texts], translations: Sequence[_Texts]) -> None:
    """Check that ids are not taken for words because only one side has them.

    Raises:
        DataError: only one side has ids.
    """
    for one, other in ((references, translations), (translations, references)):
        plain = next((each for each in other if not each.has_ids and not each.is_json), None)
        for each in one:
            if each.has_ids and not each.is_json and len(each.ids) >= _FEWEST and plain is not None:
                raise DataError(
                    f"{each.name} begins with {quote(each.ids[0])}, which looks like a sentence "
                    f"id, but {plain.name} does not begin with ids. Give both with ids or both "
                    "without; if it is a word, say so (--no-ids)"
                )


def _is_like_id(word: bytes) -> bool:
    text = word.decode("utf-8", "surrogateescape")
    return any(map(str.isdigit, text)) and not _MARKS.isdisjoint(text)
