"""Messages, and the error that every reader of this library raises.

An error names the path, the line, what is wrong, and what to do.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from os import PathLike, fspath

LONGEST_QUOTE = 40
MACHINE_REMEDIES: Mapping[int, str] = {
    errno.EIO: "The disk fails: see the system's log",
    errno.EMFILE: "Allow more open files (ulimit -n)",
    errno.ENFILE: "Other programs have opened too many: end some",
    errno.EAGAIN: "Allow more processes and threads (ulimit -u), or end some",
    errno.ENOMEM: "Use a machine with more memory",
}
"""Remedies for errors that the machine makes, whatever the file, by error number."""
_LONGEST_MESSAGE = 1000
_FIELD = re.compile(r'\{-{2}([^ {}]+)(?: ("[^"]*"(?=\})|[^}]*))?\}')
_UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True)
class OptionName:
    """An option that a message names, and its value if the message says one.

    As text it is a field of a template: ``{--select median}``.
    """

    name: str
    value: str = ""

    def __str__(self) -> str:
        return f"{{{spell_option(self)}}}"


Spelling = Callable[[OptionName], str]
"""Returns the text of an option: ``--folds 5`` for a command line, ``folds=5`` for Python."""


def spell_option(option: OptionName) -> str:
    """Return an option as at the command line: ``--select median``."""
    return f"--{option.name} {option.value}".rstrip()


class Message(str):
    """A text that names options, each as the reader's command line or call writes it.

    Args:
        template: the text, where ``{--folds}`` and ``{--select median}`` name options; all other
            braces stand for themselves. A value with braces is in double quotes. Pieces of files
            are put in by ``quote``, so that none of them is taken for an option. A message stays
            as it is, unless another spelling is given.
        spelling: how options are written; by default as at the command line.
    """

    template: str

    def __new__(cls, template: str = "", spelling: Spelling | None = None) -> Message:
        """Spell the options."""
        if isinstance(template, Message):
            if spelling is None:
                return template
            template = template.template
        spelling = spelling or spell_option
        message = super().__new__(
            cls,
            _FIELD.sub(lambda field: spelling(OptionName(field[1], field[2] or "")), template),
        )
        message.template = template
        return message


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
        self.message = Message(message)
        self.path = None if path is None else fspath(path)
        self.line = line
        self.remedy = None if remedy is None else Message(remedy)
        super().__init__(self.message)

    def spell(self, spelling: Spelling) -> None:
        """Spell the options that the error names."""
        self.message = Message(self.message, spelling)
        self.remedy = None if self.remedy is None else Message(self.remedy, spelling)

    @property
    def template(self) -> str:
        """The text with options as fields, for the message of another error."""
        remedy = self.remedy and self.remedy.template
        return self._join(_escape_fields(self.path or ""), self.message.template, remedy)

    def __str__(self) -> str:
        return self._join(self.path or "", self.message, self.remedy)

    def _join(self, place: str, message: str, remedy: str | None) -> str:
        if self.line is not None:
            place += f":{self.line}" if place else f"line {self.line}"
        if len(message) > _LONGEST_MESSAGE:  # a name in it may be as long as the file
            message = f"{message[:_LONGEST_MESSAGE]}..."
        text = f"{place}: {message}" if place else message
        return _UNSEEN.sub(_escape, f"{text}. {remedy}" if remedy else text)


def _escape_fields(text: str) -> str:
    """Escape a hyphen of whatever would name an option in a ``Message``."""
    return text.replace("{--", r"{\x2d-")


def _escape(match: re.Match[str]) -> str:
    """Escape a character that would break the line or control a terminal."""
    return match[0].encode("unicode_escape").decode()


def quote(text: bytes | str) -> str:
    """Quote a piece of a file for a message, cut to a readable length.

    Characters that cannot be printed are escaped, and so is what a ``Message`` would
    take for an option.
    """
    part = text[: 4 * LONGEST_QUOTE]
    if isinstance(part, str):
        part = part.encode("utf-8", "surrogateescape")
    seen = "".join(
        c if c.isprintable() else c.encode("unicode_escape").decode()
        for c in part.decode("utf-8", "backslashreplace")
    )
    seen = f"{seen[:LONGEST_QUOTE]}..." if len(seen) > LONGEST_QUOTE else seen
    return f"'{_escape_fields(seen)}'"
