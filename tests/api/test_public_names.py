"""Test the public names: complete, documented, and fast to import."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

import mosesplug
from tests.api.signatures import list_signatures

PACKAGE = Path(mosesplug.__file__).parent


def test_every_name_resolves() -> None:
    for name in mosesplug.__all__:
        assert getattr(mosesplug, name) is not None
    assert sorted(mosesplug.__all__) == mosesplug.__all__


def test_dir_has_the_public_names_alone() -> None:
    import mosesplug.settings

    assert dir(mosesplug) == mosesplug.__all__


def test_unknown_name() -> None:
    with pytest.raises(AttributeError, match="module 'mosesplug' has no attribute 'optimise'"):
        mosesplug.optimise  # noqa: B018


def test_no_module_hides_a_public_name() -> None:
    # Importing mosesplug.x binds mosesplug.x to the module.
    modules = {path.stem for path in PACKAGE.iterdir() if path.name != "__init__.py"}
    assert not modules & set(mosesplug.__all__)


def test_import_is_light() -> None:
    code = "import json, sys, mosesplug; print(json.dumps(sorted(sys.modules)))"
    loaded = json.loads(subprocess.check_output([sys.executable, "-c", code]))
    heavy = {"numba", "typer", "rich", "scipy", "numpy", "lmdb", "msgpack", "matplotlib"}
    assert not heavy & set(loaded)


def test_signatures_are_those_in_the_file() -> None:
    text = (Path(__file__).parent / "signatures.txt").read_text()
    told = "a public name changed: run python -m tests.api.signatures > tests/api/signatures.txt"
    assert text.splitlines() == list(list_signatures()), told
