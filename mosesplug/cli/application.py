"""The commands of ``mosesplug``; each is imported when it is called."""

from __future__ import annotations

import functools
import importlib
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, NoReturn

import typer
import typer.core
import typer.main

from mosesplug import __version__
from mosesplug.cli.shared.exits import TUNING_CONTINUES, exit_code
from mosesplug.cli.shared.inputs import check_inputs
from mosesplug.cli.shared.panels import PanelCommand
from mosesplug.errors import at_command_line, suggest

__all__ = ["run"]


@dataclass(frozen=True)
class _Command:
    """A command that is not imported yet.

    Attributes:
        module, function: its place.
        help: one line for the list of commands.
        after_interrupt: shown when it is interrupted.
    """

    module: str
    function: str
    help: str
    after_interrupt: str = ""


@dataclass(frozen=True)
class _Group:
    """Commands under one word.

    Attributes:
        help: one line for the list of commands.
        commands: the commands by name.
    """

    help: str
    commands: Mapping[str, _Command]


_Table = Mapping[str, _Command | _Group]

_COMMANDS: _Table = {
    "tune": _Command(
        "mosesplug.cli.run.tune",
        "tune",
        "Tune a system: decode, optimize, repeat, write moses.ini.",
        TUNING_CONTINUES,
    ),
    "ask": _Command(
        "mosesplug.cli.run.ask",
        "ask",
        "Print the weights that a decoder elsewhere must decode with.",
        "The same command continues.",
    ),
    "tell": _Command(
        "mosesplug.cli.run.ask",
        "tell",
        "Store and learn from the n-best list of that decoder.",
        "mosesplug ask continues the run, and prints the weights whose list is missing.",
    ),
    "mert-moses": _Command(
        "mosesplug.cli.run.mert_completion",
        "mert_moses",
        "Tune with the command line of mert-moses.pl.",
    ),
    "settings": _Command(
        "mosesplug.cli.run.settings",
        "settings",
        "Explain a setting of a tuning run, or print all as TOML.",
    ),
    "optimize": _Command(
        "mosesplug.cli.learn.optimize",
        "optimize",
        "Learn weights from existing n-best lists or search graphs.",
    ),
    "algorithms": _Command(
        "mosesplug.cli.learn.algorithms",
        "list_algorithms",
        "List the algorithms, or explain one and its settings.",
    ),
    "cache": _Command(
        "mosesplug.cli.learn.cache",
        "cache",
        "List or remove files that only save time.",
    ),
    "plugins": _Command(
        "mosesplug.cli.learn.plugins",
        "plugins",
        "List what other installed packages add to mosesplug.",
    ),
    "bench-optimizers": _Command(
        "mosesplug.cli.learn.bench_optimizers",
        "bench_optimizers",
        "Compare algorithms on the same n-best lists.",
    ),
    "check": _Command(
        "mosesplug.cli.inspect.check",
        "check",
        "Check a tuning set and its lists before tuning.",
    ),
    "oracle": _Command(
        "mosesplug.cli.inspect.oracle", "oracle", "Find the oracle translations of n-best lists."
    ),
    "mbr": _Command(
        "mosesplug.cli.inspect.mbr", "mbr", "Choose translations by minimum Bayes risk."
    ),
    "rerank": _Command(
        "mosesplug.cli.inspect.rerank",
        "rerank",
        "Choose the best of each n-best list by other weights.",
    ),
    "nbest": _Group(
        "Inspect and maintain the n-best lists of a store.",
        {
            "ls": _Command(
                "mosesplug.cli.inspect.nbest_summary", "ls", "List the iterations of a store."
            ),
            "show": _Command(
                "mosesplug.cli.inspect.nbest_show", "show", "Show the hypotheses of a sentence."
            ),
            "diff": _Command(
                "mosesplug.cli.inspect.nbest_show", "diff", "Compare two hypotheses or iterations."
            ),
            "grep": _Command(
                "mosesplug.cli.inspect.nbest_summary", "grep", "Search texts and features."
            ),
            "stats": _Command(
                "mosesplug.cli.inspect.nbest_summary",
                "stats",
                "Print statistics of features and lists.",
            ),
            "export": _Command(
                "mosesplug.cli.inspect.nbest_store",
                "export",
                "Write n-best lists, arrays or a table.",
            ),
            "import": _Command(
                "mosesplug.cli.inspect.nbest_store", "import_", "Create a store of n-best lists."
            ),
            "verify": _Command(
                "mosesplug.cli.inspect.nbest_store", "verify", "Verify every record."
            ),
            "compact": _Command(
                "mosesplug.cli.inspect.nbest_store", "compact", "Remove free pages."
            ),
            "copy": _Command("mosesplug.cli.inspect.nbest_store", "copy", "Copy a store."),
            "drop": _Command(
                "mosesplug.cli.inspect.nbest_store", "drop", "Remove the newest iteration."
            ),
        },
    ),
    "weights": _Group(
        "Show, compare, combine and convert weights.",
        {
            "show": _Command(
                "mosesplug.cli.inspect.weights",
                "show",
                "Show weights, or those of a run's iterations.",
            ),
            "diff": _Command(
                "mosesplug.cli.inspect.weights", "diff", "Compare two weight vectors."
            ),
            "average": _Command(
                "mosesplug.cli.inspect.weights_make", "average", "Average several weight vectors."
            ),
            "interpolate": _Command(
                "mosesplug.cli.inspect.weights_make",
                "interpolate",
                "Interpolate between two weight vectors.",
            ),
            "normalize": _Command(
                "mosesplug.cli.inspect.weights_make", "normalize", "Divide weights by their norm."
            ),
            "convert": _Command(
                "mosesplug.cli.inspect.weights_make", "convert", "Write weights in another format."
            ),
        },
    ),
    "line": _Command("mosesplug.cli.inspect.line", "line", "Print the score along a line."),
    "score": _Command(
        "mosesplug.cli.inspect.score", "score", "Score a translation by several metrics."
    ),
    "compare": _Command(
        "mosesplug.cli.inspect.compare",
        "compare",
        "Test whether systems differ by more than chance.",
    ),
    "report": _Command(
        "mosesplug.cli.inspect.report", "report", "Write a run's report as one HTML page."
    ),
    "forest": _Group(
        "Search graphs: n-best lists, oracles and statistics.",
        {
            "nbest": _Command(
                "mosesplug.cli.inspect.forest",
                "nbest",
                "Write n-best lists: best, diverse or sampled translations.",
            ),
            "oracle": _Command(
                "mosesplug.cli.inspect.forest",
                "oracle",
                "Print the oracle translations of search graphs.",
            ),
            "info": _Command(
                "mosesplug.cli.inspect.forest", "info", "Count nodes, edges and derivations."
            ),
        },
    ),
    "install-tools": _Command(
        "mosesplug.cli.moses.install",
        "install_tools",
        "Write launchers under the names of other toolkits' programs.",
    ),
    "warm-up": _Command(
        "mosesplug.cli.learn.warm_up",
        "warm_up",
        "Compile inner loops in advance.",
    ),
}


