"""Where work runs: threads, processes of this machine, or the workers of a Dask cluster.

All three are a ``concurrent.futures.Executor``; nothing else here or elsewhere knows which one it
has. Tasks are pure functions of what they are given, so one whose worker died is done again by
another worker of a cluster, with the same result.
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
from contextlib import contextmanager

from mosesplug.errors import DataError
from mosesplug.settings.sharding import WorkerKind, check_address

__all__ = ["Ending", "cluster", "processes", "threads", "workers"]


class Ending:
    """Tells threads, which nobody can end, that they are to end; closes what they wait for.

    Attributes:
        soon: set it, and they end before they begin something else.
    """

    def __init__(self) -> None:
        self.soon = threading.Event()
        self._at_once = threading.Event()
        self._closers: list[Callable[[], None]] = []

    def closes(self, close: Callable[[], None]) -> None:
        """Call this when they are to end at once, or now if they are; from whatever thread."""
        self._closers.append(close)
        if self._at_once.is_set():
            close()

    def now(self) -> None:
        """Let them end at once."""
        self.soon.set()
        self._at_once.set()
        # All at once: each may take some seconds.
        closing = [threading.Thread(target=close) for close in self._closers]
        for thread in closing:
            thread.start()
        for thread in closing:
            thread.join()

    def check(self, *_: object) -> None:
        """Nothing, or an error where a thread is to end at once.

        Raises:
            CancelledError: it is.
        """
        if self._at_once.is_set():
            raise CancelledError


@contextmanager
def workers(kind: WorkerKind, count: int, scheduler: str | None = None) -> Iterator[Executor]:
    """Workers that take functions, until the block ends.

    Args:
        kind: threads or processes of this machine.
        count: how many; a cluster has as many as it has.
        scheduler: address of a Dask scheduler, whose workers are taken instead.

    Raises:
        UsageError: a cluster is asked for and the package ``distributed`` is not installed.
        DataError: no scheduler answers there, or it has no workers; or workers died.
    """
    if scheduler is not None:
        chosen = cluster(scheduler)
    elif kind == "processes":
        chosen = processes(count)
    else:
        chosen = threads(count)
    with chosen as executor:
        yield executor


@contextmanager
def threads(count: int) -> Iterator[Executor]:
    """Threads of this process; what waits is not begun any more when the block fails."""
    executor = ThreadPoolExecutor(count, thread_name_prefix="mosesplug")
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def processes(count: int) -> Iterator[Executor]:
    """Fresh processes: a fork would copy the locks of Numba's threads, and the store's map.

    They end with this process, however it ends, and at once when the block fails.

    Raises:
        DataError: one of them died.
    """
    context = multiprocessing.get_context("spawn")
    others = set(multiprocessing.active_children())
    executor = ProcessPoolExecutor(count, mp_context=context, initializer=_end_with_parent)
    try:
        yield executor
    except BrokenExecutor as error:
        raise DataError(
            "a worker process died; if memory ran out, take fewer workers (--threads, --shards)"
        ) from error
    except BaseException:
        for child in set(multiprocessing.active_children()) - others:
            child.terminate()
        raise
    finally:
        executor.shutdown(cancel_futures=True)


@contextmanager
def cluster(address: str, *, patience: float = 30.0) -> Iterator[Executor]:
    """The workers of a Dask cluster, which need this software and its versions installed.

    A task whose worker died is given to another one, three times; then it is given up.

    Args:
        address: of the scheduler, such as ``tcp://host:8786``.
        patience: seconds to wait for the scheduler to answer, and then for its first worker.

    Raises:
        UsageError: the package ``distributed`` is not installed, or this is no address.
        DataError: no scheduler answers there, or no longer, or its workers are missing, lack
            software, or keep dying.
    """
    check_address(address)
    import dask
    import distributed

    try:
        client = distributed.Client(address, timeout=patience, set_as_default=False)
    except (OSError, ValueError) as error:
        raise DataError(f"no Dask scheduler answers at {address}: {error}") from error
    with _one_voice(), client:
        try:
            client.wait_for_workers(1, timeout=patience)
        except TimeoutError as error:
            raise DataError(
                f"the Dask scheduler at {address} has no workers; start some: dask worker {address}"
            ) from error
        executor = client.get_executor(pure=False)
        try:
            # A learner's state is one large array or several, and no mistake.
            with dask.config.set({"distributed.admin.large-graph-warning-threshold": "64GB"}):
                yield executor
        except distributed.KilledWorker as error:
            raise DataError(
                f"workers of the cluster at {address} died again and again on the same task; "
                "their logs say why"
            ) from error
        except ImportError as error:
            raise DataError(
                f"workers of the cluster at {address} lack software that this process has: {error}"
            ) from error
        except Exception as error:
            if client.status != "running":
                raise DataError(
                    f"the connection to the Dask scheduler at {address} broke and did not come back"
                ) from error
            raise
        finally:
            executor.shutdown(wait=False)


@contextmanager
def _one_voice() -> Iterator[None]:
    """Dask's client logs a broken connection with all its frames: here it is an error that is told.

    The level is set back at the end.
    """
    logger = logging.getLogger("distributed.client")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)


def _end_with_parent() -> None:
    """In a new worker: let the parent answer Ctrl-C, and end at once when it is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    if parent is not None:
        threading.Thread(target=_leave_after, args=(parent.join,), daemon=True).start()


def _leave_after(wait: Callable[[], None]) -> None:
    wait()
    os._exit(1)
