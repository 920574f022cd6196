"""A loss of power, and errors of the disk, at a sample of the calls that change a store."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.long_running.io_errors import fail_calls
from tests.long_running.power_loss import lose_power
from tests.long_running.system import ROOT
from tests.long_running.watched import is_possible

pytestmark = pytest.mark.skipif(not is_possible(), reason="needs a C compiler and LD_PRELOAD")


def test_no_commit_is_lost_with_the_power(tmp_path: Path) -> None:
    """``python -m tests.long_running.power_loss`` draws thousands of disks."""
    count, problems = lose_power(tmp_path, draws=1, seed=1)
    assert count > 50
    assert not problems


def test_a_disk_that_ignores_syncs_is_found() -> None:
    """LMDB may even end the process that reads it."""
    command = [sys.executable, "-m", "tests.long_running.power_loss", "--draws=1", "--no-syncs"]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode
    assert "0 problems" not in ended.stdout


def test_errors_of_the_disk_end_in_one_message_and_lose_no_commit(tmp_path: Path) -> None:
    """``python -m tests.long_running.io_errors`` fails every call."""
    count, problems = fail_calls(tmp_path, every=29)
    assert count > 10
    assert not problems
