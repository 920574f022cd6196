"""Declare options as metadata of dataclass fields, and list them.

A field says everything about its option::

    nbest: Annotated[int, Opt("Length of the n-best lists", "Decoder", minimum=1)] = 100

Command lines, Python keywords, settings files, documentation and checks are generated from it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

Kind = Literal["flag", "integer", "real", "text", "path", "choice", "texts", "table"]
"""The type of an option; ``texts`` are several texts, a ``table`` has values by name."""

Panel = Literal[
    "Data", "Decoder", "Learning", "Online", "Held-out", "Parallel", "Repeats", "Output"
]
PANELS: tuple[Panel, ...] = get_args(Panel)

_METAVARS: Mapping[Kind, str] = {"integer": "N", "real": "X", "path": "FILE"}
_LARGEST: Mapping[str, float] = {"integer": 10**6, "real": 1e9}
"""Far beyond useful values of algorithms; products of a few of them are finite."""

Mark = TypeVar("Mark")

_PAIRS = (("heldout", "held-out"), ("refs", "references"))
"""Words that stand for each other in names."""


@dataclass(frozen=True, eq=False)
class Opt:
    """An option of a command, a run, an algorithm or a program, as it was declared.

    Name, kind, default and choices come from the field, unless they are given.

    Attributes:
        help: one line of at most 12 words.
        panel: heading in ``--help``; in lower case, the table of a settings file.
        name: on the command line, without dashes, and in a settings file.
        short: one letter that a single dash precedes.
        kind: the type of its value.
        default: value if it is not given; None where that depends on other options.
        choices: the words of a ``choice``.
        path: attributes that lead to it from the root class; empty if it is read by
            ``settings.build`` only.
        keyword: its name in Python; by default ``name`` with underscores.
        aliases: more spellings, hidden.
        metavar: the name of the value in ``--help``; by default that of its kind.
        minimum, maximum: bounds of a number.
        above: a limit that a number must exceed; the number must then be finite.
        requires: conditions that must hold if it is given: ``name``, ``name=value``, or several
            of them joined by `` or ``.
        excludes: conditions of the same form that must not hold if it is given.
        excludes_because: why, as the message says; empty if that is plain.
        only_with: the condition under which an option of an algorithm has an effect:
            ``name=value|value`` or ``name>other``, where ``other`` is a number or another option.
        presets: for some values of an option of an algorithm, what other options are then, unless
            they are given. They apply where options are read by name
            (``settings.algorithm_options``); a preset may have options that an algorithm lacks.
        source: the paper or program that an option of an algorithm comes from.
        script: its spelling in ``mert-moses.pl``; empty if it is not an option of that script.
        script_default: the default of ``mert-moses`` in words, if it differs.
        can_be_abbreviated: whether ``mert-moses`` accepts abbreviations of its name, as for the
            script's options.
        note: differences to the script's option.
        sets: values of other options that a flag of the script gives.
        is_refused: whether ``mert-moses`` refuses it; ``note`` says why and what to use instead.
        details: the explanation that does not fit into one line.
        default_text: the default in words; empty to show ``tune_default`` or else ``default``.
        tune_default: the default of ``mosesplug tune``, if it differs from ``default``, which is
            that of ``mert-moses`` and of runs that are configured in Python.
        exists: what must exist: a ``file``, ``references``, a ``path`` (a file, directory or pipe),
            the files of ``scores``, of ``features`` (``NAME=FILE``), of a ``monitor`` or of
            ``weights``, or nothing (""). Several words are for several values of one option; the
            first is that of all values but the last ones.
        is_output: whether it names a file or directory that the command may create.
        what: the value in error messages, as "the input".
        stored_name: its name in the store, if a continued run reports that it changed.
        is_saved: whether ``settings.toml`` of a run holds it.
        is_argument: whether ``--help`` shows it as an argument only.
        is_positional: whether it is an argument and no option.
        is_negatable: whether a flag has a second form with ``no-``, as those have whose default is
            not False.
        parse: returns what the text or the texts of a value mean, where a settings class is made;
            raises ``ValueError`` with the text and what is wrong, or a ``UsageError`` that also
            names the option. Parsed values stay.
        complete: returns values that a shell offers.
        second: the option that takes a second value of this one in ``mosesplug tune``.
    """

    help: str
    panel: Panel | Literal[""] = ""
    name: str = ""
    keyword: str = ""
    short: str = ""
    kind: Kind = "text"
    default: object = None
    choices: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    metavar: str = ""
    minimum: float | None = None
    maximum: float | None = None
    above: float | None = None
    requires: tuple[str, ...] = ()
    excludes: tuple[str, ...] = ()
    excludes_because: str = ""
    only_with: str | None = None
    presets: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    source: str = ""
    script: str = ""
    script_default: str = ""
    can_be_abbreviated: bool = False
    note: str = ""
    sets: Mapping[str, object] = field(default_factory=dict)
    is_refused: bool = False
    details: str = ""
    default_text: str = ""
    tune_default: object = None
    exists: str | tuple[str, ...] = ""
    is_output: bool = False
    what: str = ""
    stored_name: str = ""
    is_saved: bool = True
    second: str = ""
    is_argument: bool = False
    is_positional: bool = False
    is_negatable: bool = False
    parse: Callable[[Any], Any] | None = None
    complete: Callable[..., Any] | None = None

    @property
    def spellings(self) -> tuple[str, ...]:
        """All names that it has, its own first."""
        return tuple(dict.fromkeys((self.name, *self.aliases, *filter(None, [self.script]))))

    @property
    def accepted(self) -> tuple[str, ...]:
        """All names under which it is read; not all are documented."""
        more = (spelled for name in self.spellings for spelled in list_spellings(name))
        return tuple(dict.fromkeys((*self.spellings, *more)))

    @property
    def is_joined(self) -> bool:
        """Whether several texts are given as one, with commas between them."""
        return self.kind == "texts" and self.metavar.endswith(",...")

    @property
    def shown_default(self) -> str:
        """The displayed default; empty if there is none."""
        if self.default_text:
            return self.default_text
        default = self.default if self.tune_default is None else self.tune_default
        if default is True:
            return f"on; off with --no-{self.name}"
        plain = isinstance(default, int | float | str) and not isinstance(default, bool)
        return str(default) if plain else ""

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the largest value of a numeric option of an algorithm."""
        largest = _LARGEST[self.kind]
        return (
            -largest if self.minimum is None else self.minimum,
            largest if self.maximum is None else self.maximum,
        )


