"""Metrics are tested with their kernels; ``test_plain`` compares these with plain Python."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from mosesplug.metrics import plain


@pytest.fixture(autouse=True)
def kernels_only() -> Iterator[None]:
    """Let no metric count or score without its kernels."""
    with plain.kernels_only():
        yield
