"""Weights of the stand-in decoder, and what became of its processes."""

from __future__ import annotations

import os
import time
from pathlib import Path

from formats.weights.files import WeightGroup
from mosesplug.decoders.batch import ModelWeights

__all__ = ["OTHERS", "WEIGHTS", "alive", "gone"]

WEIGHTS = ModelWeights((WeightGroup("LM0", (0.5,)), WeightGroup("TM0", (-0.25, None))))
OTHERS = ModelWeights((WeightGroup("LM0", (-0.1,)), WeightGroup("TM0", (1e-05, None))))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # One that has ended and was not waited for yet does not count.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def gone(pid: int, *, within: float = 10.0) -> bool:
    """Whether a process ends soon."""
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not alive(pid):
            return True
        time.sleep(0.02)
    return False
