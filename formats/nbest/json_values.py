"""Read the values of a JSON document one by one.

A file of one array of many sentences is read in bounded memory: ``JsonReader`` holds the text of
one element. The standard library decodes only whole documents.
"""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator
from os import fspath
from typing import Any

from formats.nbest.entry import Place
from formats.text import StrPath, iter_chunks

CHUNK_BYTES = 1 << 20
_BLANKS = " \t\r\n"
_CUT = 100
"""An error this close to the end of the text may be due to what is missing."""


def read_integer(digits: str) -> int:
    """Return an integer; cut it to 400 characters, as Python limits the digits."""
    return int(digits[:400])


def is_number(value: Any) -> bool:
    """Return whether a value is a JSON number."""
    return isinstance(value, int | float) and not isinstance(value, bool)


class JsonReader:
    """The text of a file and a position in it."""

    def __init__(self, path: StrPath) -> None:
        self.path = fspath(path)
        self._chunks: Iterator[bytes] | None = iter_chunks(path, CHUNK_BYTES)
        self._to_text = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._decoder = json.JSONDecoder(parse_int=read_integer)
        self._text = ""
        self._at = 0
        self._line = 1

    @property
    def place(self) -> Place:
        """The place of the next value."""
        return Place(self.path, self._line)

    def peek(self) -> str:
        """Return the next character that is no blank, or an empty text at the end."""
        while True:
            while self._at < len(self._text):
                character = self._text[self._at]
                if character not in _BLANKS:
                    return character
                self._line += character == "\n"
                self._at += 1
            if not self._read_more():
                return ""

    def take(self) -> str:
        """Return the next character that is no blank, and go behind it."""
        character = self.peek()
        self._at += len(character)
        return character

    def value(self) -> Any:
        """Return the next value, and go behind it.

        Bytes that are no UTF-8 become surrogates.
        """
        self.peek()
        while True:
            try:
                decoded, end = self._decoder.raw_decode(self._text, self._at)
            except json.JSONDecodeError as error:
                is_cut = error.pos > len(self._text) - _CUT or error.msg.startswith("Unterminated")
                if is_cut and self._read_more():
                    continue
                line = self._line + self._text.count("\n", self._at, error.pos)
                raise Place(self.path, line).error(
                    f"the text is not JSON: {error.msg}", "Write the file by a library for JSON"
                ) from None
            except RecursionError:
                raise self.place.error(
                    "the text is not JSON: it is nested too deeply", "Write lists of hypotheses"
                ) from None
            # A number at the end of the text may go on in the next chunk.
            if end < len(self._text) or not self._read_more():
                break
        self._line += self._text.count("\n", self._at, end)
        self._at = end
        return decoded

    def items(self) -> Iterator[tuple[Any, Place]]:
        """Yield the elements of the next value, an array, each with its place."""
        self.take()
        while self.peek() != "]":
            place = self.place
            yield self.value(), place
            if self.peek() == ",":
                self.take()
                if self.peek() == "]":
                    raise self.place.error(
                        "the text is not JSON: a comma before ]", "Remove the comma"
                    )
            elif self.peek() != "]":
                raise self.place.error(
                    "the text is not JSON: Expecting ',' or ']' after an element",
                    "Write the file by a library for JSON",
                )
        self.take()

    def _read_more(self) -> bool:
        """Add text to that from the position on; return whether there was any."""
        if self._chunks is None:
            return False
        # Twice as much as there is, so that a long value is not decoded many times.
        kept = self._text[self._at :]
        parts = [kept]
        size, wanted = 0, max(1, len(kept))
        for chunk in self._chunks:
            parts.append(part := self._to_text.decode(chunk))
            if (size := size + len(part)) >= wanted:
                break
        else:
            parts.append(part := self._to_text.decode(b"", final=True))
            size += len(part)
            self._chunks = None
        self._text, self._at = "".join(parts), 0
        return size > 0