def _listing(table: _Table) -> type[typer.core.TyperGroup]:
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
            if isinstance(entry, _Group):
                return _group(cmd_name, entry)
            module = importlib.import_module(entry.module)
            function = getattr(module, entry.function)
            return _make_command(
                cmd_name, function, entry, getattr(module, "COMMAND_CLASS", PanelCommand)
            )

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            with formatter.section("Commands"):
                formatter.write_dl([(name, entry.help) for name, entry in table.items()])

    return Commands


@functools.cache
def _make_command(
    name: str, function: Callable[..., None], entry: _Command, class_: type[PanelCommand]
) -> Any:
    """Return the command of a function.

    Typer makes the parsers of its options when they are first used, which takes longer than many
    commands. A program that calls a command again, as a notebook does, waits for that once.
    """
    from mosesplug.cli.shared.layouts import add_layout

    loaded = typer.Typer(**_SETTINGS)
    loaded.command(name, cls=class_, context_settings=_SETTINGS["context_settings"])(
        _report_errors(add_layout(function), entry)
    )
    return typer.main.get_command(loaded)


def _group(name: str, group: _Group) -> Any:
    """Return the command that has the commands of a group below it."""
    loaded = typer.Typer(
        name=name, help=group.help, cls=_listing(group.commands), no_args_is_help=True, **_SETTINGS
    )
    loaded.callback()(lambda: None)
    return typer.main.get_command(loaded)


_SETTINGS: dict[str, Any] = {
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["--help", "-h"]},
}

_application = typer.Typer(
    cls=_listing(_COMMANDS), no_args_is_help=True, **{**_SETTINGS, "add_completion": True}
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


def _report_errors(function: Callable[..., None], entry: _Command) -> Callable[..., None]:
    @functools.wraps(function)
    def wrapped(**values: Any) -> None:
        # The list of commands needs none of these.
        from mosesplug.cli.shared.compiling import note_compiling
        from mosesplug.cli.shared.stdout_files import route_stdout

        def action() -> None:
            check_inputs(function, values)
            quiet = any(values.get(name) for name in ("quiet", "quiet_setting", "json"))
            with note_compiling(quiet), route_stdout(function, values) as routed:
                function(**routed)

        raise typer.Exit(exit_code("mosesplug", action, after_interrupt=entry.after_interrupt))

    return wrapped


def run(words: Sequence[str]) -> NoReturn:
    """Run a command and exit.

    Args:
        words: the command line without the program's name.
    """
    command = functools.partial(_application, list(words), prog_name="mosesplug")
    surface = at_command_line.set(True)
    try:
        sys.exit(exit_code("mosesplug", command))
    finally:  # where a test or the documentation calls this
        at_command_line.reset(surface)
