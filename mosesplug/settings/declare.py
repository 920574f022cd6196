"""Declare settings as metadata of dataclass fields, and list them.

A field of a settings class says everything about the setting: ``nbest: int = setting(100,
help=..., panel=...)``. Command lines, settings files, documentation and checks are generated from
it.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from mosesplug.settings.spellings import list_spellings

__all__ = [
    "PANELS",
    "Kind",
    "Panel",
    "Setting",
    "describe",
    "find_field_types",
    "group",
    "list_compared_values",
    "list_settings",
    "parts",
    "same_as",
    "setting",
]

Kind = Literal["flag", "integer", "real", "text", "path", "choice", "texts", "table"]
"""The type of a setting; ``texts`` are several texts, a ``table`` has values by name."""

Panel = Literal[
    "Data", "Decoder", "Learning", "Online", "Held-out", "Parallel", "Repeats", "Output"
]
PANELS: tuple[Panel, ...] = get_args(Panel)

_SETTING, _GROUP, _PARTS = "setting", "group", "parts"
_Metadata = Mapping[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class Setting:
    """A setting as it was declared.

    Attributes:
        name: on the command line of ``mosesplug tune``, without dashes, and in a settings file.
        help: one line of at most 12 words.
        panel: heading in ``--help``; in lower case, the table of a settings file.
        kind: the type of its value.
        default: value if it is not given; None where that depends on other settings.
        choices: the words of a ``choice``.
        path: attributes that lead to it from the root class; empty if it is read by
            ``settings.build`` only.
        aliases: more spellings, hidden.
        metavar: the name of the value in ``--help``.
        minimum, maximum: bounds of a number.
        above: a limit that a number must exceed; the number must then be finite.
        requires: conditions that must hold if it is given: ``name``, ``name=value``, or several
            of them joined by `` or ``.
        excludes: conditions of the same form that must not hold if it is given.
        script: its spelling in ``mert-moses.pl``; empty if it is not an option of that script.
        script_default: the default of ``mert-moses`` in words, if it differs.
        can_be_abbreviated: whether ``mert-moses`` accepts abbreviations of its name, as for the
            script's options.
        note: differences to the script's option.
        details: the explanation that does not fit into one line.
        default_text: the default in words; empty to show ``tune_default`` or else ``default``.
        tune_default: the default of ``mosesplug tune``, if it differs from ``default``, which is
            that of ``mert-moses`` and of runs that are configured in Python.
        exists: what must exist: a ``file``, ``references``, a ``path`` (a file, directory or pipe),
            the files of ``scores``, of ``features`` (``NAME=FILE``) or of ``weights``, or
            nothing ("").
        what: the value in error messages, as "the input".
        stored_name: its name in the store, if a continued run reports that it changed.
        is_saved: whether ``settings.toml`` of a run holds it.
        is_argument: whether ``--help`` shows it as an argument only.
        second: the setting that takes a second value of this option in ``mosesplug tune``.
    """

    name: str
    help: str
    panel: Panel
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
    script: str = ""
    script_default: str = ""
    can_be_abbreviated: bool = False
    note: str = ""
    details: str = ""
    default_text: str = ""
    tune_default: object = None
    exists: str = ""
    what: str = ""
    stored_name: str = ""
    is_saved: bool = True
    second: str = ""
    is_argument: bool = False

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
        plain = isinstance(default, int | float | str) and not isinstance(default, bool)
        return str(default) if plain else ""


def setting(default: T, **declared: Any) -> T:
    """Return a dataclass field that is a setting.

    Args:
        default: the default value.
        declared: as for ``describe``.
    """
    made: T = field(default=default, metadata=describe(**declared))
    return made


def describe(*, help: str, panel: Panel, **attributes: Any) -> _Metadata:
    """Return the metadata of a field that is a setting without a constant default.

    Args:
        help, panel, attributes: the attributes of ``Setting``. The name is that of the field, with
            dashes, unless it is given. Kind, default and choices come from the field.
    """
    return {_SETTING: Setting(**{"name": "", **attributes}, help=help, panel=panel)}


def same_as(cls: type, name: str, **changes: Any) -> _Metadata:
    """Return the metadata of a field that holds a setting of another class.

    Args:
        cls: the class that declares the setting.
        name: the name of the setting.
        changes: what differs, by the attributes of ``Setting``.
    """
    found = next(each for each in list_settings(cls) if each.name == name)
    return {_SETTING: replace(found, choices=(), path=(), **changes)}


def group(switch: _Metadata | None = None, *, on: str = "") -> _Metadata:
    """Return the metadata of a field that holds a settings class, or None.

    Args:
        switch: the setting that asks for the group, as ``--online``.
        on: name of the setting that asks for it; without any, each of its settings does.
    """
    return {_GROUP: on, **(switch or {})}


def parts(cls: type) -> _Metadata:
    """Return metadata of a field that ``settings.build`` makes of another class."""
    return {_PARTS: cls}


def find_field_types(cls: type) -> Mapping[str, Any]:
    """Return the types of a dataclass's fields.

    They are kept, since each is compiled from its text.
    """
    return _read_field_types(cls)


@cache
def _read_field_types(cls: type) -> Mapping[str, Any]:
    return get_type_hints(cls)


@cache
def list_settings(cls: type) -> tuple[Setting, ...]:
    """Return the settings of a dataclass and of its nested classes, by panel."""
    return tuple(sorted(_walk(cls, (), ()), key=lambda each: PANELS.index(each.panel)))


def _walk(cls: type, path: tuple[str, ...], requires: tuple[str, ...]) -> Iterable[Setting]:
    hints = find_field_types(cls)
    for each in fields(cls):
        own = (*path, each.name)
        mark, hint = each.metadata, _without_none(hints[each.name])
        if _PARTS in mark:
            for part in _walk(mark[_PARTS], (), requires):
                yield replace(part, path=())
        elif _GROUP in mark:
            on = mark[_GROUP]
            if _SETTING in mark:
                switch = _complete(mark[_SETTING], each, bool, own, requires)
                on = switch.name
                yield replace(switch, default=False)
            yield from (
                # What asks for a group does not require it.
                replace(found, requires=tuple(n for n in found.requires if n != found.name))
                for found in _walk(hint, own, (*requires, on) if on else requires)
            )
        elif _SETTING in mark:
            yield _complete(mark[_SETTING], each, hint, own, requires)
        elif isinstance(hint, type) and is_dataclass(hint):
            yield from _walk(hint, own, requires)


def list_compared_values(settings: Any) -> dict[str, str]:
    """Return the settings that results depend on, by their names in the store.

    Those of a group that is None are left out.
    """
    cls: type = type(settings)
    found = {}
    for each in list_settings(cls):
        value = find_value(settings, each.path)
        if each.stored_name and each.path and (value is not None or len(each.path) == 1):
            found[each.stored_name] = str(value)
    return found


def find_value(root: Any, path: Iterable[str]) -> Any:
    """Return the attribute at the end of a path; None if a group on the way is None."""
    for name in path:
        root = None if root is None else getattr(root, name)
    return root


def find_switch(each: Field[Any]) -> str | None:
    """Return the name of the setting that asks for the group in a field.

    Returns:
        "" if any setting of the group asks for it; None if the field holds no group.
    """
    if _GROUP not in each.metadata:
        return None
    switch = each.metadata.get(_SETTING)
    return (
        str(each.metadata[_GROUP])
        if switch is None
        else switch.name or _replace_underscores(each.name)
    )


def _complete(
    found: Setting, each: Field[Any], hint: Any, path: tuple[str, ...], requires: tuple[str, ...]
) -> Setting:
    """Fill in the name, kind, default and choices of the field."""
    kind, choices = _kind(hint)
    default = each.default if each.default_factory is MISSING else each.default_factory()
    return replace(
        found,
        name=found.name or _replace_underscores(each.name),
        kind="choice" if found.choices else kind,
        choices=found.choices or choices,
        default=None if default is MISSING else default,
        path=path,
        requires=(*requires, *found.requires),
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
