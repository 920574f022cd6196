"""Worker processes of a Dask cluster that start soon: forks of a process with all imports."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from multiprocessing import forkserver
from multiprocessing.process import BaseProcess
from pathlib import Path


def start_worker(arguments: Sequence[str], log: Path) -> BaseProcess:
    """Start ``dask worker`` with these arguments; it writes its output to a file.

    The process that forks has no threads, and no test has run in it.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["tests.tuning.parallel.preloaded"])
    worker = context.Process(target=_work, args=(tuple(arguments), str(log)), daemon=True)
    worker.start()
    return worker


def stop_fork_server() -> None:
    """End the process that forks, when all workers have ended."""
    forkserver._forkserver._stop()  # type: ignore[attr-defined]


def _work(arguments: tuple[str, ...], log: str) -> None:
    from distributed.cli.dask_worker import main

    with open(log, "wb") as file:  # noqa: PTH123
        for descriptor in (1, 2):
            os.dup2(file.fileno(), descriptor)
    sys.argv = ["dask-worker", *arguments]
    main(arguments, standalone_mode=False)
