"""The package's public names are those of its modules."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import formats


def test_all_names_exist_and_come_from_a_module_that_publishes_them() -> None:
    assert sorted(formats.__all__) == sorted(set(formats.__all__))
    published = {
        name
        for module in pkgutil.walk_packages(formats.__path__, "formats.")
        if not module.ispkg
        for name in importlib.import_module(module.name).__all__
    }
    assert set(formats.__all__) <= published
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
