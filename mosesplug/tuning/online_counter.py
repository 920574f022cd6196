"""How far an epoch of several shards is, told while they learn."""

from __future__ import annotations

import threading
from collections.abc import Callable

from mosesplug.metrics import Metric
from mosesplug.optimizers.online.epochs import BatchDone, Tally
from mosesplug.tuning.clock import Clock
from mosesplug.tuning.events import Learning, Watcher
from mosesplug.tuning.sharding import joined

__all__ = ["Counter"]


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
        """A shard has come so far; told of it again, nothing happens."""
        with self._lock:
            if number in self._tallies and self._tallies[number].batches == tally.batches:
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
