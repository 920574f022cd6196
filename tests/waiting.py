"""Wait in tests: for an event instead of a time, and never for ever."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

__all__ = ["LIMIT", "alive", "gone", "hurry", "wait_until"]

LIMIT = 300.0
"""Seconds: more than a busy machine needs, and less than a phase of a test may last."""


def wait_until(holds: Callable[[], object]) -> None:
    """Wait until a condition holds.

    Raises:
        TimeoutError: it does not within ``LIMIT`` seconds.
    """
    end = time.monotonic() + LIMIT
    while not holds():
        if time.monotonic() > end:
            raise TimeoutError(f"the test has waited for {LIMIT:g} s")
        time.sleep(0.01)


def alive(pid: int) -> bool:
    """Whether a process runs; one that has ended and was not waited for yet does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (ProcessLookupError, FileNotFoundError):
        return False
    return state != "Z"


def gone(pid: int) -> bool:
    """Wait for the end of a process; whether it has ended within ``LIMIT`` seconds."""
    try:
        wait_until(lambda: not alive(pid))
    except TimeoutError:
        return False
    return True


def hurry(
    monkeypatch: pytest.MonkeyPatch, module: ModuleType, happened: Callable[[], object]
) -> None:
    """Stop a module's clock until an event; then let an hour pass whenever it is looked at.

    A time limit of the module ends what comes after the event, and no machine is too slow for what
    comes before it.
    """
    now = 0.0

    def monotonic() -> float:
        nonlocal now
        now += 3600.0 if happened() else 0.0
        return now

    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=monotonic))
