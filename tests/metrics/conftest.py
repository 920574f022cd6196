"""Metrics are tested with their kernels; ``test_plain`` compares these with plain Python."""

from __future__ import annotations

import pytest

from mosesplug.metrics.plain import Allowance


@pytest.fixture(autouse=True)
def kernels_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no metric count or score without its kernels."""
    monkeypatch.setattr(Allowance, "kernels_only", True)
