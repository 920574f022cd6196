"""Put lines into the order of sentence ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from formats.errors import quote
from mosesplug.errors import DataError
from mosesplug.sentence_ids.decision import ListedIds, begins_with_ids
from mosesplug.sentence_ids.lines import TextLines

__all__ = ["arrange_lines", "arrange_texts"]

_Lines = Sequence[Sequence[bytes]]


def arrange_lines(
    lines: _Lines,
    ids: Sequence[str],
    what: str,
    begins: bool | None = None,
    hypotheses: Callable[[], Iterable[bytes]] = tuple,
) -> _Lines:
    """Return texts in the order of sentence ids; those without ids stay as they are.

    Args:
        lines: references or source sentences, ``[text][line]``.
        ids: all ids that are texts, by their numbers; empty if sentences have numbers only.
        begins: whether lines begin with ids; None: ``begins_with_ids`` decides.
        hypotheses: returns hypotheses of the sentences; see ``ListedIds``.

    Raises:
        DataError: an id has no line, or two; or it cannot be decided.
    """
    texts = [TextLines.of_lines(what, text_lines) for text_lines in lines]
    listed = ListedIds(frozenset(ids), hypotheses)
    return arrange_texts(texts, ids, begins_with_ids(texts, begins, listed))


def arrange_texts(
    texts: Sequence[TextLines], ids: Sequence[str], begins: bool
) -> list[Sequence[bytes]]:
    """Return texts in the order of sentence ids, and without ids.

    Args:
        ids: as for ``arrange_lines``.

    Raises:
        DataError: an id has no line, or two.
    """
    if not begins:
        return [text.without_ids for text in texts]
    return [_take_texts(text, ids) if ids else _sort_by_number(text) for text in texts]


def _take_texts(text: TextLines, ids: Sequence[str]) -> list[bytes]:
    """Return the texts of these ids.

    Raises:
        DataError: one has no line, or two.
    """
    wanted, found = {*ids}, dict[str, bytes]()
    for number, (key, line) in enumerate(zip(text.ids, text.texts, strict=True), start=1):
        if key in found and key in wanted:
            raise DataError(f"{text.name}:{number}: the id {quote(key)} has two lines. Remove one")
        found[key] = line
    if missing := next((name for name in ids if name not in found), None):
        raise DataError(
            f"{text.name}: the sentence id {quote(missing)} of the lists has no line. Add a line "
            "that begins with it; {--no-ids} takes lines in their order, and first words as words"
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
