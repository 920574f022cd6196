"""Fixtures shared by all tests."""

from __future__ import annotations

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings


def pytest_configure() -> None:
    """Time no drawn examples, collect cycles seldom, and take signals that tests send to programs.

    Signals arrive even where the suite runs in the background: a shell has background jobs ignore
    interrupts, and what is ignored stays so in all children.
    """
    # A first call compiles, and machines are shared: time tells nothing about an example.
    settings.register_profile("untimed", deadline=None, max_examples=50)
    settings.load_profile("untimed")
    # Most of the suite's time is compiling, which makes objects by the million: look seldom for
    # cycles among them.
    gc.set_threshold(50_000, 20, 20)
    defaults = {signal.SIGINT: signal.default_int_handler, signal.SIGHUP: signal.SIG_DFL}
    for number, handler in defaults.items():
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


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
