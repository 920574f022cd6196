"""The commands of ``mosesplug``; each is imported when it is called."""

from __future__ import annotations

import functools
import logging
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
import typer.core
import typer.main

from mosesplug.cli.shared.exits import exit_code
from mosesplug.cli.table import COMMANDS, MERT_MOSES, TYPER_SETTINGS, Command, CommandGroup, Table
from mosesplug.errors import suggest
from mosesplug.version import __version__


def _listing(table: Table) -> type[typer.core.TyperGroup]:
    """Return the class of a group that has these commands.

    A command is imported when it is called; its help line needs no import.
    """

    class Commands(typer.core.TyperGroup):
        def list_commands(self, ctx: Any) -> list[str]:
            """Return the names, in the order of the table."""
            return list(table)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """Import a command, and report its errors as those of every command."""
            entry = table.get(cmd_name)
            if entry is None:
                if (hint := suggest(cmd_name, table)) and not ctx.resilient_parsing:
                    ctx.fail(f"No such command {cmd_name!r}{hint}")
                return None
            if isinstance(entry, CommandGroup):
                return _group(cmd_name, entry)
            return _make_command(cmd_name, entry)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, entry.help) for name, entry in table.items()])

    return Commands


def _make_command(name: str, entry: Command, *, add_completion: bool = False) -> Any:
    # The list of commands does not need it.
    from mosesplug.cli.shared.commands import make_command

    return make_command(name, entry, add_completion=add_completion)


def _group(name: str, group: CommandGroup) -> Any:
    """Return the command that has the commands of a group below it."""
    loaded = typer.Typer(
        name=name,
        help=group.help,
        cls=_listing(group.commands),
        no_args_is_help=True,
        **TYPER_SETTINGS,
    )
    loaded.callback()(lambda: None)
    return typer.main.get_command(loaded)


_application = typer.Typer(
    cls=_listing(COMMANDS), no_args_is_help=True, **{**TYPER_SETTINGS, "add_completion": True}
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"mosesplug {__version__}")
        raise typer.Exit


@_application.callback()
def _mosesplug(
    version: Annotated[
        bool,
        typer.Option(
            "--version", help="Show the version and exit.", callback=_show_version, is_eager=True
        ),
    ] = False,
) -> None:
    """Tune the log-linear weights of Moses-style decoders."""


def complete_mert_moses(words: Sequence[str]) -> NoReturn:
    """Reply to a shell that completes ``mert-moses``, or install that, and exit."""
    command = _make_command("mert-moses", MERT_MOSES, add_completion=True)
    command(list(words), prog_name="mert-moses")
    raise SystemExit(0)


def run(words: Sequence[str]) -> NoReturn:
    """Run a command and exit.

    Args:
        words: the command line without the program's name.
    """
    command = functools.partial(_application, list(words), prog_name="mosesplug")
    log = logging.getLogger("mosesplug")
    log.disabled = True  # commands print what calls from Python log
    try:
        sys.exit(exit_code("mosesplug", command))
    finally:  # where a test or the documentation calls this
        log.disabled = False
