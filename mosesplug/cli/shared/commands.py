"""Make commands of declared options.

The options of a command are the fields of a dataclass, which stands in a module that imports
nothing heavy, so that ``--help`` is fast. Each is ``Annotated`` with an ``Opt``, or with
``NestedSettings`` for the options of a settings class. The command's function takes an instance.
"""

from __future__ import annotations

import functools
import importlib
import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
import typer.main

from mosesplug.cli.shared.completion import find_completion
from mosesplug.cli.shared.exits import exit_code
from mosesplug.cli.shared.inputs import check_inputs, find_mark
from mosesplug.cli.shared.layouts import TableOptions
from mosesplug.cli.shared.panels import PanelCommand
from mosesplug.cli.table import TYPER_SETTINGS, Command
from mosesplug.options import Kind, Opt, list_options
from mosesplug.settings.checks import check_given, parse_assignments
from mosesplug.settings.lists import ListSettings

_TYPES: Mapping[Kind, Any] = {
    "flag": bool,
    "integer": int,
    "real": float,
    "path": Path,
    "texts": list[str],
    "table": list[str],
}


@dataclass(frozen=True, eq=False)
class NestedSettings:
    """Marks a field that takes the given values of declared options.

    Attributes:
        make: returns the value of the field for the given values by name.
        has_panels: whether the help has the panels of the options.
        are_negatable: whether each flag has a second form with ``no-``.
    """

    options: tuple[Opt, ...]
    make: Callable[[dict[str, Any]], Any] = dict
    has_panels: bool = True
    are_negatable: bool = True


@functools.cache
def make_command(name: str, entry: Command, *, add_completion: bool = False) -> Any:
    """Return the click command of a row.

    Typer makes the parsers of its options when they are first used, which takes longer than many
    commands. A program that calls a command again, as a notebook does, waits for that once.
    """
    source = load(entry.fields)
    declared = [*inspect.signature(source, eval_str=True).parameters.values()]
    parameters = [parameter for field in declared for parameter in _expand(field)]
    layouts = TableOptions.find(parameters)
    if layouts is not None:
        parameters.insert(layouts.place, layouts.parameter)

    def action(values: dict[str, Any]) -> None:
        # Help needs neither.
        from mosesplug.cli.shared.compiling import note_compiling
        from mosesplug.cli.shared.stdout_files import route_stdout

        check_inputs(parameters, values)
        quiet = any(values.get(name) for name in ("quiet", "quiet_setting", "json"))
        with (
            note_compiling(quiet),
            route_stdout(parameters, values) as routed,
            nullcontext() if layouts is None else layouts.choose(routed),
        ):
            for field in declared:
                if (settings := find_mark(field, NestedSettings)) is not None:
                    routed[field.name] = settings.make(take_values(settings.options, routed))
            options = source(**routed)
            check_given(options)
            load(entry.run)(options)

    def command(**values: Any) -> None:
        code = exit_code(
            "mosesplug", functools.partial(action, values), after_interrupt=entry.after_interrupt
        )
        raise typer.Exit(code)

    command.__doc__ = source.__doc__
    command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    attributes = {"common": getattr(source, "COMMON", ())}
    if hasattr(source, "prepare"):
        attributes["prepare"] = staticmethod(source.prepare)
    loaded = typer.Typer(**{**TYPER_SETTINGS, "add_completion": add_completion})
    loaded.command(
        name,
        cls=type("Command", (PanelCommand,), attributes),
        context_settings=TYPER_SETTINGS["context_settings"],
    )(command)
    return typer.main.get_command(loaded)


