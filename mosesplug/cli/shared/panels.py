"""Format the help of a command: options in panels, one per line if it fits."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import typer.core

from mosesplug.settings.declare import PANELS

__all__ = ["PanelCommand", "format_options"]

_WIDTH = 80
_LEFT = 29
"""Columns for an option and its value; help of a longer one begins on the next line."""


class PanelCommand(typer.core.TyperCommand):
    """A command whose options are listed by panel, in lines of at most 80 columns."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write arguments and options."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        panels |= {title: [] for title in PANELS}
        for parameter in self.get_params(ctx):
            record = _record(parameter, ctx)
            if record is not None:
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


def format_options(records: Iterable[tuple[str, str]]) -> str:
    """Return options and their help in two columns."""
    import textwrap

    lines = []
    for option, text in records:
        wrapped = textwrap.wrap(text, _WIDTH - _LEFT, break_on_hyphens=False) or [""]
        head = f"  {option}"
        if len(head) >= _LEFT:
            lines.append(head)
        else:
            lines.append(f"{head:{_LEFT}}{wrapped.pop(0)}".rstrip())
        lines += [f"{'':{_LEFT}}{line}" for line in wrapped]
    return "".join(f"{line}\n" for line in lines)


def _record(parameter: Any, ctx: Any) -> tuple[str, str] | None:
    """Return an option as it is spelled, and its help."""
    record: tuple[str, str] | None = parameter.get_help_record(ctx)
    if parameter.param_type_name == "argument" or record is None:
        return record
    words = [parameter.opts[0], *(word for word in parameter.opts[1:] if len(word) == 2)]
    if parameter.default is not None:
        words += parameter.secondary_opts
    metavar = "" if parameter.is_flag else parameter.metavar or record[0].rpartition(" ")[2]
    return f"{', '.join(words)} {metavar}".rstrip(), record[1]
