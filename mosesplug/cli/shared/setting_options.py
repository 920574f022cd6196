"""Command line options that are generated from declared settings.

Those of reading lists are an example.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from formats.text import StrPath
from mosesplug.cli.shared.completion import find_completion
from mosesplug.cli.shared.inputs import Files
from mosesplug.options import Kind, Opt, list_options
from mosesplug.settings.lists import ListSettings, make_list_settings

__all__ = [
    "add_parameters",
    "make_list_parameters",
    "make_parameters",
    "print_formats",
    "take_list_settings",
    "take_values",
]

_TYPES: Mapping[Kind, Any] = {
    "flag": bool,
    "integer": int,
    "real": float,
    "path": Path,
    "texts": list[str],
    "table": list[str],
}


def make_parameters(settings: Iterable[Opt], *, has_panels: bool = True) -> list[inspect.Parameter]:
    """Return a parameter with a Typer option for each setting.

    Every default is None: what is not given is not among ``take_values``.

    Args:
        settings: the settings.
        has_panels: whether the help has the panels of the settings.
    """
    settings = tuple(settings)
    seconds = {each.second for each in settings}
    known = {each.name: each for each in settings}
    return [
        _parameter(each, has_panels, known.get(each.second))
        for each in settings
        if each.name not in seconds
    ]


def take_values(settings: Iterable[Opt], given: dict[str, Any]) -> dict[str, Any]:
    """Take values of settings out of a command's parameters; return them by name.

    Raises:
        UsageError: a value of a table is not ``NAME=VALUE``.
    """
    values: dict[str, Any] = {}
    for each in settings:
        value = given.pop(_parameter_name(each), None)
        if value is None or value == []:
            continue
        if each.second:
            values[each.name], values[each.second] = map(str, value)
        else:
            values[each.name] = _plain(each, value)
    return values


def _parameter_name(setting: Opt) -> str:
    return f"{setting.name.replace('-', '_')}_setting"


def add_parameters(
    function: Callable[..., None], parameters: Iterable[inspect.Parameter]
) -> Callable[..., None]:
    """Put parameters in the place of ``**given`` of a command."""
    signature = inspect.signature(function, eval_str=True)
    own = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
    keyword_only = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in (*own, *parameters)]

    def command(**values: Any) -> None:
        function(**values)

    command.__doc__ = function.__doc__
    command.__name__ = function.__name__.lstrip("_")
    command.__signature__ = signature.replace(  # type: ignore[attr-defined]
        parameters=keyword_only
    )
    command.__annotations__ = {p.name: p.annotation for p in keyword_only}
    return command


def _parameter(setting: Opt, has_panel: bool, second: Opt | None) -> inspect.Parameter:
    words = [f"--{spelling}" for spelling in setting.spellings]
    if setting.kind == "flag":
        words = [f"{word}/--no-{word.removeprefix('--')}" for word in words]
    default = setting.shown_default
    option = typer.Option(
        *words,
        metavar=None if setting.kind == "flag" else setting.metavar or None,
        help=f"{setting.help} [{default}]" if default else setting.help,
        rich_help_panel=setting.panel if has_panel else None,
        show_default=False,
        hidden=setting.is_argument,
        autocompletion=find_completion(setting),
    )
    kind = tuple[Path, Path] if setting.second else _TYPES.get(setting.kind, str)
    kind = str if setting.is_joined else kind
    kinds = (setting.exists,) if second is None else (setting.exists, second.exists)
    marks = (option, Files(kinds)) if setting.kind == "path" or setting.exists else (option,)
    return inspect.Parameter(
        _parameter_name(setting),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, *marks],
    )


def _plain(setting: Opt, value: Any) -> Any:
    """Return a value of the command line as settings have it."""
    if setting.kind == "table":
        from mosesplug.settings.arguments import parse_assignments

        return parse_assignments(value, f"--{setting.name}")
    return str(value) if isinstance(value, Path) else value


def make_list_parameters(without: Collection[str] = ()) -> list[inspect.Parameter]:
    """Return parameters for the settings of reading lists, except some."""
    settings = [each for each in list_options(ListSettings) if each.name not in without]
    return make_parameters(settings, has_panels=False)


def take_list_settings(given: dict[str, Any]) -> ListSettings:
    """Take the settings of reading lists out of the parameters of a command.

    Raises:
        UsageError: a value cannot be used.
    """
    return make_list_settings(take_values(list_options(ListSettings), given))


def print_formats(files: Sequence[StrPath], settings: ListSettings, *, quiet: bool = False) -> None:
    """Print the formats that were found, where they are not that of Moses.

    Raises:
        FormatError: a file cannot be read, or has no known format.
    """
    if quiet:
        return
    from mosesplug.learning.lists.blocks import describe_formats

    for line in describe_formats(files, settings):
        print(line, file=sys.stderr)
