"""Import all that forked workers of tests need, and load Numba's compiler."""

from __future__ import annotations

import gc

import mosesplug.tuning.online.sharded
import mosesplug.tuning.parallel.list_shards
from mosesplug.kernels import load_compiler

__all__ = ["mosesplug"]

load_compiler()
gc.freeze()  # or each worker copies all memory, to look for garbage in it
