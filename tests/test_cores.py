"""Test that only the cores count which this process may use."""

from __future__ import annotations

import os

import pytest

from mosesplug.cores import usable_cores


def test_cores_that_a_process_may_not_use_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: 128)
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {3, 5}, raising=False)
    assert usable_cores() == 2
    monkeypatch.delattr(os, "sched_getaffinity")  # as on macOS
    assert usable_cores() == 128
