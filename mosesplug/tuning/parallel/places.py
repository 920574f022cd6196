"""Places of shards: a shard's tasks go to the worker that has its lists.

Workers prepare a shard when its first task arrives, and keep it. So the tasks of a shard should run
in one worker, as long as it lives. Any other can run them, too, and prepares the shard first.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.executors import open_cluster, open_processes, open_threads
from mosesplug.tuning.parallel.watched_executor import ClusterExecutor

_SECONDS = 1.0
"""Time between two requests for the list of live workers."""


class Places(Protocol):
    """Runs tasks at numbered places."""

    def submit(self, place: int, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Run a function at a place."""


@contextmanager
def open_places(sharding: Sharding, n_places: int, at_once: int) -> Iterator[Places]:
    """Open places in threads, processes or on a cluster, until the block ends.

    Raises:
        UsageError: a cluster is requested and the package ``distributed`` is not installed.
        DataError: no scheduler answers, or it has no workers; or workers died.
    """
    with ExitStack() as stack:
        if sharding.scheduler is not None:
            cluster = stack.enter_context(open_cluster(sharding.scheduler))
            yield _ClusterPlaces(cluster, n_places)
        elif sharding.workers == "processes":
            count = min(n_places, at_once)
            yield _LocalPlaces([stack.enter_context(open_processes(1)) for _ in range(count)])
        else:
            yield _LocalPlaces([stack.enter_context(open_threads(min(n_places, at_once)))])


@dataclass(frozen=True)
class _LocalPlaces:
    """Places in executors: place ``p`` is in executor ``p % n`` of ``n``."""

    executors: Sequence[Executor]

    def submit(self, place: int, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self.executors[place % len(self.executors)].submit(function, *arguments)


class _ClusterPlaces:
    """Places on the workers of a cluster, which may come and go."""

    def __init__(self, cluster: ClusterExecutor, n_places: int) -> None:
        self._cluster = cluster
        self._worker_of: list[str | None] = [None] * n_places
        self._until = 0.0

    def submit(self, place: int, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        if time.monotonic() >= self._until:
            workers = self._cluster.worker_names()
            self._worker_of = assign_places(self._worker_of, workers)
            self._until = time.monotonic() + _SECONDS
        worker = self._worker_of[place]
        if worker is None:
            return self._cluster.submit(function, *arguments)
        return self._cluster.submit_to(worker, function, *arguments)


def assign_places(earlier: Sequence[str | None], workers: Sequence[str]) -> list[str | None]:
    """Return the worker of each place.

    A place keeps its earlier worker unless that is gone or has too many.

    Args:
        earlier: the worker of each place so far; None: it has none.

    Returns:
        A worker for each place, as evenly as possible; None without workers.
    """
    if not workers:
        return [None] * len(earlier)
    most = -(-len(earlier) // len(workers))
    load = Counter(dict.fromkeys(workers, 0))
    places: list[str | None] = []
    for worker in earlier:
        kept = worker if worker is not None and worker in load and load[worker] < most else None
        places.append(kept)
        if kept is not None:
            load[kept] += 1
    for place, worker in enumerate(places):
        if worker is None:
            chosen = min(workers, key=lambda name: load[name])
            places[place] = chosen
            load[chosen] += 1
    return places
