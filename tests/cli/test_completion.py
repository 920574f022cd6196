"""Completion on the command line, as a shell asks for it."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = (
    "import sys; sys.argv[0] = 'mosesplug'; from mosesplug.cli.main import main; main(sys.argv[1:])"
)


def completed(words: str) -> list[str]:
    """What bash is offered for the last of some words."""
    environment = os.environ | {
        "_MOSESPLUG_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split(" ")) - 1),
    }
    command = [sys.executable, "-c", PROGRAM]
    found = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return found.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("mosesplug nb", ["nbest"]),
        ("mosesplug nbest s", ["show", "stats"]),
        ("mosesplug tune --online-s", ["--online-servers"]),
    ],
)
def test_words_are_completed(words: str, offered: list[str]) -> None:
    assert completed(words) == offered
