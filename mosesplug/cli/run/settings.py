"""``mosesplug settings``: what can be set, for people and for programs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from mosesplug.cli.shared.completion import complete_setting_names
from mosesplug.errors import UsageError, suggest
from mosesplug.options import list_options, list_spellings
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.document import explain_setting, format_markdown, make_json_schema
from mosesplug.settings.learning import LearningSettings

__all__ = ["settings"]


def settings(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="A setting to explain.",
            show_default=False,
            autocompletion=complete_setting_names,
        ),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of a settings file.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference of all settings.")
    ] = False,
) -> None:
    """Explain a setting, or print those of a run as TOML.

    The output without arguments is a settings file with all defaults, to be edited and given to
    `mosesplug tune --settings`.
    """
    if name is not None:
        typer.echo(_explain(name.lstrip("-")), nl=False)
    elif schema:
        typer.echo(json.dumps(make_json_schema(), indent=2))
    elif markdown:
        typer.echo(format_markdown(), nl=False)
    else:
        from mosesplug.settings.toml import format_template

        typer.echo(format_template(), nl=False)


def _explain(name: str) -> str:
    """Return what is known about a setting of a run, and about that of ``optimize``."""
    of_run, of_optimize = (
        {spelling: each for each in list_options(cls) for spelling in each.spellings}
        for cls in (RunPlan, LearningSettings)
    )
    if name not in of_run and name not in of_optimize:
        known = (other for other in list_spellings(name) if other in of_run or other in of_optimize)
        name = next(known, name)
    if name not in of_run and name not in of_optimize:
        raise UsageError(f"unknown setting {name}{suggest(name, [*of_run, *of_optimize])}")
    texts = []
    if name in of_run:
        texts.append(explain_setting(of_run[name]))
    if name in of_optimize and (name not in of_run or of_run[name].help != of_optimize[name].help):
        texts.append(f"In `mosesplug optimize`:\n\n{explain_setting(of_optimize[name])}")
    return "\n".join(texts)
