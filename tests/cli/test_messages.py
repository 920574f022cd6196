"""Messages name options that exist, wherever they are raised."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from mosesplug.cli.shared.commands import load
from mosesplug.cli.table import COMMANDS, CommandGroup
from mosesplug.options import list_options
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.learning import LearningSettings

ROOT = Path(__file__).parents[2]


def option_names() -> set[str]:
    rows = [
        command
        for row in COMMANDS.values()
        for command in (row.commands.values() if isinstance(row, CommandGroup) else [row])
    ]
    classes = [*(load(row.fields) for row in rows), RunPlan, LearningSettings]
    options = [option for cls in classes for option in list_options(cls)]
    names = {name for option in options for name in option.accepted}
    return names | {f"no-{option.name}" for option in options if option.kind == "flag"}


def named_options() -> Iterator[tuple[str, str]]:
    """Yield the place and the name of each option that is a field of a literal."""
    for folder in ("mosesplug", "formats"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            text = path.read_text()
            for node in ast.walk(ast.parse(text)) if "{--" in text else ():
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    fields = (piece.split("}")[0] for piece in node.value.split("{--")[1:])
                    yield from ((f"{path}:{node.lineno}", f.split(" ")[0]) for f in fields if f)


def test_messages_name_options_that_exist() -> None:
    known = option_names()
    named = list(named_options())
    assert len(named) > 200
    assert [(place, name) for place, name in named if name not in known] == []
