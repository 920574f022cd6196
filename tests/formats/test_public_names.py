"""The package's public names are those of its modules."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import formats


def test_all_names_exist() -> None:
    assert sorted(formats.__all__) == sorted(set(formats.__all__))
    assert all(hasattr(formats, name) for name in formats.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = formats.nothing  # type: ignore[attr-defined]


def test_one_module_loads_no_other() -> None:
    program = (
        "import sys, formats.errors; print([name for name in sys.modules if 'formats.' in name])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout == "['formats.errors']\n"


def test_imports_the_standard_library_and_numpy() -> None:
    """And msgspec, in the reader of JSON lines; an import of any other package fails."""
    allowed = {*sys.stdlib_module_names, "formats", "numpy"}
    others = set()
    for path in Path(formats.__path__[0]).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [each.name for each in node.names] if isinstance(node, ast.Import) else []
            tops = {name.partition(".")[0] for name in names}
            others |= {(path.name, top) for top in tops - allowed}
    assert others == {("json_structs.py", "msgspec")}
