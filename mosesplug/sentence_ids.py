"""Decide whether lines begin with sentence ids, and read the ids and the texts.

``begins_with_ids`` is the only place that decides it: for references, translations and source
sentences, from files, pipes and objects, beside n-best lists or beside each other.

A line that begins with an id is ``id text`` as in Kaldi's ``text`` files, ``id<TAB>text``, or a
JSON object with an id, as ``{"id": ..., "text": ...}``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from formats.errors import quote
from formats.nbest.list_format import ID_NAMES
from mosesplug.errors import DataError

__all__ = [
    "REFERENCE_KEYS",
    "TRANSLATION_KEYS",
    "ListedIds",
    "TextLines",
    "begins_with_ids",
]

REFERENCE_KEYS = ("text", "ref", "reference")
"""Keys of the text in JSON objects of references."""

TRANSLATION_KEYS = ("pred_text", "hyp", "hypothesis", "text")
"""Keys of the text in JSON objects of translations."""

_FEW = 5
"""In as many lines, first words with equal first letters are ids, and distinct numbers."""

_FORMED = 3
"""In as many lines, first words with digits or marks are ids."""

_MANY = 20
"""In as many lines of a text, some first word is repeated."""

_MOST = 50
"""In as many lines, the first words of a text are repeated, at the beginning or elsewhere."""

_PREFIX = 3
"""Equal first letters of ids, as of ``utta``, ``uttb``."""

_DIGITS = 18
_LINE = re.compile(rb"\s*([^\t ]*)[\t ]*(.*)", re.DOTALL)
_ID_FORM = re.compile(r"\d|\S[-_./:]\S")
"""A digit, or a mark inside a word."""


@dataclass(frozen=True)
class TextLines:
    """The lines of a text, and what they are if they begin with ids.

    Attributes:
        name: what messages call the text, as its file.
        lines: the lines as they are.
        ids: what each line begins with: the first word, or the id of the JSON object; empty for an
            object without one.
        texts: what stands behind it, or the text of the object.
        is_json: whether all lines are JSON objects with a text.
    """

    name: str
    lines: Sequence[bytes]
    ids: Sequence[str]
    texts: Sequence[bytes]
    is_json: bool = False

    @classmethod
    def of_lines(
        cls, name: str, lines: Sequence[bytes], keys: Sequence[str] = REFERENCE_KEYS
    ) -> TextLines:
        """Split lines into ids and texts.

        Args:
            name: what messages call the text.
            lines: the lines.
            keys: the keys of the text in JSON objects, the first that an object has.

        Raises:
            DataError: the first line is a JSON object, and some line is none with a text.
        """
        if lines and _parse_object(lines[0]):
            pairs = [
                _split_object(line, keys, f"{name}:{number}")
                for number, line in enumerate(lines, start=1)
            ]
            return cls(name, lines, [pair[0] for pair in pairs], [pair[1] for pair in pairs], True)
        if lines and all(b"\t" in line for line in lines):  # then, ids may have blanks
            parts = [line.partition(b"\t") for line in lines]
            found = [(key.strip(), text.strip()) for key, _, text in parts]
        else:
            matches = [_LINE.fullmatch(line) for line in lines]
            found = [(match[1], match[2].strip()) for match in matches if match is not None]
        names = [key.decode("utf-8", "surrogateescape") for key, _ in found]
        return cls(name, lines, names, [text for _, text in found])

    @property
    def without_ids(self) -> Sequence[bytes]:
        """The texts of JSON objects, or the lines as they are."""
        return self.texts if self.is_json else self.lines

    @cached_property
    def known(self) -> frozenset[str]:
        """The different ids."""
        return frozenset(self.ids)

    @cached_property
    def is_distinct(self) -> bool:
        """Whether every line begins with something, and no two lines with the same."""
        return bool(self.ids) and "" not in self.known and len(self.known) == len(self.ids)

    @cached_property
    def numbers(self) -> tuple[int, ...] | None:
        """The ids as numbers if they count the lines, in any order; else None."""
        if not self.is_distinct or not all(each.isascii() and each.isdigit() for each in self.ids):
            return None
        if max(map(len, self.ids)) > _DIGITS:
            return None
        found = tuple(map(int, self.ids))
        counts = len({*found}) == len(found) and max(found) - min(found) == len(found) - 1
        return found if counts else None

    @property
    def counts_from_zero(self) -> bool:
        """Whether the ids are the numbers of the lines, as 0, 1, 2."""
        if self.numbers is None or min(self.numbers) != 0:
            return False
        count = len(self.numbers)
        is_sure = count >= _FEW or (count > 1 and not self.is_repeated)
        return self.is_json or (is_sure and self.has_texts)

    @cached_property
    def _words(self) -> Sequence[str]:
        """The words of the texts."""
        decoded = (text.decode("utf-8", "surrogateescape") for text in self.texts)
        return [word for text in decoded for word in text.split()]

    @cached_property
    def is_repeated(self) -> bool:
        """Whether an id is also a word of a text, as words are."""
        folded = {each.casefold() for each in self.ids}
        return any(word.casefold() in folded for word in self._words)

    @cached_property
    def has_form_of_ids(self) -> bool:
        """Whether all ids have digits or marks inside, and most words of the texts have none."""
        if not all(map(_ID_FORM.search, self.ids)):
            return False
        return 2 * sum(bool(_ID_FORM.search(word)) for word in self._words) <= len(self._words)

    @cached_property
    def looks_like_ids(self) -> bool:
        """Whether the lines begin with ids, without a look at anything else."""
        if self.is_json:
            return self.is_distinct
        if not self.is_distinct or not self.has_texts:
            return False
        count = len(self.ids)
        if self.numbers is not None:
            return count >= _FEW or (count >= _FORMED and min(self.numbers) < 2)
        return count >= self._sufficient_count and not self.is_repeated

    @property
    def _sufficient_count(self) -> float:
        """The number of lines that are enough to see that their first words are ids."""
        start = self.ids[0][:_PREFIX]
        has_prefix = len(start) == _PREFIX and all(each.startswith(start) for each in self.ids)
        has_prefix &= 2 * sum(word.startswith(start) for word in self._words) <= len(self._words)
        if self.has_form_of_ids:
            are_numbers = all(map(str.isdigit, self.ids))
            return _FEW if are_numbers else 2 if has_prefix else _FORMED
        if has_prefix:
            return _FEW
        return _MOST if all(map(str.isascii, self.ids)) else math.inf

    @property
    def has_texts(self) -> bool:
        """Whether there is a text behind most ids, as not behind the words of a word list."""
        return 2 * sum(map(bool, self.texts)) > len(self.texts)

    def check(self) -> None:
        """Check that each line begins with an id of its own.

        Raises:
            DataError: one has none, or another line has the same.
        """
        seen: set[str] = set()
        for number, each in enumerate(self.ids, start=1):
            if not each or each in seen:
                what = f"the sentence id {quote(each)} is repeated" if each else "there is no id"
                raise DataError(f"{self.name}:{number}: {what}. Begin each line with its own id")
            seen.add(each)


@dataclass(frozen=True)
class ListedIds:
    """The sentence ids of n-best lists, search graphs or a store.

    Attributes:
        names: ids that are texts, all or the first ones; empty if sentences are numbers, the lines
            of the references.
        what: what messages call the lists.
    """

    names: frozenset[str] = frozenset()
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
    fewer, but some                              are refused: this cannot be decided
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
    distinct, stand nowhere else in the text, most have a text behind them, and there are

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
    texts = [each for each in texts if each.lines]
    if ids is not None:
        for each in texts if ids else ():
            each.check()
        return ids
    if listed is None:
        return _decide_among(texts)
    decide = _decide_beside_names if listed.names else _decide_beside_numbers
    decisions = {decide(each, listed): each for each in texts}
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
    own = quote(min(listed.names))
    if shared:
        raise _refuse(text, f"and only some lines begin with ids of {listed.what}, as {own}")
    if text.is_json or text.looks_like_ids:
        raise _refuse(text, f"which looks like an id, but {listed.what} have other ids, as {own}")
    return False


def _decide_beside_numbers(text: TextLines, listed: ListedIds) -> bool:
    """Return whether a text begins with the numbers of its lines."""
    if text.counts_from_zero:
        return True
    if text.looks_like_ids:
        raise _refuse(
            text,
            f"which looks like a sentence id, but {listed.what} have none: they number sentences "
            "from 0",
        )
    return False


def _decide_among(texts: Sequence[TextLines]) -> bool:
    """Return whether texts beside each other begin with ids."""
    sure = [each for each in texts if each.looks_like_ids]
    if sure:
        plain = next((each for each in texts if not _has_ids_of(each, sure)), None)
        if plain is None:
            return True
        raise _refuse(
            sure[0], f"which looks like a sentence id, but {plain.name} does not begin with ids"
        )
    if len(texts) < 2 or not all(each.is_distinct and not each.is_json for each in texts):
        return False
    first = texts[0]
    if all(each.lines == first.lines for each in texts):
        return False  # equal texts have the same score, whatever their first words are
    if all(each.known == first.known for each in texts):
        return _decide_equal_words(texts)
    shared = frozenset.intersection(*(each.known for each in texts))
    is_close = 2 * len(shared) > max(len(each.known) for each in texts)
    if is_close and len(first.ids) >= _MANY and not any(each.is_repeated for each in texts):
        raise _refuse(first, "and most lines of both sides begin with the same distinct words")
    return False


def _has_ids_of(text: TextLines, sure: Sequence[TextLines]) -> bool:
    """Return whether a text begins with ids, as others do."""
    is_same = text.is_distinct and any(text.known == each.known for each in sure)
    return text.looks_like_ids or is_same


def _decide_equal_words(texts: Sequence[TextLines]) -> bool:
    """Return whether equal sets of distinct first words are ids."""
    first = texts[0]
    if not any(each.has_texts for each in texts):
        return False  # lists of words
    if any(each.ids != first.ids for each in texts):
        return True
    count = len(first.ids)
    if count >= _MANY or (count > 1 and first.has_form_of_ids):
        return True
    if count < _FEW or any(each.is_repeated for each in texts):
        return False
    raise _refuse(first, "and all lines of both sides begin with the same distinct words")


def _refuse(text: TextLines, why: str) -> DataError:
    begins = "has the id" if text.is_json else "begins with"
    return DataError(
        f"{text.name}:1: the line {begins} {quote(text.ids[0])}, {why}. Give both sides with ids, "
        "or both without; --no-ids takes the lines in their order and first words as words, --ids "
        "first words as ids"
    )


def _split_object(line: bytes, keys: Sequence[str], place: str) -> tuple[str, bytes]:
    """Return the id and the text of a JSON object."""
    found = _parse_object(line)
    text = next((found[key] for key in keys if isinstance(found.get(key), str)), None)
    if text is None:
        raise DataError(
            f"{place}: this is no JSON object with a text ({', '.join(keys)}), as the lines of a "
            "file that begins with a JSON object must be"
        )
    name = next((str(found[key]) for key in ID_NAMES if key in found), "")
    return name, text.encode("utf-8", "surrogatepass")


def _parse_object(line: bytes) -> Mapping[str, Any]:
    """Return a JSON object, which is empty if the line has another value."""
    if not line.startswith(b"{"):
        return {}
    try:
        found = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}
