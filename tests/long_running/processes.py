"""Find the processes that a run has left: those whose environment has its token."""

from __future__ import annotations

import os
import time
from pathlib import Path

VARIABLE = "MOSESPLUG_FAULTS"


def having(token: str) -> dict[int, str]:
    """Process ids and command lines of what was started with that token and is alive."""
    wanted = f"{VARIABLE}={token}".encode()
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            variables = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "cmdline").read_bytes()
        except OSError:  # it has just ended, or is another user's
            continue
        if wanted in variables:
            found[int(entry.name)] = command.replace(b"\0", b" ").decode(errors="replace")
    return found


def left_after(token: str, patience: float) -> tuple[dict[int, str], float]:
    """Return the processes that remain after a time limit, and the end of the last other."""
    started = time.monotonic()
    while True:
        found, waited = having(token), time.monotonic() - started
        if not found or waited > patience:
            return found, waited
        time.sleep(0.01)
