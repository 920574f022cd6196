"""Control-C and SIGTERM in the first moments: a line and a code, and no traceback."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from mosesplug.cli.shared.interrupts import EndOnInterrupt

# The signal comes when a module is looked for that takes its time to load.
AT_IMPORT = """
import os, sys
class Finder:
    def find_spec(name, path=None, target=None):
        if name == 'typer':
            os.kill(os.getpid(), {number})
sys.meta_path.insert(0, Finder)
from mosesplug.cli.main import main
main(['--help'])
"""


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [
        (signal.SIGINT, 130, "mosesplug: interrupted.\n"),
        (signal.SIGTERM, 143, "mosesplug: ended by SIGTERM.\n"),
    ],
)
def test_while_it_is_loaded(number: signal.Signals, code: int, said: str) -> None:
    script = AT_IMPORT.format(number=int(number))
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (code, said)


def test_handlers_are_restored_and_ignored_signals_stay_ignored() -> None:
    before = signal.getsignal(signal.SIGINT)
    earlier = signal.signal(signal.SIGTERM, signal.SIG_IGN)
    try:
        with EndOnInterrupt("program"):
            assert signal.getsignal(signal.SIGINT) != before
            assert signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
        assert signal.getsignal(signal.SIGINT) == before
    finally:
        signal.signal(signal.SIGTERM, earlier)
