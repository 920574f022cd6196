"""``mosesplug settings``: what can be set, for people and for programs."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from mosesplug.errors import UsageError
from mosesplug.settings.checks import did_you_mean
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.declare import declared
from mosesplug.settings.document import explain_setting, json_schema, markdown_page

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
        known = {spelling: each for each in declared(RunPlan) for spelling in each.spellings}
        wanted = name.lstrip("-")
        if wanted not in known:
            raise UsageError(f"unknown setting {name}{did_you_mean(wanted, known)}")
        typer.echo(explain_setting(known[wanted]), nl=False)
    elif schema:
        typer.echo(json.dumps(json_schema(), indent=2))
    elif markdown:
        typer.echo(markdown_page(), nl=False)
    else:
        from mosesplug.settings.toml import settings_template

        typer.echo(settings_template(), nl=False)
