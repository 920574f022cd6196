"""Fixtures shared by the tests of optimizers."""

from __future__ import annotations

import pytest

from mosesplug.optimizers.batch.mert import mert


@pytest.fixture
def few_restarts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let MERT double its restarts on small problems, not multiply them by 20."""
    monkeypatch.setattr(mert, "MOST_RESTARTS", 2)
