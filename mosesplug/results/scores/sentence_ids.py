"""Match translations and references by the sentence ids before their lines.

``mosesplug.sentence_ids`` decides whether they do.
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
from mosesplug.results.scores.comparison import System
from mosesplug.results.scores.scores import Translation
from mosesplug.sentence_ids import REFERENCE_KEYS, TRANSLATION_KEYS, TextLines, begins_with_ids

_Lines = Sequence[Sequence[bytes]]


@dataclass(frozen=True)
class ArrangedTexts:
    """Translations and references in the order of the references.

    Attributes:
        translations: texts without ids; a file of lines without ids is left as it is.
        orders: int64 ``[n_sentences]``, the line of each sentence in its translation; None if the
            order is that of the lines.
        references: ``[reference][line]``, without ids.
        ids: the ids of the sentences; empty without ids.
    """

    translations: tuple[Translation, ...]
    orders: tuple[NDArray[np.int64] | None, ...]
    references: _Lines
    ids: tuple[str, ...] = ()


def arrange_by_ids(
    translations: Sequence[Translation],
    references: _Lines,
    ids: bool | None = None,
    *,
    what: str = "the references",
) -> ArrangedTexts:
    """Match translations and references by the ids that their lines begin with.

    Args:
        references: ``[reference][line]``.
        ids: whether lines begin with ids; None: ``begins_with_ids`` decides.

    Raises:
        FormatError: a file cannot be read.
        DataError: only one side has ids, or it cannot be decided; an id is repeated, or it is on
            one side only.
    """
    unchanged = ArrangedTexts(tuple(translations), (None,) * len(translations), references)
    if not translations or not references:
        return unchanged
    refs = [TextLines.of_lines(what, lines, REFERENCE_KEYS) for lines in references]
    runs = [_split(translation, number) for number, translation in enumerate(translations)]
    every = [*refs, *runs]
    if not all(text.lines for text in every):
        return unchanged  # the error of an empty file is that of all readers
    if not begins_with_ids(every, ids):
        texts = tuple(
            run.texts if run.is_json else translation
            for run, translation in zip(runs, translations, strict=True)
        )
        return replace(
            unchanged, translations=texts, references=[text.without_ids for text in refs]
        )
    if ids is None and any(run.has_texts for run in runs):
        for text in refs:
            _check_texts(text)
    order = refs[0].ids
    orders = [_find_rows(run, order, what) for run in runs]
    taken = [[run.texts[row] for row in rows] for run, rows in zip(runs, orders, strict=True)]
    return ArrangedTexts(
        tuple(taken),
        tuple(np.array(rows, dtype=np.int64) for rows in orders),
        [[ref.texts[row] for row in _find_rows(ref, order, what)] for ref in refs],
        tuple(order),
    )


def _check_texts(reference: TextLines) -> None:
    """Check that references of one word a line are not taken for ids without a text.

    Raises:
        DataError: nothing stands behind the first words.
    """
    if not reference.is_json and not any(reference.texts):
        raise DataError(
            f"{reference.name}:1: the line has only the word {quote(reference.ids[0])}, with which"
            " a translation begins as with a sentence id; so do all. {--no-ids} takes the lines in"
            " their order and first words as words, {--ids} first words as ids"
        )


def arrange_systems(
    systems: Sequence[System],
    references: _Lines,
    ids: bool | None = None,
    *,
    what: str = "the references",
) -> tuple[list[System], _Lines]:
    """Return systems and references matched by ids; as ``arrange_by_ids``."""
    runs = [translation for system in systems for translation in system.translations]
    arranged = arrange_by_ids(runs, references, ids, what=what)
    matched: list[System] = []
    first = 0
    for system in systems:
        last = first + len(system.translations)
        translations, orders = arranged.translations[first:last], arranged.orders[first:last]
        outside = tuple(
            values if order is None else values[order]
            for values, order in zip(system.outside, orders, strict=False)
        )
        weights = tuple(
            own if own is None or order is None else own[order]
            for own, order in zip(system.sentence_weights, orders, strict=False)
        )
        matched.append(
            replace(system, translations=translations, outside=outside, sentence_weights=weights)
        )
        first = last
    return matched, arranged.references


def _split(translation: Translation, number: int) -> TextLines:
    """Return the lines of a translation; ``number`` names one that is no file."""
    if isinstance(translation, str | PathLike):
        name, lines = fspath(translation), read_reference(translation)
        return TextLines.of_lines(name, lines, TRANSLATION_KEYS)
    name = "the hypotheses" if number == 0 else f"translation {number}"
    return TextLines.of_lines(name, translation, TRANSLATION_KEYS)


def _find_rows(own: TextLines, order: Sequence[str], what: str) -> list[int]:
    """Return the line of each id.

    Raises:
        DataError: an id is repeated or missing, or there are others.
    """
    own.check()
    places = {text: place for place, text in enumerate(own.ids)}
    for one, other, whose in ((order, places, own.name), (own.ids, {*order}, what)):
        missing = next((text for text in one if text not in other), None)
        if missing is not None:
            raise DataError(
                f"{whose}: there is no line of the sentence id {quote(missing)}. Give all files "
                "the same ids, or lines without ids in one order; {--no-ids} takes first words as "
                "words"
            )
    return [places[text] for text in order]
