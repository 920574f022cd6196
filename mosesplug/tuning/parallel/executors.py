"""Executors: threads or processes of this machine, or workers of a Dask cluster.

All three are a ``concurrent.futures.Executor``, and no other module knows which one it has. Tasks
are pure functions of their arguments, so a cluster repeats the task of a dead worker on another
one, with the same result.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import (
    BrokenExecutor,
    CancelledError,
    Executor,
    ProcessPoolExecutor,
    ThreadPoolExecutor,
)
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache
from typing import cast

from mosesplug.errors import DataError, UsageError
from mosesplug.kernel_cache import Semaphore, share_warning
from mosesplug.settings.sharding import WorkerKind, check_address
from mosesplug.tuning.parallel.prepared import forget_shards
from mosesplug.tuning.parallel.watched_executor import WatchedExecutor


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
            "a worker process died. If memory ran out, use fewer workers (--threads, --shards)."
        ) from error
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


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
                " run by --continue."
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
