"""The notebooks of the manual run from top to bottom, and are kept without output."""

from __future__ import annotations

import ast
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.docs.running import ROOT

EXAMPLES = ROOT / "docs" / "examples"
NOTEBOOKS = sorted(EXAMPLES.glob("*.ipynb"))


def read_code(path: Path) -> list[dict[str, Any]]:
    cells: list[dict[str, Any]] = json.loads(path.read_text())["cells"]
    return [cell for cell in cells if cell["cell_type"] == "code"]


def run_cell(source: str, name: str, variables: dict[str, Any]) -> object:
    """Run a cell, and return the value of its last line if that is an expression."""
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, name, "exec"), variables)
    if last is None:
        return None
    assert isinstance(last, ast.Expr)
    return eval(compile(ast.Expression(last.value), name, "eval"), variables)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_runs(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(EXAMPLES, tmp_path / "examples")
    monkeypatch.chdir(tmp_path / "examples")
    variables: dict[str, Any] = {"__name__": "__main__"}
    for number, cell in enumerate(read_code(path)):
        shown = run_cell("".join(cell["source"]), f"{path.name}[{number}]", variables)
        if hasattr(shown, "_repr_html_"):
            assert shown._repr_html_()
    if path.name == "rerank.ipynb":
        assert variables["reranked"].difference > 0.0
        assert variables["reranked"].p_randomization < 0.05


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_notebook_has_no_output(path: Path) -> None:
    for cell in read_code(path):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None


def test_examples_are_small() -> None:
    assert NOTEBOOKS
    files = [path for path in EXAMPLES.rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files if "__pycache__" not in path.parts) < 200_000
