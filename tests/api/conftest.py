"""The toy system in the current directory."""

import os
from pathlib import Path

import pytest

from tests.tuning.conftest import ToySystem, make_toy


@pytest.fixture
def toy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ToySystem:
    """Make the toy system in an empty directory; nothing waits for the disk."""
    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.chdir(tmp_path)
    return make_toy(tmp_path)
