"""How long a user waits for the first word."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest


@pytest.mark.parametrize(
    "words", [["--help"], ["--version"], ["mert-moses", "--help"]], ids=" ".join
)
def test_start(benchmark: Any, words: list[str]) -> None:
    """A whole process that only prints."""
    command = [sys.executable, "-c", "from mosesplug.cli.main import main; main()", *words]
    done = benchmark.pedantic(
        subprocess.run, (command,), {"capture_output": True}, rounds=10, warmup_rounds=1
    )
    assert done.returncode == 0
