"""Decide whether lines begin with sentence ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from formats.errors import quote
from mosesplug.errors import DataError
from mosesplug.sentence_ids.lines import TextLines, split_words

__all__ = ["ListedIds", "begins_with_ids"]

_FEW = 5
"""In fewer lines, equal first words are no sign of ids."""

_MANY = 20
"""In as many lines of a text, some first word is repeated."""


@dataclass(frozen=True)
class ListedIds:
    """The sentence ids of n-best lists, search graphs or a store.

    Attributes:
        names: ids that are texts, all or the first ones; empty if sentences are numbers, the lines
            of the references.
        hypotheses: returns texts of the lists, of the first sentences at least; what stands in them
            is no id.
        what: what messages call the lists.
    """

    names: frozenset[str] = frozenset()
    hypotheses: Callable[[], Iterable[bytes]] = tuple
    what: str = "the lists"


def begins_with_ids(
    texts: Sequence[TextLines], ids: bool | None = None, listed: ListedIds | None = None
) -> bool:
    """Return whether lines begin with sentence ids, by which they are matched.

    If not, line ``k`` is that of sentence ``k``. A caller decides with ``ids``. Otherwise:

    ===========================================  ==================================================
    beside n-best lists whose ids are texts      lines
    ===========================================  ==================================================
    JSON objects with ids                        begin with ids
    more than half of the ids are first words,   begin with ids
    or more than half of the first words ids
    fewer, but some                              are refused, unless most first words stand in
                                                 hypotheses: then, they do not begin with ids
    none, and the lines look like others ids     are refused: they are not of these lists
    none                                         do not begin with ids
    ===========================================  ==================================================

    ===========================================  ==================================================
    beside lists whose ids are numbers           lines
    ===========================================  ==================================================
    begin with the numbers 0, 1, 2, ..., n - 1   begin with ids, in any order
    look like ids, as also 1, 2, ..., n          are refused: the lists have no such ids
    others                                       do not begin with ids
    ===========================================  ==================================================

    ===========================================  ==================================================
    texts beside each other                      lines
    ===========================================  ==================================================
    all look like ids                            begin with ids
    some look like ids; the others have the      begin with ids
    same set of distinct first words
    some look like ids, others do not            are refused: only one side has ids
    the same set of distinct first words, in     begin with ids
    another order
    the same set, in the same order, and at      begin with ids
    least 20 lines, or words of the form of ids
    the same set, in the same order, and 5 to    do not, if a first word stands elsewhere in a
    19 lines                                     text; else they are refused
    sets of at least 20 distinct first words,    are refused, if no first word stands elsewhere in
    of which more than half are the same         a text; else they do not begin with ids
    equal lines, and all others                  do not begin with ids
    ===========================================  ==================================================

    Lines *look like ids* if they are JSON objects with distinct ids; or if their first words are
    distinct, stand nowhere else in the text, most of them neither in another text nor in a
    hypothesis, most have a text behind them, and there are

    - 3 lines or more, and all first words have a digit or one of ``-_./:`` inside, as most words
      behind them do not (*the form of ids*); 2, if they also have the same first three letters; 5,
      if they are numbers;
    - 5 lines or more, and all first words have the same first three letters;
    - 50 lines or more, in which all first words are ASCII.

    Numbers that count the lines look like ids, too, from 0 or 1 in 3 lines or more.

    Args:
        texts: the texts, at least one; without ``listed``, they are those of both sides.
        ids: what the caller says (``--ids``, ``--no-ids``); None: decide.
        listed: the ids of the lists beside the texts; None: the texts stand beside each other.

    Raises:
        DataError: it cannot be decided, or only one side has ids; or the caller says that lines
            begin with ids, and one has none or that of another line.
    """
    texts = [text for text in texts if text.lines]
    if ids is not None:
        for each in texts if ids else ():
            each.check()
        return ids
    if listed is None:
        return _decide_among(texts)
    decide = _decide_beside_names if listed.names else _decide_beside_numbers
    decisions = {decide(text, listed): text for text in texts}
    if len(decisions) > 1:
        raise _refuse(decisions[True], f"and {decisions[False].name} does not begin with ids")
    return True in decisions


def _decide_beside_names(text: TextLines, listed: ListedIds) -> bool:
    """Return whether a text begins with the ids of lists that have texts as ids."""
    if text.is_json and not any(text.ids):
        return False
    shared = len(listed.names & text.known)
    if 2 * shared > min(len(listed.names), len(text.known)):
        return True
    if not (shared or text.looks_like_ids or text.is_json):
        return False
    if not text.is_json and _begins_with_words(text, listed):
        return False
    own = quote(min(listed.names))
    if shared:
        raise _refuse(text, f"and only some lines begin with ids of {listed.what}, as {own}")
    raise _refuse(text, f"{_name_sign(text)}but {listed.what} have other ids, as {own}")


def _decide_beside_numbers(text: TextLines, listed: ListedIds) -> bool:
    """Return whether a text begins with the numbers of its lines."""
    is_sure = text.is_json or text.has_many_numbers
    if text.counts_from_zero and (is_sure or not _begins_with_words(text, listed)):
        return True
    if text.looks_like_ids and (is_sure or not _begins_with_words(text, listed)):
        raise _refuse(
            text,
            f"{_name_sign(text)}but {listed.what} have none: they number sentences from 0",
            "Remove the ids",
        )
    return False


def _begins_with_words(text: TextLines, listed: ListedIds) -> bool:
    """Return whether most first words of a text stand in hypotheses."""
    return text.stands_in(split_words(listed.hypotheses()))


def _decide_among(texts: Sequence[TextLines]) -> bool:
    """Return whether texts beside each other begin with ids."""
    sure = [text for text in texts if _looks_like_ids(text, texts)]
    if sure:
        plain = next((text for text in texts if not _has_ids_of(text, texts, sure)), None)
        if plain is None:
            return True
        raise _refuse(sure[0], f"{_name_sign(sure[0])}but {plain.name} does not begin with ids")
    if len(texts) < 2 or not all(text.is_distinct and not text.is_json for text in texts):
        return False
    first = texts[0]
    if all(text.lines == first.lines for text in texts):
        return False  # equal texts have the same score, whatever their first words are
    if all(text.known == first.known for text in texts):
        return _decide_equal_words(texts)
    shared = frozenset.intersection(*(text.known for text in texts))
    is_close = 2 * len(shared) > max(len(text.known) for text in texts)
    if is_close and len(first.ids) >= _MANY and not any(text.is_repeated for text in texts):
        raise _refuse(first, "and most lines of both sides begin with the same distinct words")
    return False


def _looks_like_ids(text: TextLines, texts: Sequence[TextLines]) -> bool:
    """Return whether a text begins with ids, and not with words of one of the texts."""
    return text.looks_like_ids and (
        text.is_json
        or text.has_many_numbers
        or not any(text.stands_in(each.words) for each in texts)
    )


def _has_ids_of(text: TextLines, texts: Sequence[TextLines], sure: Sequence[TextLines]) -> bool:
    """Return whether a text begins with ids, as others do."""
    is_same = text.is_distinct and any(text.known == each.known for each in sure)
    return is_same or _looks_like_ids(text, texts)


def _decide_equal_words(texts: Sequence[TextLines]) -> bool:
    """Return whether equal sets of distinct first words are ids."""
    first = texts[0]
    if not any(text.has_texts for text in texts):
        return False  # lists of words
    if any(text.ids != first.ids for text in texts):
        return True
    count = len(first.ids)
    if count >= _MANY or (count > 1 and first.has_form_of_ids):
        return True
    if count < _FEW or any(text.is_repeated for text in texts):
        return False
    raise _refuse(first, "and all lines of both sides begin with the same distinct words")


def _name_sign(text: TextLines) -> str:
    """Return why the first words of a text are ids, in words; nothing of JSON objects."""
    return "" if text.is_json else "which looks like a sentence id, "


def _refuse(
    text: TextLines, why: str, remedy: str = "Give both sides with ids, or both without"
) -> DataError:
    begins = "has the sentence id" if text.is_json else "begins with"
    return DataError(
        f"{text.name}:1: the line {begins} {quote(text.ids[0])}, {why}. {remedy}; {{--no-ids}} "
        "takes the lines in their order and first words as words, {--ids} first words as ids"
    )
