"""Report the progress of an epoch of several shards while they learn.

Shards in threads call back. Those in other processes, here or on a cluster, write a small file into
the working directory, which all workers see, and the run reads it now and then.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from mosesplug.events import Clock, EpochProgress, Watcher
from mosesplug.metrics import Metric
from mosesplug.optimizers.online.epochs import BatchProgress, EpochReport, Tally
from mosesplug.tuning.parallel.mixing import add_tallies

_SECONDS_BETWEEN_READS = 0.5


@dataclass(frozen=True)
class ProgressFile:
    """An ``on_batch`` callback that writes a shard's progress to a file."""

    path: Path

    def __call__(self, done: BatchProgress) -> None:
        """Write the tally after a batch."""
        tally = done.tally
        record = {
            "epoch": done.epoch,
            "batches": tally.batches,
            "totals": tally.totals.tolist(),
            "sums": {name: float(value) for name, value in tally.sums.items()},
        }
        # The reader retries an incomplete file, and learning continues if it cannot be written.
        with contextlib.suppress(OSError):
            self.path.write_text(json.dumps(record), encoding="ascii")


class ShardProgress:
    """Adds up the progress of shards in an epoch and sends ``EpochProgress`` events."""

    def __init__(
        self, watch: Watcher, metric: Metric, epoch: int, files: Sequence[Path] = ()
    ) -> None:
        """Start an epoch.

        Args:
            epoch: from 1.
            files: the files of the shards, where these learn in other processes. Files of an
                earlier, killed run are removed.
        """
        self.total = 0
        self._watch, self._metric, self._epoch, self._files = watch, metric, epoch, files
        self._tallies: dict[int, Tally] = {}
        self._clock = Clock()
        self._lock = threading.Lock()
        self._remove_files()

    def callback(self, number: int) -> Callable[[BatchProgress], None]:
        """Return the ``on_batch`` callback of a shard, picklable if there are files."""
        if self._files:
            return ProgressFile(self._files[number])
        return lambda done: self._update(number, done.tally)

    def wait(self, shards: Sequence[Future[EpochReport]]) -> None:
        """Wait for all shards, or until one fails, and read their files now and then."""
        waiting = set(shards)
        while waiting:
            pause = _SECONDS_BETWEEN_READS if self._files else None
            done, waiting = wait(waiting, pause, return_when=FIRST_COMPLETED)
            for number, path in enumerate(self._files):
                if (tally := _read_progress(path, self._epoch)) is not None:
                    self._update(number, tally)
            for number, future in enumerate(shards):
                if future in done:
                    self._update(number, future.result().tally)
        self._remove_files()

    def _update(self, number: int, tally: Tally) -> None:
        """Take in a shard's tally and send an event, unless it is an older one."""
        with self._lock:
            if number in self._tallies and self._tallies[number].batches >= tally.batches:
                return
            self._tallies[number] = tally
            # Add up in the order of the shards: the sum must not depend on which came first.
            sum_so_far = add_tallies([self._tallies[number] for number in sorted(self._tallies)])
            score = float(self._metric.score(sum_so_far.totals))
            self._watch(
                EpochProgress(
                    self._epoch,
                    sum_so_far.batches,
                    self.total,
                    self._metric.name,
                    score,
                    self._clock.seconds(),
                )
            )

    def _remove_files(self) -> None:
        for path in self._files:
            path.unlink(missing_ok=True)


def _read_progress(path: Path, epoch: int) -> Tally | None:
    """Return the tally in a shard's file; None if the file lacks one of this epoch."""
    try:
        record = json.loads(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    if record["epoch"] != epoch:
        return None
    return Tally(record["batches"], np.array(record["totals"]), record["sums"])
