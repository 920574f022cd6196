"""``mosesplug settings``: what can be set, for people and for programs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from mosesplug.errors import UsageError
from mosesplug.settings.checks import suggest
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.declare import list_settings
from mosesplug.settings.document import explain_setting, format_markdown, make_json_schema

__all__ = ["settings"]


def settings(
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="A setting to explain.", show_default=False),
    ] = None,
    schema: Annotated[
        bool, typer.Option("--schema", help="Print the JSON schema of a settings file.")
    ] = False,
    markdown: Annotated[
        bool, typer.Option("--markdown", help="Print the reference of all settings.")
    ] = False,
) -> None:
    """Explain a setting of tune and mert-moses, or print all as TOML.

    The output without arguments is a settings file with all defaults, to be edited and given to
    `mosesplug tune --settings`.
    """
    if name is not None:
        known = {spelling: each for each in list_settings(RunPlan) for spelling in each.spellings}
        wanted = name.lstrip("-")
        if wanted not in known:
            raise UsageError(f"unknown setting {name}{suggest(wanted, known)}")
        typer.echo(explain_setting(known[wanted]), nl=False)
    elif schema:
        typer.echo(json.dumps(make_json_schema(), indent=2))
    elif markdown:
        typer.echo(format_markdown(), nl=False)
    else:
        from mosesplug.settings.toml import format_template

        typer.echo(format_template(), nl=False)
