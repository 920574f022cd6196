"""Reads the matrix of short runs, ``matrix.txt``.

A row is a name, and below it, indented, command lines that run one after the other in a directory
with the inputs that ``running.lay_out`` writes. Words in capitals stand for what the head of the
file defines; ``{here}`` is the directory. A command that begins with ``~`` prints prose or a table
for people: of its stdout only the numbers are compared. ``!N`` before a command is the exit code
that it must end with, else 0. ``< NAME TEXT`` makes a further input file.

Options keep the oldest spelling that is valid, so that the rows run with old commits, too.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatch
from pathlib import Path

__all__ = ["Command", "Row", "matching_rows", "read_rows"]

_MATRIX = Path(__file__).with_name("matrix.txt")
_DEFINED = re.compile(r"\b[A-Z][A-Z_]+\b")
_COMMAND = re.compile(r"(?P<loose>~?)(?:!(?P<code>\d) )? *(?P<line>.*)")


@dataclass(frozen=True)
class Command:
    """A command line.

    Attributes:
        words: the program and its arguments.
        code: the exit code that is expected.
        exact: whether stdout is compared byte for byte, or only the numbers in it.
    """

    words: tuple[str, ...]
    code: int = 0
    exact: bool = True


@dataclass(frozen=True)
class Row:
    """A row of the matrix.

    Attributes:
        name: unique; letters, digits, ``-``.
        commands: run in this order.
        files: more inputs by name.
    """

    name: str
    commands: tuple[Command, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)


def read_rows(path: Path = _MATRIX) -> list[Row]:
    """Read the matrix."""
    definitions: dict[str, str] = {}
    rows: dict[str, tuple[list[Command], dict[str, str]]] = {}
    name = ""

    def expanded(text: str) -> str:
        return _DEFINED.sub(lambda found: definitions.get(found[0], found[0]), text)

    for line in path.read_text().splitlines():
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if line.startswith(" "):
            commands, files = rows[name]
            if text.startswith("< "):
                file, _, content = text[2:].partition(" ")
                files[file] = content.replace("\\n", "\n")
            else:
                commands.append(_command(expanded(text)))
        elif " = " in text:
            key, _, value = text.partition(" = ")
            definitions[key] = expanded(value)
        elif text in rows:
            raise ValueError(f"{path}: two rows are called {text}")
        else:
            name = text
            rows[name] = [], {}
    return [Row(name, tuple(commands), files) for name, (commands, files) in rows.items()]


def _command(text: str) -> Command:
    found = _COMMAND.fullmatch(text)
    assert found is not None
    return Command(tuple(shlex.split(found["line"])), int(found["code"] or 0), not found["loose"])


def matching_rows(patterns: list[str]) -> list[Row]:
    """The rows whose names match any pattern; all without patterns."""
    return [
        row for row in read_rows() if any(fnmatch(row.name, each) for each in patterns or ["*"])
    ]