@dataclass(frozen=True, eq=False)
class OptionGroup:
    """Marks a field that holds a settings class, or None.

    Attributes:
        switch: the option that asks for the group, as ``--online``.
        on: name of the option that asks for it; without any, each of its options does.
    """

    switch: Opt | None = None
    on: str = ""


@dataclass(frozen=True, eq=False)
class Parts:
    """Marks a field that ``settings.build`` makes of the options in another class."""

    cls: type


def same_as(cls: type, name: str, **changes: Any) -> Opt:
    """Return the option of another class, for a field that holds the same.

    Args:
        cls: the class that declares the option.
        name: the name of the option.
        changes: what differs, by the attributes of ``Opt``.
    """
    option = next(option for option in list_options(cls) if option.name == name)
    return replace(option, **{"choices": (), "path": (), **changes})


def find_field_types(cls: type) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields, without their marks."""
    hints = _read_hints(cls)
    return {
        name: hint.__origin__ if get_origin(hint) is Annotated else hint
        for name, hint in hints.items()
    }


@cache
def _read_hints(cls: type) -> Mapping[str, Any]:
    return get_type_hints(cls, include_extras=True)


def _find_mark(cls: type, name: str, kind: type[Mark]) -> Mark | None:
    marks = getattr(_read_hints(cls)[name], "__metadata__", ())
    return next((mark for mark in marks if isinstance(mark, kind)), None)


@cache
def list_options(cls: type) -> tuple[Opt, ...]:
    """Return the options of a dataclass and of its nested classes, by panel."""
    return tuple(sorted(_walk(cls, (), ()), key=_place_panel))


def options_by_field(cls: type) -> dict[str, Opt]:
    """Return the options of a flat dataclass by the names of their fields."""
    return {option.path[0]: option for option in list_options(cls)}


def _place_panel(option: Opt) -> int:
    return PANELS.index(option.panel) if option.panel else len(PANELS)


def _walk(cls: type, path: tuple[str, ...], requires: tuple[str, ...]) -> Iterable[Opt]:
    hints = find_field_types(cls)
    for declared in fields(cls):
        name = declared.name
        own = (*path, name)
        hint = _without_none(hints[name])
        if (made := _find_mark(cls, name, Parts)) is not None:
            yield from (replace(part, path=()) for part in _walk(made.cls, (), requires))
        elif (group := _find_mark(cls, name, OptionGroup)) is not None:
            on = group.on
            if group.switch is not None:
                switch = _complete(group.switch, declared, bool, own, requires)
                on = switch.name
                yield replace(switch, default=False)
            yield from (
                # What asks for a group does not require it.
                replace(option, requires=tuple(n for n in option.requires if n != option.name))
                for option in _walk(hint, own, (*requires, on) if on else requires)
            )
        elif (option := _find_mark(cls, name, Opt)) is not None:
            yield _complete(option, declared, hint, own, requires)
        elif isinstance(hint, type) and is_dataclass(hint):
            yield from _walk(hint, own, requires)


def list_compared_values(settings: Any) -> dict[str, str]:
    """Return the settings that results depend on, by their names in the store.

    Those of a group that is None are left out.
    """
    cls: type = type(settings)
    values = {}
    for option in list_options(cls):
        value = find_value(settings, option.path)
        if option.stored_name and option.path and (value is not None or len(option.path) == 1):
            values[option.stored_name] = str(value)
    return values


def find_value(root: Any, path: Iterable[str]) -> Any:
    """Return the attribute at the end of a path; None if a group on the way is None."""
    for name in path:
        root = None if root is None else getattr(root, name)
    return root


def find_switch(cls: type, name: str) -> str | None:
    """Return the name of the option that asks for the group in a field.

    Returns:
        "" if any option of the group asks for it; None if the field holds no group.
    """
    group = _find_mark(cls, name, OptionGroup)
    if group is None or group.switch is None:
        return None if group is None else group.on
    return group.switch.name or _replace_underscores(name)


def list_spellings(name: str) -> list[str]:
    """Return the other spellings of a name: ``held-out-refs`` of ``heldout-refs``."""
    names = [name]
    for pair in _PAIRS:
        names = [spelled for known in names for spelled in _vary(known, pair)]
    return names[1:]


def _vary(name: str, pair: tuple[str, str]) -> list[str]:
    """Return a name with either of two words in the place of the other."""
    words = f"-{name}-"
    names = [name]
    for one, other in (pair, pair[::-1]):
        if f"-{one}-" in words:
            names.append(words.replace(f"-{one}-", f"-{other}-")[1:-1])
    return names


def _complete(
    option: Opt, declared: Field[Any], hint: Any, path: tuple[str, ...], requires: tuple[str, ...]
) -> Opt:
    """Fill in the name, kind, default and choices of the field."""
    kind, choices = _kind(hint)
    default = (
        declared.default if declared.default_factory is MISSING else declared.default_factory()
    )
    kind = "choice" if option.choices else kind
    option_name = option.name or _replace_underscores(declared.name)
    return replace(
        option,
        name=option_name,
        keyword=option.keyword or option_name.replace("-", "_"),
        kind=kind,
        choices=option.choices or choices,
        metavar=option.metavar or _METAVARS.get(kind, ""),
        default=None if default is MISSING else default,
        path=path,
        requires=(*requires, *option.requires),
    )


def _replace_underscores(name: str) -> str:
    return name.replace("_", "-")


def _without_none(hint: Any) -> Any:
    if get_origin(hint) in (Union, types.UnionType):
        return next(part for part in get_args(hint) if part is not type(None))
    return hint


def _kind(hint: Any) -> tuple[Kind, tuple[str, ...]]:
    """Return what a field of this type holds, and its choices."""
    if get_origin(hint) is Literal:
        return "choice", get_args(hint)
    if get_origin(hint) is tuple:
        return "texts", ()
    if isinstance(get_origin(hint), type) and issubclass(get_origin(hint), Mapping):
        return "table", ()
    kinds: dict[Any, Kind] = {bool: "flag", int: "integer", float: "real", Path: "path"}
    return kinds.get(hint, "text"), ()
