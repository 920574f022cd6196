"""Import all that forked workers need, and load Numba's compiler."""

from __future__ import annotations

import gc

import distributed.cli.dask_worker

import mosesplug.tuning.online.sharded
import tests.tuning.parallel.test_dask
from mosesplug.kernels import load_compiler

__all__ = ["distributed", "mosesplug", "tests"]

load_compiler()
gc.freeze()  # or each worker copies all memory, to look for garbage in it
