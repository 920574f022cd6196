"""A run with the real decoder that is killed while it decodes ends with the same bytes."""

from __future__ import annotations

import os
import signal

import pytest

from tests.real_decoder.programs import Programs, run_here, start_fork
from tests.waiting import alive, wait_until

REGIMES = {
    "batch": ("--algorithm", "kbmira", "--option", "epochs=3", "--max-iterations", "3"),
    "graphs": (
        "--forest",
        "--algorithm",
        "kbmira",
        "--option",
        "epochs=2",
        "--max-iterations",
        "3",
    ),
    "shards": ("--online", "--algorithm", "mira", "--epochs", "3", "--shards", "2"),
    "online": ("--online", "--algorithm", "mira", "--epochs", "3", "--option", "batch=5"),
}


@pytest.mark.parametrize("regime", REGIMES)
def test_killed_and_continued(programs: Programs, regime: str) -> None:
    more = REGIMES[regime]
    whole = programs.tune("whole", *more)
    words = programs.tune_words("work", *more)
    work = programs.directory / "work"
    child = start_fork(words)
    try:
        wait_until(lambda: (work / "run2.moses.ini").is_file() or not alive(child))
    finally:
        os.killpg(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    run_here([*words, "--continue"])
    for name in ("run2.weights.txt", "run3.weights.txt"):
        assert (work / name).read_bytes() == (whole / name).read_bytes(), name
