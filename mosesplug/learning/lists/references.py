"""References in the order of the sentences of lists.

Line ``k`` of the references belongs to sentence ``k``: of sentence ids that are texts, as of
utterances, to the ``k``-th one in order of first appearance. If the lines begin with the ids
themselves, they may stand in any order, and there may be more of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.nbest.list_format import SentenceIds, open_blocks
from formats.text import StrPath
from mosesplug.errors import DataError
from mosesplug.learning.lists.blocks import make_list_options, names_values, scan_lists
from mosesplug.sentence_ids import ListedIds, TextLines, begins_with_ids
from mosesplug.settings.lists import ListSettings

__all__ = [
    "MatchedReferences",
    "arrange_lines",
    "check_reference_count",
    "match_references",
]

_Lines = Sequence[Sequence[bytes]]


class MatchedReferences(NamedTuple):
    """References, ``[reference][line]``, and the known ids of their lines."""

    lines: _Lines
    ids: SentenceIds


def match_references(
    files: Sequence[StrPath | NBestList], settings: ListSettings, lines: _Lines, what: str
) -> MatchedReferences:
    """Arrange references by the sentence ids of lists; ``begins_with_ids`` decides.

    Args:
        files: the lists.
        settings: how they are read, and whether references begin with ids.
        lines: the references, ``[reference][line]``.
        what: how messages call the references.

    Returns:
        The references in the order of the ids, and the numbers of the ids. For lists whose ids are
        integers, and references without ids, they have the order of the lines.

    Raises:
        FormatError: a list does not have its format.
        DataError: an id has no reference, or two; or it cannot be decided whether references begin
            with ids; or lists in memory have different ids.
    """
    held = _find_held_ids(files)
    if not lines:
        return MatchedReferences(lines, SentenceIds(held))
    texts = _split_lines(lines, what)
    first = held or _read_first_ids(files, settings)
    if not begins_with_ids(texts, settings.ids, ListedIds(frozenset(first))):
        return MatchedReferences([each.without_ids for each in texts], SentenceIds(held))
    if not first:
        return MatchedReferences([_sort_by_number(each) for each in texts], SentenceIds())
    ids = held or _order_ids(files, settings, texts[0].ids)
    return MatchedReferences([_take_texts(each, ids) for each in texts], SentenceIds(ids))


def arrange_lines(
    lines: _Lines, ids: Sequence[str], what: str, begins: bool | None = None
) -> _Lines:
    """Return texts in the order of sentence ids; those without ids stay as they are.

    Args:
        lines: references or source sentences, ``[text][line]``.
        ids: all ids that are texts, by their numbers; empty if sentences have numbers only.
        what: how messages call the texts.
        begins: whether lines begin with ids; None: ``begins_with_ids`` decides.

    Raises:
        DataError: an id has no line, or two; or it cannot be decided.
    """
    texts = _split_lines(lines, what)
    if not begins_with_ids(texts, begins, ListedIds(frozenset(ids))):
        return [each.without_ids for each in texts]
    return [_take_texts(each, ids) if ids else _sort_by_number(each) for each in texts]


def check_reference_count(ids: SentenceIds, lines: _Lines, what: str) -> None:
    """Check that there is one reference for each id, where line numbers match them.

    Raises:
        DataError: there are more.
    """
    if len(ids) and lines and len(ids) != len(lines[0]):
        raise DataError(
            f"{what}: {len(lines[0])} references for {len(ids)} sentence ids. Give one line for "
            "each id in the order of the lists, or begin each line with its id"
        )


def _split_lines(lines: _Lines, what: str) -> list[TextLines]:
    return [TextLines.of_lines(what, each) for each in lines]


def _find_held_ids(files: Sequence[StrPath | NBestList]) -> tuple[str, ...]:
    """Return the sentence ids of lists in memory, which number them alike.

    Raises:
        DataError: they do not, or some lists are files.
    """
    held = {each.ids if isinstance(each, NBestList) else () for each in files}
    if len(held) > 1:
        raise DataError(
            "the lists have different sentence ids: give their files, which are read together"
        )
    return next(iter(held), ())


def _read_first_ids(files: Sequence[StrPath | NBestList], settings: ListSettings) -> set[str]:
    """Return the ids of the first block; the set is empty if they are integers."""
    path = next(iter(files), None)
    if path is None or isinstance(path, NBestList):
        return set()
    ids = SentenceIds()
    options = make_list_options(settings, () if names_values(path, settings) else None)
    next(open_blocks(path, settings.format, options, ids), None)
    return set(ids.names)


def _order_ids(
    files: Sequence[StrPath | NBestList], settings: ListSettings, keys: Sequence[str]
) -> tuple[str, ...]:
    """Return the ids of all lists.

    They have the order of the references if the lists have it, too: then a list may lack sentences
    of another one. Else it is that of the first appearance.
    """
    paths = [file for file in files if not isinstance(file, NBestList)]
    try:
        scan = scan_lists(paths, settings, SentenceIds(keys))
    except FormatError:  # also one that the next scan raises again
        scan = scan_lists(paths, settings)
    return tuple(scan.ids[number] for number in scan.sentences)


def _take_texts(text: TextLines, ids: Sequence[str]) -> list[bytes]:
    """Return the texts of these ids.

    Raises:
        DataError: one has no line, or two.
    """
    wanted, found = {*ids}, dict[str, bytes]()
    for number, (key, line) in enumerate(zip(text.ids, text.texts, strict=True), start=1):
        if key in found and key in wanted:
            raise DataError(
                f"{text.name}:{number}: the id {quote(key)} has two references. Remove one"
            )
        found[key] = line
    if missing := next((name for name in ids if name not in found), None):
        raise DataError(
            f"{text.name}: the sentence id {quote(missing)} of the lists has no reference. Add a "
            "line that begins with it; --no-ids takes lines in their order, first words as words"
        )
    return [found[name] for name in ids]


def _sort_by_number(text: TextLines) -> list[bytes]:
    """Return texts in the order of the numbers that they begin with.

    Those that begin with ids that are texts stay in the order of the lines.

    Raises:
        DataError: the numbers do not count lines.
    """
    if text.numbers is None:
        if all(map(str.isdigit, text.ids)):
            raise DataError(
                f"{text.name}: the lines begin with numbers, as {quote(text.ids[0])}, which do not "
                "count the sentences of the lists. Number them from 0, or remove the numbers"
            )
        return list(text.texts)
    pairs = zip(text.numbers, text.texts, strict=True)
    return [line for _, line in sorted(pairs, key=lambda pair: pair[0])]
