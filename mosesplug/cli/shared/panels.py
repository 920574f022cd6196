"""Format the help of a command: options in panels, one per line if it fits."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from mosesplug.options import PANELS, list_spellings
from mosesplug.settings.spellings import spell_range

_WIDTH = 80
_LEFT = 29
"""Columns for an option and its value; help of a longer one begins on the next line."""


class PanelCommand(typer.core.TyperCommand):
    """A command whose options are listed by panel, in lines of at most 80 columns.

    Attributes:
        common: names of the options that ``--help`` shows, without dashes; ``--help-all`` shows
            all. Empty: ``--help`` shows all.
        prepare: changes the words of the command line, given the spellings of all options.
    """

    common: Collection[str] = ()
    prepare: Callable[[Sequence[str], Iterable[str]], Sequence[str]] | None = None

    def __init__(self, *arguments: Any, **keywords: Any) -> None:
        super().__init__(*arguments, **keywords)
        own = {name for param in self.params for name in (*param.opts, *param.secondary_opts)}
        self._documented = frozenset(own)
        for param in self.params:
            if param.param_type_name == "option":
                param.opts += _respell(param.opts, own)
                param.secondary_opts += _respell(param.secondary_opts, own)
        if self.common:
            self.params.append(_make_help_all())
            self._documented |= {"--help-all"}

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse a command line; an option of two numbers takes them as a range, too."""
        pairs = {name for param in self.params if param.metavar == _PAIR for name in param.opts}
        if self.prepare is not None:
            params = self.get_params(ctx)
            own = [name for param in params for name in (*param.opts, *param.secondary_opts)]
            args = list(self.prepare(args, own))
        words: list[str] = []
        for word in args:
            ends = spell_range(word).split(":")
            is_pair = words and words[-1] in pairs and len(ends) == 2 and all(ends)
            words += ends if is_pair else [word]
        parsed: list[str] = super().parse_args(ctx, words)
        return parsed

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Offer the options in the spelling that is documented."""
        items: list[Any] = super().shell_complete(ctx, incomplete)
        return [item for item in items if item.value in self._documented or item.value[:2] != "--"]

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        panels |= {title: [] for title in PANELS}
        left_out = 0
        for parameter in self.get_params(ctx):
            record = _record(parameter, ctx)
            if record is None:
                continue
            if not self._is_shown(parameter, ctx):
                left_out += 1
                continue
            panel = getattr(parameter, "rich_help_panel", None) or (
                "Arguments" if parameter.param_type_name == "argument" else "Options"
            )
            panels.setdefault(panel, []).append(record)
        if any(panels[title] for title in PANELS):
            panels["Output"] += panels.pop("Options", [])
        for panel, records in panels.items():
            if not records:
                continue
            formatter.write(f"\n{panel}:\n")
            formatter.write(format_options(records))
        if left_out:
            formatter.write(f"\n{left_out} more options: {ctx.command_path} --help-all\n")

    def _is_shown(self, parameter: Any, ctx: Any) -> bool:
        if not self.common or parameter.param_type_name == "argument" or ctx.meta.get(_ALL):
            return True
        names = {name.lstrip("-") for name in parameter.opts}
        return not names.isdisjoint({*self.common, "help", "help-all"})


_ALL = "mosesplug.help-all"
_PAIR = "A B"
"""Name of a value that is two numbers."""


def _help_all(
    help_all: Annotated[
        bool, typer.Option("--help-all", is_eager=True, help="Show all options and exit.")
    ] = False,
) -> None:
    """Stand for a command that has only this option."""


def _make_help_all() -> Any:
    """Return the option that shows all options."""

    def show(ctx: Any, parameter: Any, wanted: bool) -> None:
        if wanted and not ctx.resilient_parsing:
            ctx.meta[_ALL] = True
            typer.echo(ctx.get_help())
            ctx.exit()

    loaded = typer.Typer(add_completion=False)
    loaded.command()(_help_all)
    command: Any = typer.main.get_command(loaded)
    [option] = (param for param in command.params if param.name == "help_all")
    option.callback, option.expose_value = show, False
    return option


def _respell(names: Iterable[str], own: Collection[str]) -> list[str]:
    """Return more spellings of options; they are accepted and not shown."""
    more = []
    for name in names:
        if name.startswith("--"):
            more += [f"--{word}" for word in list_spellings(name[2:]) if f"--{word}" not in own]
    return more


def format_options(records: Iterable[tuple[str, str]]) -> str:
    """Return options and their help in two columns."""
    import textwrap

    lines = []
    for option, text in records:
        wrapped = textwrap.wrap(
            text, _WIDTH - _LEFT, break_on_hyphens=False, break_long_words=False
        ) or [""]
        head = f"  {option}"
        if len(head) >= _LEFT:
            lines.append(head)
        else:
            lines.append(f"{head:{_LEFT}}{wrapped.pop(0)}".rstrip())
        lines += [f"{'':{_LEFT}}{line}" for line in wrapped]
    return "".join(f"{line}\n" for line in lines)


_METAVARS = {"int": "N", "float": "X", "path": "FILE", "list[path]": "FILE"}
"""Names of values by the first word of their type, where an option has no other."""


def _record(parameter: Any, ctx: Any) -> tuple[str, str] | None:
    """Return an option as it is spelled, and its help."""
    record: tuple[str, str] | None = parameter.get_help_record(ctx)
    if record is None:
        return None
    if parameter.param_type_name == "argument":
        return str(parameter.metavar or record[0].partition(" <")[0]), record[1]
    first = next((word for word in parameter.opts if word.startswith("--")), parameter.opts[0])
    words = [first, *(word for word in parameter.opts if len(word) == 2 and word != first)]
    if parameter.default is not None:
        words += parameter.secondary_opts[:1]
    metavar = "" if parameter.is_flag else parameter.metavar or _name_value(record[0])
    return f"{', '.join(words)} {metavar}".rstrip(), record[1]


def _name_value(record: str) -> str:
    """Return the name of an option's value: choices, or by the shown type."""
    kind = re.sub(r".*(^|\s)-[\w-]+\s+", "", record).strip("<>")
    return kind if "|" in kind else _METAVARS.get(kind.lower().partition(" ")[0], "TEXT")
