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

The options of a program are the fields of a dataclass; parsing, checks and the ``--help`` text are
derived from them.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Annotated, Any, Generic, NoReturn, TypeVar

from mosesplug.cli.shared.exits import exit_code
from mosesplug.errors import OptionName, UsageError, spell_option, suggest
from mosesplug.options import Opt, list_options
from mosesplug.settings.checks import check_settings

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


def parse_real(text: str) -> float:
    """Parse a finite number."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise ValueError(f"takes a number, not {text!r}")
    return value


def parse_value(option: Opt, text: str) -> Any:
    """Return the value of an option.

    Raises:
        ValueError: with a message that completes a sentence whose subject is the option.
    """
    if option.kind == "real":
        return parse_real(text)
    if option.kind == "choice" and text not in option.choices:
        *others, last = option.choices
        raise ValueError(f"takes {', '.join(others)} or {last}, not {text!r}")
    if option.kind != "integer":
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"takes a whole number, not {text!r}") from None


@dataclass(frozen=True, kw_only=True)
class ProgramArguments:
    """A parsed command line; subclasses declare the options of a program.

    An option with a tuple of texts may be repeated.

    Attributes:
        given: ``(long name, value)`` of the options on the command line, in their order.
    """

    help: Annotated[bool, Opt("show this text and exit")] = False
    others: tuple[str, ...] = field(default=())
    given: tuple[tuple[str, Any], ...] = field(default=())


Parsed = TypeVar("Parsed", bound=ProgramArguments)


@dataclass(frozen=True)
class Program(Generic[Parsed]):
    """A program and its command line.

    Attributes:
        summary: one sentence for ``--help``.
        style: the convention for parsing the command line.
        others: the placeholder of the positional arguments in ``--help``; empty if the program
            takes none.
        notes: additional lines for ``--help``.
        more: options whose values are only in ``given``.
    """

    name: str
    summary: str
    cls: type[Parsed]
    style: Style = Style.GETOPT
    others: str = ""
    notes: str = ""
    more: tuple[Opt, ...] = ()

    @property
    def options(self) -> tuple[Opt, ...]:
        """All options, ``--help`` last, with ``-h`` unless another option has that letter."""
        cls: type = self.cls
        shown, *options = *list_options(cls), *self.more  # a base class' fields come first
        taken = any(option.short == "h" for option in options)
        return (*options, replace(shown, short="" if taken else "h"))

    def parse(self, words: Sequence[str]) -> Parsed:
        """Parse a command line.

        Raises:
            UsageError: an option is unknown or ambiguous, its value is missing or invalid, or
                options exclude each other.
        """
        reading = _Reading(self, list(words), parse_value)
        reading.read()
        parsed: dict[str, Any] = {}
        for option in self.options:
            occurrences = [value for name, value in reading.given if name == option.name]
            if self.style is Style.BOOST and len(occurrences) > 1 and option.kind != "texts":
                raise UsageError(f"--{option.name} is given {len(occurrences)} times: give it once")
            if occurrences:
                is_list = option.kind == "texts"
                parsed[option.name] = tuple(occurrences) if is_list else occurrences[-1]
        if not parsed.get("help"):
            if reading.others and not self.others:
                raise UsageError(f"{reading.others[0]!r} belongs to no option{reading.hint()}")
            check_settings(self.options, parsed)
        fields = ((option.path, option.name) for option in self.options if option.name in parsed)
        values = {path[0]: parsed[name] for path, name in fields if path}
        return self.cls(**values, others=tuple(reading.others), given=tuple(reading.given))

    def split(self, words: Sequence[str]) -> list[tuple[str, Any]]:
        """Return the options of a command line with the texts of their values.

        Every option may be repeated. A flag has the value True.

        Raises:
            UsageError: an option is unknown or ambiguous, its value is missing, or there are
                other arguments.
        """
        reading = _Reading(replace(self, style=Style.GETOPT), list(words), lambda _, text: text)
        reading.read()
        if reading.others:
            raise UsageError(f"{reading.others[0]!r} belongs to no option{reading.hint()}")
        return reading.given

    def spell(self, option: OptionName) -> str:
        """Return an option as its command line has it."""
        spelled = spell_option(option)
        return spelled[1:] if self.style.is_one_dash else spelled

    def usage(self) -> str:
        """Return the text of ``--help``."""
        dash = "-" if self.style.is_one_dash else "--"
        lines = [f"usage: {self.name} [options] {self.others}".rstrip(), "", self.summary, ""]
        lines.append("options:")
        for option in self.options:
            spelling = f"  {dash}{option.name}" + (f", -{option.short}" if option.short else "")
            text = option.help
            if option.kind == "texts":
                text += " (may be given several times)"
            elif option.kind != "flag" and option.default not in (None, ""):
                text += f" (default {option.default})"
            spelling += "" if option.kind == "flag" else f" {option.metavar}"
            lines += _wrap_option(spelling, text)
        return "\n".join([*lines, *(["", self.notes] if self.notes else [])]) + "\n"


def run(
    program: Program[Parsed], action: Callable[[Parsed], None], words: Sequence[str] | None
) -> NoReturn:
    """Parse the command line, call the action and exit; print an error as one line.

    Args:
        words: the arguments after the program's name; None for those of this process.
    """

    def act() -> None:
        arguments = program.parse(sys.argv[1:] if words is None else words)
        if arguments.help:
            print(program.usage(), end="")
        else:
            action(arguments)

    if words is not None:
        sys.exit(exit_code(program.name, act, spelling=program.spell))
    # This short process creates few reference cycles, all in Numba's modules. Garbage collection
    # during their import and at exit would cost a quarter of a second.
    gc.disable()
    code = exit_code(program.name, act, spelling=program.spell)
    gc.freeze()
    sys.exit(code)


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

    def __init__(
        self, program: Program[Any], waiting: list[str], convert: Callable[[Opt, str], Any]
    ) -> None:
        self._program = program
        self._waiting = waiting
        self._convert = convert
        self._options = program.options
        self.given: list[tuple[str, Any]] = []
        self.others: list[str] = []

    def read(self) -> None:
        """Parse all words."""
        one_dash = self._program.style.is_one_dash
        while self._waiting:
            word = self._waiting.pop(0)
            if not word.startswith("-") or word == "-":
                self.others.append(word)
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
        self.others += self._waiting

    def _long(self, text: str, word: str, *, abbreviated: bool) -> None:
        """Parse ``--name`` or ``--name=value``."""
        name, equals, value = text.partition("=")
        matching = [option for option in self._options if option.name == name]
        if not matching and not abbreviated and name:
            matching = [option for option in self._options if option.short == name]
        if not matching and abbreviated and name:
            matching = [option for option in self._options if option.name.startswith(name)]
        if not matching:
            known = [f"-{option.name}" for option in self._options]
            similar = "" if abbreviated else suggest(f"-{name}", known)
            raise UsageError(f"unknown option {word.partition('=')[0]}{self.hint()}{similar}")
        if len(matching) > 1:
            names = ", ".join(f"--{option.name}" for option in matching)
            raise UsageError(f"--{name} may be any of {names}: write the whole name")
        dashes = "--" if abbreviated else "-"
        self._take(matching[0], dashes + matching[0].name, value if equals else None)

    def _cluster(self, letters: str) -> None:
        """Parse ``-d``, ``-d14`` or ``-bd``; an option with a value takes the rest."""
        while letters:
            letter, letters = letters[0], letters[1:]
            matching = [option for option in self._options if option.short == letter]
            if not matching:
                raise UsageError(f"unknown option -{letter}{self.hint()}")
            if matching[0].kind != "flag" and letters:
                self._take(matching[0], f"-{letter}", letters)
                return
            self._take(matching[0], f"-{letter}", None)

    def _take(self, option: Opt, spelling: str, text: str | None) -> None:
        """Record an option with its value, which is attached or the next word."""
        if option.kind == "flag":
            if text is not None:
                raise UsageError(f"{spelling} takes no value, and {text!r} is one")
            self.given.append((option.name, True))
            return
        if text is None:
            if not self._waiting or self._is_option(self._waiting[0]):
                raise UsageError(f"{spelling} needs a value: {option.metavar}")
            text = self._waiting.pop(0)
        try:
            self.given.append((option.name, self._convert(option, text)))
        except ValueError as error:
            raise UsageError(f"{spelling} {error}") from None

    def _is_option(self, word: str) -> bool:
        """Return whether a word that should be a value is an option instead."""
        if self._program.style is not Style.ONE_DASH_ANYWHERE:
            return False
        return word in {f"-{option.name}" for option in self._options}

    def hint(self) -> str:
        return f" ({self._program.name} --help lists them)"


def split_names(text: str | None) -> list[str]:
    """Split file names at commas, without empty ones."""
    return [name for name in (text or "").split(",") if name]
