"""Executors: threads or processes of this machine, or workers of a Dask cluster.

All three are a ``concurrent.futures.Executor``, and no other module knows which one it has. Tasks
are pure functions of their arguments, so a cluster repeats the task of a dead worker on another
one, with the same result.

Workers prepare a shard of lists when its first task arrives, and keep it. So its tasks have a
*place* (``open_places``): they run in one worker, as long as it lives. Any other can run them, too,
and prepares the shard first.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Protocol

from mosesplug.errors import DataError
from mosesplug.kernel_cache import Semaphore, share_warning
from mosesplug.settings.sharding import Sharding, WorkerKind
from mosesplug.tuning.parallel.cluster import WatchedExecutor, open_cluster


class StopSignal:
    """A request to threads to stop, since threads cannot be killed.

    It also closes the resources that they wait for.

    Attributes:
        soon: if set, threads stop before they start on anything else.
    """

    def __init__(self) -> None:
        self.soon = threading.Event()
        self._now = threading.Event()
        self._closers: list[Callable[[], None]] = []

    def on_stop(self, close: Callable[[], None]) -> None:
        """Let ``stop_now`` call a function; call it now if that has passed."""
        self._closers.append(close)
        if self._now.is_set():
            close()

    def stop_now(self) -> None:
        """Stop the threads at once."""
        self.soon.set()
        self._now.set()
        # In parallel: each may take some seconds.
        closing = [threading.Thread(target=close) for close in self._closers]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()

    def check(self, *_: object) -> None:
        """Raise if the threads are to stop at once."""
        if self._now.is_set():
            raise CancelledError


@contextmanager
def open_executor(kind: WorkerKind, count: int, scheduler: str | None = None) -> Iterator[Executor]:
    """Open an executor until the block ends.

    Args:
        count: the number of workers; a cluster brings its own.
        scheduler: address of a Dask scheduler, whose workers are used instead.

    Raises:
        UsageError: a cluster is requested and the package ``distributed`` is not installed.
        DataError: no scheduler answers, or it has no workers; or workers died.
    """
    chosen: AbstractContextManager[Executor]
    if scheduler is not None:
        chosen = open_cluster(scheduler)
    elif kind == "processes":
        chosen = open_processes(count)
    else:
        chosen = open_threads(count)
    with chosen as executor:
        yield executor


@contextmanager
def open_threads(count: int) -> Iterator[Executor]:
    """Open threads of this process; waiting tasks are canceled when the block ends."""
    executor = ThreadPoolExecutor(count, thread_name_prefix="mosesplug")
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def open_processes(count: int) -> Iterator[Executor]:
    """Open spawned processes: a fork would copy Numba's locks and the store's map.

    They end with this process, however it ends, and at once if the block raises.
    """
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    with _safe_path() as was_safe:
        arguments = (_count_warnings(), was_safe)
        executor = ProcessPoolExecutor(
            count, mp_context=context, initializer=_start_worker, initargs=arguments
        )
        for _ in range(count):  # a task starts a process where none is idle
            executor.submit(_do_nothing)
    try:
        yield executor
    except BrokenExecutor as error:
        raise DataError(
            "a worker process died. If memory ran out, use fewer workers ({--threads}, {--shards})."
        ) from error
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


@cache
def _count_warnings() -> Semaphore:
    """Return the semaphore with which this process and all its workers warn only once."""
    semaphore = multiprocessing.get_context("spawn").Semaphore(1)
    share_warning(semaphore)
    return semaphore


_SAFE_PATH = "PYTHONSAFEPATH"


@contextmanager
def _safe_path() -> Iterator[bool]:
    """Let new Python processes import nothing from the current directory.

    Without it, they would import a file ``multiprocessing.py`` that lies where the user stands.
    Yields whether that was so before.
    """
    was_safe = _SAFE_PATH in os.environ
    os.environ.setdefault(_SAFE_PATH, "1")
    try:
        yield was_safe
    finally:
        if not was_safe:
            del os.environ[_SAFE_PATH]


def _do_nothing() -> None:
    """Start a worker."""


def _start_worker(warnings_left: Semaphore, was_safe: bool) -> None:
    """In a worker, share warnings, ignore Ctrl-C, and end when the parent is gone."""
    share_warning(warnings_left)
    if not was_safe:  # a decoder that is a Python program may need the files beside it
        os.environ.pop(_SAFE_PATH, None)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_exit_after, args=(parent.join,), daemon=True).start()


def _exit_after(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)


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

    def __init__(self, cluster: WatchedExecutor, n_places: int) -> None:
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
