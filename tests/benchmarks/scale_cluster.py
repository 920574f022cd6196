"""Measure batch optimizers on a Dask cluster as functions of size and workers, as Markdown.

usage: python -m tests.benchmarks.scale_cluster DIR [--workers N ...] [--steps NAME ...]

DIR has the stores that ``python -m tests.benchmarks.scale --keep DIR`` made. For each of them, each
optimizer and each number of workers, a new cluster of processes with one thread each optimizes the
merged lists in 4 shards. CPU seconds are those of the command and of its workers, without the start
of the cluster. Memory is the most that one worker held outside of files (anonymous) and with
the pages of files (RSS). The weights must be those of the first number of workers, to the byte.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.benchmarks.scale import COLUMNS, measure

STEPS = {
    "mert": ["--option", "restarts=0", "--option", "polish=0"],
    "kbmira": ["--option", "epochs=10"],
    "softmax": ["--option", "iterations=20"],
    "risk": ["--option", "stage_iterations=20"],
    "xbleu": ["--option", "stage_iterations=20"],
}
SHARDS = 4


class Watch:
    """Memory and CPU time of some processes, from when the watch begins until it stops.

    Attributes:
        most: the most kilobytes that one of them held outside of files, and with those of files.
    """

    def __init__(self, pids: Sequence[int]) -> None:
        self._pids = pids
        self._began = self._cpu_seconds()
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self.most = {"RssAnon": 0, "VmRSS": 0}
        self._thread.start()

    def stop(self) -> float:
        """Stop, and return the CPU seconds of all processes together."""
        self._stopped.set()
        self._thread.join()
        return self._cpu_seconds() - self._began

    def _watch(self) -> None:
        while not self._stopped.wait(0.02):
            for pid in self._pids:
                for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                    name, _, value = line.partition(":")
                    if name in self.most:
                        self.most[name] = max(self.most[name], int(value.split()[0]))

    def _cpu_seconds(self) -> float:
        ticks = 0
        for pid in self._pids:
            # The name of the program is in parentheses, and may have blanks.
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")


@contextmanager
def open_workers(count: int) -> Iterator[tuple[str, list[int]]]:
    """Open a cluster of worker processes; give its address and their process numbers."""
    import distributed

    with distributed.LocalCluster(
        silence_logs=logging.CRITICAL,
        n_workers=count,
        threads_per_worker=1,
        dashboard_address=None,
        memory_limit=0,
    ) as cluster:
        yield cluster.scheduler_address, [worker.pid for worker in cluster.workers.values()]


def measure_step(store: Path, step: str, count: int, weights: Path) -> list[float]:
    """Optimize on a new cluster, write the weights, and return ``COLUMNS``."""
    program = [sys.executable, "-c", "from mosesplug.cli.main import main; main()", "optimize"]
    program += ["--from", str(store), "--seed", "1", "--algorithm", step, *STEPS[step]]
    with open_workers(count) as (address, pids):
        watch = Watch(pids)
        words = ["--shards", str(SHARDS), "--scheduler", address, "-o", str(weights)]
        wall, cpu, *_ = measure([*program, *words])
        cpu += watch.stop()
    return [wall, cpu, *(kilobytes / 1024 for kilobytes in watch.most.values())]


def main() -> None:
    """Print a row for each store, optimizer and number of workers as it has been measured."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("directory", type=Path)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--steps", nargs="+", default=list(STEPS), choices=STEPS)
    given = parser.parse_args()
    stores = sorted(given.directory.glob("*/store"), key=lambda path: float(path.parent.name))
    if not stores:
        raise SystemExit(f"{given.directory} has no stores. Make them by tests.benchmarks.scale.")
    print(f"| size | step | workers | {' | '.join(COLUMNS)} |\n|{'---|' * (3 + len(COLUMNS))}")
    with tempfile.TemporaryDirectory() as scratch:
        for store in stores:
            for step in given.steps:
                files = [Path(scratch, f"{step}.{count}") for count in given.workers]
                for count, weights in zip(given.workers, files, strict=True):
                    row = measure_step(store, step, count, weights)
                    values = " | ".join(f"{value:.1f}" for value in row)
                    print(f"| {store.parent.name} % | {step} | {count} | {values} |", flush=True)
                    if weights.read_bytes() != files[0].read_bytes():
                        raise SystemExit(f"{step}: {count} workers learned other weights")


if __name__ == "__main__":
    main()
