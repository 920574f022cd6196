"""Parse command lines as the libraries behind Moses' programs parse them.

=========  ==============================================================================
getopt     GNU ``getopt_long``: ``-d14``, ``-d 14``, ``-bd`` for ``-b -d``, ``--ntry=5``,
           ``--ntry 5``, unique prefixes of long names, options between other
           arguments, ``--`` as the end of options; if an option is repeated, the last
           value counts
boost      Boost's ``program_options``: same spelling, but only an option with a list of
           values may be repeated
one dash   ``-name value``, whole names only, as in ``megam``; the first argument that is
           not an option ends the options
anywhere   the same, but options may also follow other arguments, as in Travatar
=========  ==============================================================================

A program is a table of its options; parsing, checks and the ``--help`` text are derived from it.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NoReturn

from mosesplug.cli.shared.exits import exit_code
from mosesplug.errors import UsageError, suggest

_HELP_COLUMN = 30
_WIDTH = 98


class Style(Enum):
    """The convention for parsing a command line; see the module docstring."""

    GETOPT = "getopt"
    BOOST = "boost"
    ONE_DASH = "one dash"
    ONE_DASH_ANYWHERE = "anywhere"

    @property
    def is_one_dash(self) -> bool:
        """Whether long names follow a single dash."""
        return self in (Style.ONE_DASH, Style.ONE_DASH_ANYWHERE)


def parse_integer(text: str) -> int:
    """Parse an integer.

    Raises:
        ValueError: the text is not an integer.
    """
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"takes a whole number, not {text!r}") from None


def parse_count(text: str) -> int:
    """Parse an integer that is at least 0.

    Raises:
        ValueError: the text is not one.
    """
    value = parse_integer(text)
    if value < 0:
        raise ValueError(f"must be at least 0, not {value}")
    return value


def parse_real(text: str) -> float:
    """Parse a finite number.

    Raises:
        ValueError: the text is not a finite number.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ValueError(f"takes a number, not {text!r}")
    return value


@dataclass(frozen=True)
class ProgramOption:
    """One option of a program.

    Attributes:
        name: the long name.
        help: the help text for ``--help``.
        short: one letter, or empty.
        value: the placeholder of the value in ``--help``; empty for a flag.
        convert: converts the text of the value. It raises ValueError with a message that completes
            a sentence whose subject is the option.
        default: the value if the option is missing; always False for a flag, ``()`` for a list.
        is_repeatable: whether the option may be repeated; its values form a tuple.
    """

    name: str
    help: str
    short: str = ""
    value: str = ""
    convert: Callable[[str], Any] = str
    default: Any = None
    is_repeatable: bool = False

    @property
    def missing_value(self) -> Any:
        """The value if the option is missing."""
        if self.is_repeatable:
            return ()
        return self.default if self.value else False


@dataclass(frozen=True)
class Program:
    """A program and its command line.

    Attributes:
        name: the program's name.
        summary: one sentence for ``--help``.
        options: all options except ``--help``, which every program has.
        style: the convention for parsing the command line.
        others: the placeholder of the positional arguments in ``--help``; empty if the program
            takes none.
        notes: additional lines for ``--help``.
    """

    name: str
    summary: str
    options: tuple[ProgramOption, ...]
    style: Style = Style.GETOPT
    others: str = ""
    notes: str = ""

    def parse(self, words: Sequence[str]) -> Arguments:
        """Parse a command line.

        Args:
            words: the arguments after the program's name.

        Raises:
            UsageError: an option is unknown or ambiguous, or its value is missing or invalid.
        """
        return _Reading(self, list(words)).arguments()

    def usage(self) -> str:
        """Return the text of ``--help``."""
        dash = "-" if self.style.is_one_dash else "--"
        lines = [f"usage: {self.name} [options] {self.others}".rstrip(), "", self.summary, ""]
        lines.append("options:")
        for option in (*self.options, _help_option(self)):
            spelling = f"  {dash}{option.name}" + (f", -{option.short}" if option.short else "")
            if option.value:
                spelling += f" {option.value}"
            text = option.help
            if option.default is not None:
                text += f" (default {option.default})"
            if option.is_repeatable:
                text += " (may be given several times)"
            lines += _wrap_option(spelling, text)
        return "\n".join([*lines, *(["", self.notes] if self.notes else [])]) + "\n"


@dataclass(frozen=True)
class Arguments:
    """A parsed command line.

    Attributes:
        values: the value of every option by its long name.
        options: ``(long name, value)`` of the options on the command line, in their order.
        others: the positional arguments.
    """

    values: Mapping[str, Any]
    options: tuple[tuple[str, Any], ...] = field(default=())
    others: tuple[str, ...] = field(default=())

    def __getitem__(self, name: str) -> Any:
        return self.values[name]


