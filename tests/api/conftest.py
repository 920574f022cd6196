"""The toy system in the current directory."""

from pathlib import Path

import pytest

from tests.tuning.conftest import ToySystem, make_toy


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToySystem:
    """Make the toy system in an empty directory."""
    monkeypatch.chdir(tmp_path)
    return make_toy(tmp_path)
