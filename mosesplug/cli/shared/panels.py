"""Help texts whose options stand in panels."""

from __future__ import annotations

from typing import Any

import typer.core

__all__ = ["PanelCommand"]


class PanelCommand(typer.core.TyperCommand):
    """A command whose help lists its options under the names of their ``rich_help_panel``."""

    def format_options(self, ctx: Any, formatter: Any) -> None:
        """Write the arguments, the panels in the order of their first option, and the rest."""
        panels: dict[str, list[tuple[str, str]]] = {"Arguments": []}
        rest = []
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is None:
                continue
            if parameter.param_type_name == "argument":
                panels["Arguments"].append(record)
            elif title := getattr(parameter, "rich_help_panel", None):
                panels.setdefault(title, []).append(record)
            else:
                rest.append(record)
        for title, records in {**panels, "Options": rest}.items():
            if records:
                with formatter.section(title):
                    formatter.write_dl(records)
