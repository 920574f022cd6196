"""How far an epoch of several shards is, told while they learn.

Shards in threads tell the counter themselves. Those in other processes, here or on a cluster, leave
word in a small file of the working directory, which all see and the counter looks at.
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

from mosesplug.metrics import Metric
from mosesplug.optimizers.online.epochs import BatchDone, Tally
from mosesplug.tuning.events import Learning, Watcher
from mosesplug.tuning.online.shard import ShardEpoch
from mosesplug.tuning.parallel.sharding import joined
from mosesplug.tuning.resources import Clock

__all__ = ["Counter", "Word"]

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True)
class Word:
    """Tells, from another process, how far a shard is; pass it as ``on_batch``.

    Attributes:
        path: of the file.
    """

    path: Path

    def __call__(self, done: BatchDone) -> None:
        """Leave word of a batch."""
        tally = done.tally
        word = {
            "epoch": done.epoch,
            "batches": tally.batches,
            "totals": tally.totals.tolist(),
            "sums": {name: float(value) for name, value in tally.sums.items()},
        }
        # Who reads half of it looks again; and learning does not end for want of a word.
        with contextlib.suppress(OSError):
            self.path.write_text(json.dumps(word), encoding="ascii")


class Counter:
    """Tells those who watch how far all shards are."""

    def __init__(self, watch: Watcher, metric: Metric, epoch: int, total: int) -> None:
        """Begin at nothing, of so many batches."""
        self._watch, self._metric, self._epoch, self._total = watch, metric, epoch, total
        self._tallies: dict[int, Tally] = {}
        self._clock = Clock()
        self._lock = threading.Lock()

    def of(self, number: int) -> Callable[[BatchDone], None]:
        """What a thread tells of its shard's batches."""
        return lambda done: self.add(number, done.tally)

    def add(self, number: int, tally: Tally) -> None:
        """A shard has come so far; told of less than before, nothing happens."""
        with self._lock:
            if number in self._tallies and self._tallies[number].batches >= tally.batches:
                return
            self._tallies[number] = tally
            # In the order of the shards: which thread came first must not show.
            so_far = joined([self._tallies[number] for number in sorted(self._tallies)])
            score = float(self._metric.score(so_far.totals))
            self._watch(
                Learning(
                    self._epoch,
                    so_far.batches,
                    self._total,
                    self._metric.name,
                    score,
                    self._clock.seconds(),
                )
            )

    def wait(self, shards: Sequence[Future[ShardEpoch]], words: Sequence[Path] = ()) -> None:
        """Wait for all shards, or for one that fails; look now and then at the words they leave.

        Args:
            shards: what becomes of each.
            words: files that shards in other processes write, in the same order.
        """
        waiting = set(shards)
        while waiting:
            pause = _SECONDS_BETWEEN_LOOKS if words else None
            done, waiting = wait(waiting, pause, return_when=FIRST_COMPLETED)
            for number, word in enumerate(words):
                if (tally := _word_left(word, self._epoch)) is not None:
                    self.add(number, tally)
            for number, future in enumerate(shards):
                if future in done:
                    self.add(number, future.result().tally)


def _word_left(path: Path, epoch: int) -> Tally | None:
    """What ``Word`` left there of an epoch; None where there is no such word."""
    try:
        found = json.loads(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None
    if found["epoch"] != epoch:
        return None
    return Tally(found["batches"], np.array(found["totals"]), found["sums"])
