"""Digests of kernels change with what a kernel is compiled from, and with nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.kernel_code import kernel_digests

FILES = {
    "p/__init__.py": "",
    "p/constants.py": "SCALE = 2.0\nOTHER = 3.0\n",
    "p/helpers.py": """
from p import constants
from p.constants import OTHER
from p.decorators import kernel

@kernel
def doubled(x):
    return x * constants.SCALE

def unrelated():
    return OTHER
""",
    "p/steps.py": """
from p.decorators import kernel
from p.helpers import doubled

LIMIT = 4

@kernel
def step(x):
    '''One step.'''
    return min(doubled(x), LIMIT)

def start():
    return 1
""",
    "p/decorators.py": "def kernel(function):\n    return function\n",
    "p/plain.py": "def plain():\n    return 1\n",
}
KERNELS = {"p/helpers.py", "p/steps.py"}


def digests(directory: Path, files: dict[str, str]) -> dict[str, str]:
    for name, text in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return kernel_digests(directory)


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("p/constants.py", "2.0", "2.5", KERNELS),
        ("p/constants.py", "3.0", "3.5", set()),
        ("p/helpers.py", "x * constants", "x + constants", KERNELS),
        ("p/steps.py", "LIMIT = 4", "LIMIT = 5", {"p/steps.py"}),
        ("p/steps.py", "One step", "A step", set()),
        ("p/steps.py", "return 1", "return 2", set()),
        ("p/helpers.py", "return OTHER", "return 0", set()),
        ("p/decorators.py", "return function", "return [function]", KERNELS),
        ("p/steps.py", "LIMIT = 4", "# A comment.\nLIMIT = 4", set()),
    ],
)
def test_changes(tmp_path: Path, file: str, old: str, new: str, changed: set[str]) -> None:
    before = digests(tmp_path, FILES)
    assert old in FILES[file]
    after = digests(tmp_path, FILES | {file: FILES[file].replace(old, new)})
    assert {name for name in FILES if before[name] != after[name]} == changed
