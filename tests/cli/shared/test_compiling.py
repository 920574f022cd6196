"""Compiling is reported, once."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from mosesplug.cli.shared import compiling
from mosesplug.cli.shared.compiling import note_compiling, watch_compiling
from mosesplug.kernel_cache import COMPILING

LOGGER = logging.getLogger(COMPILING)
LINE = "compiling (once): later commands start at once\n"


def log(text: str) -> None:
    LOGGER.debug("%s kernel", text)


def test_begin_and_end_are_shown() -> None:
    shown: list[bool] = []
    level = LOGGER.level
    with watch_compiling(shown.append):
        for _ in range(2):
            log("compiling")
            other = threading.Thread(target=lambda: (log("compiling"), log("compiled")))
            other.start()
            other.join()
            log("compiled")
        log("compiled")  # a kernel that was loaded
    log("compiling")
    assert shown == [True, False] * 2
    assert (LOGGER.level, LOGGER.handlers) == (level, [])


def test_compiling_ahead_delays_nobody() -> None:
    shown: list[bool] = []
    with watch_compiling(shown.append):
        ahead = threading.Thread(target=log, args=("compiling",), name="mosesplug-compiler")
        ahead.start()
        ahead.join()
    assert shown == []


@pytest.mark.parametrize("quiet", [True, False])
def test_a_line_says_so(
    quiet: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    clock = iter([0.0, 0.6, 2.0, 2.6, 3.0, 5.0])
    monkeypatch.setattr(compiling.time, "monotonic", lambda: next(clock))
    with note_compiling(quiet):
        for text in ("", LINE, ""):
            log("compiling")
            log("compiled")
            assert capsys.readouterr().err == ("" if quiet else text)


@pytest.mark.slow
def test_a_first_command_compiles_and_a_second_does_not(tmp_path: Path) -> None:
    (tmp_path / "list").write_text(
        "0 ||| the house ||| LM0= -1 TM0= -2 ||| -3\n0 ||| a house ||| LM0= -2 TM0= -2 ||| -4\n"
    )
    (tmp_path / "refs").write_text("the house\n")
    (tmp_path / "kernels").mkdir(mode=0o700)
    program = (
        "from mosesplug import kernel_cache; from mosesplug.cli.shared import compiling;"
        # Kernels beside the modules are compiled already.
        "kernel_cache._load_beside = lambda *given: None; compiling.SECONDS_BEFORE_NOTICE = 0.0;"
        "from mosesplug.cli.main import main; main()"
    )
    words = ["nbest", "import", "list", "{}", "--refs", "refs"]
    said = []
    for name in ("first", "second"):
        done = subprocess.run(
            [sys.executable, "-c", program, *(word.format(name) for word in words)],
            cwd=tmp_path,
            env={
                "PATH": "/usr/bin:/bin",
                "HOME": str(tmp_path),
                "NUMBA_CACHE_DIR": str(tmp_path / "kernels"),
            },
            capture_output=True,
            text=True,
            check=True,
        )
        said.append(LINE in done.stderr)
    assert said == [True, False]