def run(
    program: Program, action: Callable[[Arguments], None], words: Sequence[str] | None
) -> NoReturn:
    """Parse the command line, call the action and exit; print an error as one line.

    Args:
        program: the program whose command line is parsed.
        action: does the program's work.
        words: the arguments after the program's name; None for those of this process.
    """

    def act() -> None:
        arguments = program.parse(sys.argv[1:] if words is None else words)
        if arguments["help"]:
            print(program.usage(), end="")
        else:
            action(arguments)

    if words is not None:
        sys.exit(exit_code(program.name, act))
    # This short process creates few reference cycles, all in Numba's modules. Garbage collection
    # during their import and at exit would cost a quarter of a second.
    gc.disable()
    code = exit_code(program.name, act)
    gc.freeze()
    sys.exit(code)


def _help_option(program: Program) -> ProgramOption:
    """Return ``--help``, with ``-h`` unless another option has that letter."""
    taken = any(option.short == "h" for option in program.options)
    return ProgramOption("help", "show this text and exit", short="" if taken else "h")


def _wrap_option(left: str, text: str) -> list[str]:
    """Return an option and its help text as wrapped lines."""
    lines: list[str] = []
    line = left.ljust(_HELP_COLUMN)
    if not line.endswith(" "):
        lines, line = [line], " " * _HELP_COLUMN
    for word in text.split():
        if len(line) + len(word) > _WIDTH:
            lines.append(line.rstrip())
            line = " " * _HELP_COLUMN
        line += word + " "
    return [*lines, line.rstrip()]


class _Reading:
    """Parses one command line from left to right."""

    def __init__(self, program: Program, waiting: list[str]) -> None:
        self._program = program
        self._waiting = waiting
        self._options = (*program.options, _help_option(program))
        self._given: list[tuple[str, Any]] = []
        self._others: list[str] = []

    def arguments(self) -> Arguments:
        """Parse all words."""
        one_dash = self._program.style.is_one_dash
        while self._waiting:
            word = self._waiting.pop(0)
            if not word.startswith("-") or word == "-":
                self._others.append(word)
                if self._program.style is Style.ONE_DASH:
                    break
            elif word == "--":
                break
            elif one_dash:
                self._long(word.removeprefix("--").removeprefix("-"), word, abbreviated=False)
            elif word.startswith("--"):
                self._long(word[2:], word, abbreviated=True)
            else:
                self._cluster(word[1:])
        self._others += self._waiting
        values = {option.name: option.missing_value for option in self._options}
        for option in self._options:
            found = [value for name, value in self._given if name == option.name]
            if option.is_repeatable:
                values[option.name] = tuple(found)
            elif found:
                values[option.name] = found[-1]
            if self._program.style is Style.BOOST and len(found) > 1 and not option.is_repeatable:
                raise UsageError(f"--{option.name} is given {len(found)} times: give it once")
        if self._others and not self._program.others and not values["help"]:
            raise UsageError(f"{self._others[0]!r} belongs to no option{self._hint()}")
        return Arguments(values, tuple(self._given), tuple(self._others))

    def _long(self, text: str, word: str, *, abbreviated: bool) -> None:
        """Parse ``--name`` or ``--name=value``."""
        name, equals, value = text.partition("=")
        found = [option for option in self._options if option.name == name]
        if not found and not abbreviated and name:
            found = [option for option in self._options if option.short == name]
        if not found and abbreviated and name:
            found = [option for option in self._options if option.name.startswith(name)]
        if not found:
            known = [f"-{option.name}" for option in self._options]
            similar = "" if abbreviated else suggest(f"-{name}", known)
            raise UsageError(f"unknown option {word.partition('=')[0]}{self._hint()}{similar}")
        if len(found) > 1:
            names = ", ".join(f"--{option.name}" for option in found)
            raise UsageError(f"--{name} may be any of {names}: write the whole name")
        dashes = "--" if abbreviated else "-"
        self._take(found[0], dashes + found[0].name, value if equals else None)

    def _cluster(self, letters: str) -> None:
        """Parse ``-d``, ``-d14`` or ``-bd``; an option with a value takes the rest."""
        while letters:
            letter, letters = letters[0], letters[1:]
            found = [option for option in self._options if option.short == letter]
            if not found:
                raise UsageError(f"unknown option -{letter}{self._hint()}")
            if found[0].value and letters:
                self._take(found[0], f"-{letter}", letters)
                return
            self._take(found[0], f"-{letter}", None)

    def _take(self, option: ProgramOption, spelling: str, text: str | None) -> None:
        """Record an option with its value, which is attached or the next word."""
        if not option.value:
            if text is not None:
                raise UsageError(f"{spelling} takes no value, and {text!r} is one")
            self._given.append((option.name, True))
            return
        if text is None:
            if not self._waiting or self._is_option(self._waiting[0]):
                raise UsageError(f"{spelling} needs a value: {option.value}")
            text = self._waiting.pop(0)
        try:
            self._given.append((option.name, option.convert(text)))
        except ValueError as error:
            raise UsageError(f"{spelling} {error}") from None

    def _is_option(self, word: str) -> bool:
        """Return whether a word that should be a value is an option instead."""
        if self._program.style is not Style.ONE_DASH_ANYWHERE:
            return False
        return word in {f"-{option.name}" for option in self._options}

    def _hint(self) -> str:
        return f" ({self._program.name} --help lists them)"


def split_names(text: str | None) -> list[str]:
    """Split file names at commas, without empty ones."""
    return [name for name in (text or "").split(",") if name]
