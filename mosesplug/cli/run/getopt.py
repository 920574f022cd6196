"""Read command lines as Perl's Getopt::Long does in its default configuration.

``mert-moses.pl`` is called by scripts that people wrote over many years, with every spelling that
Getopt::Long lets through: one dash or two (or ``+``), any case, unique abbreviations, values after
``=`` or a blank, ``--nofilter-...`` and ``--no-filter-...`` for negatable flags, options among the
positional arguments, ``--`` as the end of options. This is that reading as one pure function.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum

from mosesplug.errors import UsageError, suggest

Value = bool | int | float | str | tuple[str, ...]

_PREFIX = re.compile(r"--|-|\+")
_INTEGER = re.compile(r"[-+]?_*[0-9][0-9_]*\n?")
_REAL = re.compile(r"[-+]?(?=[0-9.])[0-9_]*(\.[0-9_]+)?([eE][-+]?[0-9_]+)?\n?")


class Kind(Enum):
    """The type of an option's value, in the notation of Getopt::Long."""

    FLAG = ""
    NEGATABLE = "!"
    STRING = "=s"
    STRINGS = "=s@"
    INTEGER = "=i"
    REAL = "=f"

    @property
    def takes_value(self) -> bool:
        """Whether a value follows the option."""
        return self not in (Kind.FLAG, Kind.NEGATABLE)


@dataclass(frozen=True)
class Specification:
    """One spelling of an option.

    Attributes:
        name: the spelling in full, lower case.
        means: name of its value in ``CommandLine.values``; empty for its own.
    """

    name: str
    kind: Kind
    means: str = ""

    @property
    def key(self) -> str:
        """The name of its value."""
        return self.means or self.name


@dataclass(frozen=True)
class CommandLine:
    """The options and arguments of a command line.

    Attributes:
        values: canonical name to value; only options that were given. A repeated option keeps its
            last value, one of kind ``STRINGS`` all of them.
        positionals: the other arguments, in their order.
    """

    values: Mapping[str, Value]
    positionals: tuple[str, ...] = field(default=())


@dataclass(frozen=True)
class _Key:
    """The option of a full spelling, and whether the spelling negates it."""

    specification: Specification
    negated: bool = False

    @property
    def meaning(self) -> str:
        """Equal for two spellings with the same meaning, as ``nox`` and ``no-x``."""
        return ("no" if self.negated else "") + self.specification.key


def parse(
    arguments: Sequence[str],
    specifications: Sequence[Specification],
    *additions: Sequence[Specification],
) -> CommandLine:
    """Read a command line.

    Args:
        additions: more options. Those of a sequence are looked up only if no option of an earlier
            one begins with the typed letters, so they never make an old abbreviation ambiguous.

    Raises:
        UsageError: every complaint, in Getopt::Long's words, joined by ``; ``.
    """
    tables = [_spellings(options) for options in (specifications, *additions)]
    waiting = list(arguments)
    values: dict[str, Value] = {}
    positionals: list[str] = []
    complaints: list[str] = []
    while waiting:
        argument = waiting.pop(0)
        if argument == "--":
            positionals += waiting
            break
        prefix = _PREFIX.match(argument)
        if prefix is None or argument == "-":
            positionals.append(argument)
            continue
        typed, equals, attached = _split_value(argument[prefix.end() :])
        try:
            name, key = _look_up(typed, prefix.group(), tables)
            value = _value_of(name, key, attached if equals else None, waiting)
        except _Complaint as complaint:
            complaints.append(str(complaint))
            continue
        canonical = key.specification.key
        if key.specification.kind is Kind.STRINGS:
            earlier = values.get(canonical, ())
            value = (*(earlier if isinstance(earlier, tuple) else ()), str(value))
        values[canonical] = value
    if complaints:
        raise UsageError("; ".join(complaints))
    return CommandLine(values, tuple(positionals))


class _Complaint(Exception):
    """An error in the command line; all errors are reported together."""


def _spellings(specifications: Sequence[Specification]) -> dict[str, _Key]:
    """Return the options by their full spellings."""
    table: dict[str, _Key] = {}
    for specification in specifications:
        table[specification.name] = _Key(specification)
        if specification.kind is Kind.NEGATABLE:
            for negation in ("no", "no-"):
                table[negation + specification.name] = _Key(specification, negated=True)
    return table


def _split_value(text: str) -> tuple[str, bool, str]:
    """Split ``name=value``; a ``=`` at the beginning belongs to the name."""
    position = text.find("=", 1)
    if position < 0:
        return text, False, ""
    return text[:position], True, text[position + 1 :]


def _look_up(typed: str, prefix: str, tables: Sequence[Mapping[str, _Key]]) -> tuple[str, _Key]:
    """Return the full spelling of a typed name, and its option."""
    wanted = typed.lower()
    if not wanted:
        raise _Complaint(f"Missing option after {prefix}")
    for table in tables:
        hits = sorted(spelling for spelling in table if spelling.startswith(wanted))
        if not hits:
            continue
        if wanted in table:
            return wanted, table[wanted]
        if len({table[hit].meaning for hit in hits}) > 1:
            raise _Complaint(f"Option {wanted} is ambiguous ({', '.join(hits)})")
        return hits[0], table[hits[0]]
    hint = suggest(wanted, [spelling for table in tables for spelling in table])
    raise _Complaint(f"Unknown option: {wanted}{hint}")


def _value_of(name: str, key: _Key, attached: str | None, waiting: list[str]) -> Value:
    """Return the value after ``=``, or else take it from the front of ``waiting``."""
    kind = key.specification.kind
    if not kind.takes_value:
        if attached is not None:
            raise _Complaint(f"Option {name} does not take an argument")
        return not key.negated
    if attached == "" or (attached is None and not waiting):
        raise _Complaint(f"Option {name} requires an argument")
    text = waiting.pop(0) if attached is None else attached
    if kind is Kind.INTEGER:
        if not _INTEGER.fullmatch(text):
            raise _Complaint(f'Value "{text}" invalid for option {name} (number expected)')
        return int(text.replace("_", ""))
    if kind is Kind.REAL:
        digits = text.replace("_", "")
        try:
            if _REAL.fullmatch(text):
                return float(digits)
        except ValueError:
            pass
        raise _Complaint(f'Value "{text}" invalid for option {name} (real number expected)')
    return text