def load(place: str) -> Any:
    """Import ``module:name``; a module that begins with a dot is of ``mosesplug.cli``."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module, "mosesplug.cli"), name)


def _expand(field: inspect.Parameter) -> list[inspect.Parameter]:
    """Return the parameters for Typer that take the value of a field."""
    if (settings := find_mark(field, NestedSettings)) is not None:
        return make_parameters(
            settings.options,
            has_panels=settings.has_panels,
            are_negatable=settings.are_negatable,
        )
    hint, option = field.annotation.__origin__, find_mark(field, Opt)
    if option is None:
        raise TypeError(f"{field.name} has no Opt")
    name = option.name or field.name.replace("_", "-")
    # A path names an input unless it says something else.
    exists = option.exists or ("path" if not option.is_output and _has_path(hint) else "")
    declared, option = option, replace(option, name=name, exists=exists)
    has_default = field.default not in (field.empty, None, "")
    common: dict[str, Any] = {
        "metavar": option.metavar or None,
        "help": option.help,
        "autocompletion": option.complete,
        "show_default": option.default_text or has_default,
        "min": option.minimum,
        "max": option.maximum,
    }
    if option.is_positional:
        described = typer.Argument(**common)
    else:
        is_negatable = option.is_negatable or hint == bool | None or field.default is True
        dash = "-" if len(name) == 1 else "--"
        words = [f"--{name}/--no-{name}" if is_negatable else f"{dash}{name}"]
        words += [f"-{option.short}"] if option.short else []
        described = typer.Option(*words, rich_help_panel=option.panel or None, **common)
    keyword = field.replace(kind=inspect.Parameter.KEYWORD_ONLY)
    # What is declared stays, since some options are recognized by it.
    return [keyword.replace(annotation=Annotated[hint, described, option, declared])]


def _has_path(annotation: Any) -> bool:
    return annotation is Path or any(map(_has_path, get_args(annotation)))


def list_setting_options(without: Collection[str] = ()) -> tuple[Opt, ...]:
    """Return the options of reading n-best lists, except some."""
    return tuple(option for option in list_options(ListSettings) if option.name not in without)


def make_parameters(
    options: Iterable[Opt], *, has_panels: bool = True, are_negatable: bool = True
) -> list[inspect.Parameter]:
    """Return a parameter with a Typer option for each option of a settings class.

    Every default is None: what is not given is not among ``take_values``.

    Args:
        are_negatable: whether each flag has a second form with ``no-``.
    """
    options = tuple(options)
    seconds = {option.second for option in options}
    known = {option.name: option for option in options}
    return [
        _make_parameter(option, has_panels, are_negatable, known.get(option.second))
        for option in options
        if option.name not in seconds
    ]


def take_values(options: Iterable[Opt], given: dict[str, Any]) -> dict[str, Any]:
    """Take the values of options out of a command's arguments, by name.

    Raises:
        UsageError: a value of a table is not ``NAME=VALUE``.
    """
    values: dict[str, Any] = {}
    for option in options:
        value = given.pop(_parameter_name(option), None)
        if value is None or value == []:
            continue
        if option.second:
            values[option.name], values[option.second] = map(str, value)
        elif option.kind == "table":
            values[option.name] = parse_assignments(value, f"--{option.name}")
        else:
            values[option.name] = str(value) if isinstance(value, Path) else value
    return values


def _parameter_name(option: Opt) -> str:
    return f"{option.name.replace('-', '_')}_setting"


def _make_parameter(
    option: Opt, has_panel: bool, is_negatable: bool, second: Opt | None
) -> inspect.Parameter:
    words = [f"--{spelling}" for spelling in option.spellings]
    if option.kind == "flag" and (is_negatable or option.default is None):
        words = [f"{word}/--no-{word.removeprefix('--')}" for word in words]
    default = option.shown_default
    described = typer.Option(
        *words,
        metavar=None if option.kind == "flag" else option.metavar or None,
        help=f"{option.help} [{default}]" if default else option.help,
        rich_help_panel=option.panel if has_panel else None,
        show_default=False,
        hidden=option.is_argument,
        autocompletion=find_completion(option),
    )
    kind = tuple[Path, Path] if option.second else _TYPES.get(option.kind, str)
    kind = str if option.is_joined else kind
    if second is not None:
        option = replace(option, exists=(str(option.exists), str(second.exists)))
    return inspect.Parameter(
        _parameter_name(option),
        inspect.Parameter.KEYWORD_ONLY,
        default=None,
        annotation=Annotated[kind | None, described, option],
    )
