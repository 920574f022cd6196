"""Check the form of all docstrings of the package."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
LONGEST = 80
MODULES = [path for folder in ("formats", "mosesplug") for path in (ROOT / folder).rglob("*.py")]


def first_lines(path: Path) -> list[tuple[int, str]]:
    """Return the line number and the first line of every docstring of a module."""
    found = []
    nodes: list[ast.AST] = [ast.parse(path.read_text("utf-8"))]
    for node in nodes:  # which grows: expressions hold no docstrings
        nodes += [
            child
            for child in ast.iter_child_nodes(node)
            if isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case)
        ]
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                found.append((getattr(node, "lineno", 1), text.splitlines()[0]))
    return found


def test_first_lines_are_short() -> None:
    lines = [(path, *line) for path in MODULES for line in first_lines(path)]
    assert len(lines) > 1000
    long = [
        f"{path}:{number}: {len(text)} characters, at most {LONGEST}: {text}"
        for path, number, text in lines
        if len(text) > LONGEST
    ]
    assert not long, "\n".join(long)
