"""Let tests not wait until the disk has what they write.

A process that is killed loses nothing without that. Tests of a loss of power watch programs of
their own (tests/faults/test_power_loss.py), which wait.
"""

from __future__ import annotations

import os
from functools import partial

import lmdb

__all__ = ["skip_syncs"]


def skip_syncs() -> None:
    """Let this process and its forks write to the page cache only."""
    os.fsync = lambda descriptor: None
    lmdb.open = partial(lmdb.open, sync=False)
