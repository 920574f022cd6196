"""An executor whose tasks fail if all of its workers are gone for good.

A cluster keeps tasks until a worker comes. If none ever does, whoever waits for a task would wait
for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import suppress
from typing import Any, Protocol, Self

_BEATS = 10
"""Number of times that the workers are counted within the patience."""
_LONGEST_BEAT = 5.0


class ClusterExecutor(Protocol):
    """An executor whose caller can choose the worker of a task."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a task to any worker."""

    def submit_to(self, worker: str, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Submit a task to a worker, or to any other if it is gone."""

    def worker_names(self) -> list[str]:
        """Return the workers that live, in a fixed order; empty if that is unknown."""


class WatchedExecutor(Executor):
    """Runs tasks with another executor, and watches its workers while it is open."""

    def __init__(
        self,
        executor: Executor,
        list_workers: Callable[[], Collection[str]],
        patience: float,
        make_error: Callable[[], Exception],
        executor_of: Callable[[str], Executor] | None = None,
    ) -> None:
        """Watch an executor.

        Args:
            list_workers: returns the names of the workers; an exception means that they are
                unknown.
            patience: seconds without workers after which all tasks fail.
            executor_of: returns the executor that prefers a worker; None: ``executor``.
        """
        self._executor = executor
        self._executor_of = executor_of or (lambda worker: executor)
        self._list_workers = list_workers
        self._patience = patience
        self._make_error = make_error
        self._lock = threading.Lock()
        self._pending: set[Future[Any]] = set()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="mosesplug-workers", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Submit a task."""
        return self._watch_task(self._executor.submit(fn, *args, **kwargs))

    def submit_to(self, worker: str, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Submit a task to a worker, or to any other if it is gone."""
        return self._watch_task(self._executor_of(worker).submit(function, *args))

    def worker_names(self) -> list[str]:
        """Return the workers that live, in a fixed order; empty if that is unknown."""
        try:
            return sorted(self._list_workers())
        except Exception:  # the executor reports a lost connection itself
            return []

    def _watch_task(self, task: Future[Any]) -> Future[Any]:
        watched: Future[Any] = Future()

        def finish(done: Future[Any]) -> None:
            with self._lock:
                self._pending.discard(watched)
            _copy_outcome(done, watched)

        def cancel(done: Future[Any]) -> None:
            if done.cancelled():
                task.cancel()

        with self._lock:
            self._pending.add(watched)
        watched.add_done_callback(cancel)
        task.add_done_callback(finish)
        return watched

    def _watch(self) -> None:
        """Fail all tasks whenever there was no worker for too long."""
        last_seen = time.monotonic()
        while not self._ended.wait(min(self._patience / _BEATS, _LONGEST_BEAT)):
            try:
                is_alive = len(self._list_workers()) > 0
            except Exception:  # the executor reports a lost connection itself
                is_alive = True
            if is_alive:
                last_seen = time.monotonic()
            elif time.monotonic() - last_seen >= self._patience:
                self._fail_all()

    def _fail_all(self) -> None:
        with self._lock:
            lost, self._pending = self._pending, set()
        for future in lost:
            with suppress(InvalidStateError):
                future.set_exception(self._make_error())


def _copy_outcome(done: Future[Any], watched: Future[Any]) -> None:
    """Give a future the outcome of another, unless it has one."""
    with suppress(InvalidStateError):
        if done.cancelled():
            if watched.cancel():
                watched.set_running_or_notify_cancel()
        elif (error := done.exception()) is not None:
            watched.set_exception(error)
        else:
            watched.set_result(done.result())
