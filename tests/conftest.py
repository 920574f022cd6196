"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def recordings() -> Path:
    """Directory of recorded output of the real Moses programs; skips where it is absent."""
    default = Path(__file__).parent.parent.parent / "shared" / "data"
    root = Path(os.environ.get("MOSES_RECORDINGS", default))
    if not (root / "multi30k-de-en").is_dir():
        pytest.skip(f"no recorded Moses output at {root} (set MOSES_RECORDINGS)")
    return root


@pytest.fixture(scope="session")
def multi30k(recordings: Path) -> Path:
    """The German-English system among the recordings."""
    return recordings / "multi30k-de-en"
