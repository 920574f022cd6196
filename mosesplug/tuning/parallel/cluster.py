"""Workers of a Dask cluster as an executor.

A task fails if all workers are gone for good.

A cluster keeps tasks until a worker comes. If none ever does, whoever waits for a task would wait
for ever. This is the only module that knows a distributed engine.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Iterator
from concurrent.futures import Executor, Future, InvalidStateError
from contextlib import contextmanager, suppress
from functools import cache
from typing import Any, Self, cast

from mosesplug.errors import DataError, UsageError
from mosesplug.settings.sharding import check_address
from mosesplug.tuning.parallel.list_files import forget_shards

_BEATS = 10
"""Number of times that the workers are counted within the patience."""
_LONGEST_BEAT = 5.0


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
        with suppress(Exception):  # the executor reports a lost connection itself
            return sorted(self._list_workers())
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


@contextmanager
def open_cluster(
    address: str, *, patience: float = 30.0, worker_patience: float = 120.0
) -> Iterator[WatchedExecutor]:
    """Open the workers of a Dask cluster, which need the same software versions.

    Another worker repeats the task of a worker that died, up to three times.

    Dask's own configuration holds, such as that of TLS.

    Args:
        address: the address of the scheduler, such as ``tcp://host:8786``.
        patience: seconds to wait for the scheduler to answer, and then for its first worker.
        worker_patience: seconds to wait for another worker when all of them are gone.

    Raises:
        UsageError: the package ``distributed`` is not installed, the address is invalid, or Dask
            has no certificate for TLS.
        DataError: the scheduler does not answer, or no longer; or its workers are missing, are
            all gone, lack software, or keep dying.
    """
    check_address(address)
    import dask
    import distributed

    try:
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataError(f"no Dask scheduler answers at {address}: {error}") from error
    except TypeError as error:
        if "TLS" not in str(error):
            raise
        raise UsageError(
            f"the scheduler at {address} needs TLS, and Dask has no certificate: set"
            " distributed.comm.tls.ca-file, distributed.comm.tls.client.cert and"
            " distributed.comm.tls.client.key in its configuration"
        ) from error
    with _silence_client(), client:
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            raise DataError(
                f"the Dask scheduler at {address} has no workers. Start some: dask worker {address}"
            ) from error
        executor = client.get_executor(pure=False)

        @cache
        def executor_of(worker: str) -> Executor:
            preferred = client.get_executor(pure=False, workers=[worker], allow_other_workers=True)
            return cast(Executor, preferred)

        watched = WatchedExecutor(
            executor,
            client.nthreads,
            worker_patience,
            lambda: DataError(
                f"all workers of the cluster at {address} are gone, and no other came in"
                f" {worker_patience:g} s. Start some: dask worker {address}. Then continue a tuning"
                " run by {--continue}."
            ),
            executor_of,
        )
        try:
            # The large arrays of a learner's state are intended.
            large = {"distributed.admin.large-graph-warning-threshold": "64GB"}
            with dask.config.set(large), watched:
                yield watched
        except distributed.KilledWorker as error:
            raise DataError(
                f"workers of the cluster at {address} died repeatedly on the same task. See "
                "their logs."
            ) from error
        except ImportError as error:
            raise DataError(
                f"workers of the cluster at {address} lack software that this process has: {error}"
            ) from error
        except Exception as error:
            if client.status != "running":
                raise DataError(
                    f"lost the connection to the Dask scheduler at {address}"
                ) from error
            raise
        finally:
            executor.shutdown(wait=False)
            if client.status == "running":
                with suppress(Exception):  # workers that are gone have forgotten them
                    client.run(forget_shards, on_error="ignore")


@contextmanager
def _silence_client() -> Iterator[None]:
    """Silence the client's log of a broken connection, which is raised as an error."""
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
