"""The error that every reader of this library raises.

It names the path, the line, what is wrong, and what to do.
"""

from __future__ import annotations

import re
from os import PathLike, fspath

LONGEST_QUOTE = 40
_LONGEST_MESSAGE = 1000
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class FormatError(ValueError):
    """A file that cannot be read as its format.

    ``str(error)`` is one line: ``path:line: message. remedy``. ``line`` counts from 1 and is
    None if the error belongs to no single line (a missing file, a truncated archive).
    """

    def __init__(
        self,
        message: str,
        *,
        path: str | PathLike[str] | None = None,
        line: int | None = None,
        remedy: str | None = None,
    ) -> None:
        self.message = message
        self.path = None if path is None else fspath(path)
        self.line = line
        self.remedy = remedy
        super().__init__(message)

    def __str__(self) -> str:
        place = self.path or ""
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
        message = self.message
        if len(message) > _LONGEST_MESSAGE:  # a name in it may be as long as the file
            message = f"{message[:_LONGEST_MESSAGE]}..."
        text = f"{place}: {message}" if place else message
        return _UNSEEN.sub(_escape, f"{text}. {self.remedy}" if self.remedy else text)


def _escape(match: re.Match[str]) -> str:
    """Escape a character that would break the line or control a terminal."""
    return match[0].encode("unicode_escape").decode()


def quote(text: bytes | str) -> str:
    """Quote a piece of a file for a message, cut to a readable length.

    Characters that cannot be printed are escaped.
    """
    part = text[: 4 * LONGEST_QUOTE]
    if isinstance(part, str):
        part = part.encode("utf-8", "surrogateescape")
    seen = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in part.decode("utf-8", "backslashreplace")
    )
    return f"'{seen[:LONGEST_QUOTE]}...'" if len(seen) > LONGEST_QUOTE else f"'{seen}'"
