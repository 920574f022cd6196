"""The options of ``mert-moses`` for Typer, so that a shell completes them.

``mert-moses`` itself reads its command line as Perl does.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Annotated, Any, NoReturn

import typer

from mosesplug.cli.run.getopt import Kind
from mosesplug.cli.run.mert_options import ScriptOption, list_additions, list_script_options
from mosesplug.cli.shared.completion import find_completion
from mosesplug.cli.shared.setting_options import add_parameters
from mosesplug.options import list_options
from mosesplug.settings.configuration import RunPlan

__all__ = ["complete", "mert_moses"]

_TYPES: dict[Kind, Any] = {
    Kind.FLAG: bool,
    Kind.NEGATABLE: bool,
    Kind.STRINGS: list[str],
}


def _mert_moses(
    files: Annotated[
        list[str] | None, typer.Argument(metavar="INPUT REFS DECODER CONFIG", show_default=False)
    ] = None,
    **given: Any,
) -> None:
    """Tune with the command line of mert-moses.pl."""


def _make_parameters() -> Iterator[inspect.Parameter]:
    settings = {each.name: each for each in list_options(RunPlan)}
    options = (*list_script_options(), *list_additions())
    for option in options:
        if option.name == "help" or option.is_refused:
            continue
        setting = settings.get(option.setting)
        yield inspect.Parameter(
            f"{option.name.replace('-', '_')}_option",
            inspect.Parameter.KEYWORD_ONLY,
            default=None,
            annotation=Annotated[
                _TYPES.get(option.kind, str) | None,
                typer.Option(
                    *_spell(option),
                    help=option.help,
                    autocompletion=None if setting is None else find_completion(setting),
                ),
            ],
        )


def _spell(option: ScriptOption) -> list[str]:
    name = f"--{option.name}"
    return [f"{name}/--no-{option.name}"] if option.kind is Kind.NEGATABLE else [name]


mert_moses = add_parameters(_mert_moses, _make_parameters())


def complete(words: list[str]) -> NoReturn:
    """Reply to a shell, or install its completion, and exit."""
    from mosesplug.cli.shared.panels import PanelCommand

    application = typer.Typer(rich_markup_mode=None, pretty_exceptions_enable=False)
    application.command("mert-moses", cls=PanelCommand)(mert_moses)
    application(words, prog_name="mert-moses")
    raise SystemExit(0)
