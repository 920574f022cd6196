"""A toy system for command lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.tuning.conftest import make_toy


@pytest.fixture
def toy_files(tmp_path: Path) -> list[str]:
    """Input, references, decoder and configuration of a toy system in ``tmp_path``."""
    make_toy(tmp_path, sentences=8)
    return [str(tmp_path / name) for name in ("input", "reference", "decoder", "moses.ini")]
