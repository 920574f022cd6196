"""Split the lines of a text into sentence ids and texts.

A line with an id is ``id text`` as in Kaldi's ``text`` files, ``id<TAB>text``, or a JSON object
with an id, such as ``{"id": ..., "text": ...}``.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from formats.errors import quote
from formats.nbest.list_format import ID_NAMES
from mosesplug.errors import DataError

__all__ = ["REFERENCE_KEYS", "TRANSLATION_KEYS", "TextLines", "split_words"]

REFERENCE_KEYS = ("text", "ref", "reference")
"""Keys of the text in JSON objects of references."""

TRANSLATION_KEYS = ("pred_text", "hyp", "hypothesis", "text")
"""Keys of the text in JSON objects of translations."""

_FEW = 5
"""In as many lines, first words with equal first letters are ids, and distinct numbers."""

_FORMED = 3
"""In as many lines, first words with digits or marks are ids."""

_MOST = 50
"""In as many lines, the first words of a text are repeated, at the beginning or elsewhere."""

_PREFIX = 3
"""Equal first letters of ids, as of ``utta``, ``uttb``."""

_SAMPLE = 2000
"""Lines that are enough to see which words a text has."""

_DIGITS = 18
_LINE = re.compile(rb"\s*([^\t ]*)[\t ]*(.*)", re.DOTALL)
_ID_FORM = re.compile(r"\d|\S[-_./:]\S")
"""A digit, or a mark inside a word."""


@dataclass(frozen=True)
class TextLines:
    """The lines of a text, split into sentence ids and texts.

    Attributes:
        name: the name of the text in messages, such as its file.
        ids: the first word of each line, or the id of its JSON object; empty for an object
            without an id.
        texts: the text behind the first word, or the text of the JSON object.
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
            keys: the keys of the text in JSON objects, the first that an object has.

        Raises:
            DataError: the first line is a JSON object, and another line is not one with a text.
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
        """Whether all first words exist and are distinct."""
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
        is_sure = self.has_many_numbers or (len(self.numbers) > 1 and not self.is_repeated)
        return self.is_json or (is_sure and self.has_texts)

    @property
    def has_many_numbers(self) -> bool:
        """Whether the ids count so many lines that they cannot be words."""
        return self.numbers is not None and len(self.numbers) >= _FEW

    @cached_property
    def words(self) -> Sequence[str]:
        """The words of the texts, at most of the first 2,000."""
        return split_words(self.texts[:_SAMPLE])

    def stands_in(self, words: Iterable[str]) -> bool:
        """Return whether most ids are among the words of other texts."""
        return 2 * len(self.known.intersection(words)) > len(self.known)

    @cached_property
    def is_repeated(self) -> bool:
        """Whether some id also occurs as a word of a text."""
        folded = {each.casefold() for each in self.ids}
        return any(word.casefold() in folded for word in self.words)

    @cached_property
    def has_form_of_ids(self) -> bool:
        """Whether all ids, but few words of the texts, have digits or marks inside."""
        if not all(map(_ID_FORM.search, self.ids)):
            return False
        return 2 * sum(bool(_ID_FORM.search(word)) for word in self.words) <= len(self.words)

    @cached_property
    def looks_like_ids(self) -> bool:
        """Whether the lines look like ids by themselves, without other texts."""
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
        has_prefix &= 2 * sum(word.startswith(start) for word in self.words) <= len(self.words)
        if self.has_form_of_ids:
            are_numbers = all(map(str.isdigit, self.ids))
            return _FEW if are_numbers else 2 if has_prefix else _FORMED
        if has_prefix:
            return _FEW
        return _MOST if all(map(str.isascii, self.ids)) else math.inf

    @property
    def has_texts(self) -> bool:
        """Whether most ids have a text behind them, unlike words of a word list."""
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


def split_words(texts: Iterable[bytes]) -> list[str]:
    """Return the words of texts."""
    decoded = (text.decode("utf-8", "surrogateescape") for text in texts)
    return [word for text in decoded for word in text.split()]


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
