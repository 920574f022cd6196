"""Map a function over items in several processes, with results in order."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from mosesplug.errors import DecoderError

Result = TypeVar("Result")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def map_in_order(
    work: Callable[[int], Result], n_items: int, processes: int
) -> Generator[Result, None, None]:
    """Yield ``work(0)``, ``work(1)``, ...; processes start with the first ``next()``.

    They end when the generator is exhausted or closed. See ``start_in_order``.
    """
    with start_in_order(work, n_items, processes) as results:
        yield from results


@contextmanager
def start_in_order(
    work: Callable[[int], Result], n_items: int, processes: int
) -> Iterator[Iterator[Result]]:
    """Start processes that compute ``work(0)``, ``work(1)``, ...; yield the results.

    Process ``i % processes`` computes item ``i``, so the results do not depend on timing. With one
    process, or one item, the caller computes each result when it asks for it. The processes end
    with the block, and soon after the caller is killed.
    """
    processes = min(processes, n_items)
    if processes <= 1:
        yield map(work, range(n_items))
        return
    # A forked child shares the model with its parent; a spawned one gets a copy.
    method = "fork" if "fork" in multiprocessing.get_all_start_methods() else "spawn"
    context: BaseContext = multiprocessing.get_context(method)
    ends: list[Connection] = []
    workers = []
    try:
        for number in range(processes):
            receive, send = context.Pipe(duplex=False)
            ends.append(receive)
            items = range(number, n_items, processes)
            inherited = tuple(ends) if method == "fork" else ()
            worker = context.Process(  # type: ignore[attr-defined]
                target=_serve, args=(work, items, send, inherited), daemon=True
            )
            with _block_signals():
                worker.start()
            workers.append(worker)
            send.close()
        yield (_receive(ends[item % processes]) for item in range(n_items))
    finally:
        for worker in workers:
            worker.terminate()
        for end in ends:
            end.close()
        for worker in workers:
            worker.join()


@contextmanager
def _block_signals() -> Iterator[None]:
    """Delay signals: a new child would run its parent's handlers.

    Python may ignore an exception that such a handler raises, and the child would keep running.
    """
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


def _receive(end: Connection) -> Any:
    """Return the next result of a process, or raise its error."""
    try:
        result, error = end.recv()
    except (EOFError, OSError):  # OSError if the process died while writing
        raise DecoderError(
            "a worker process died: it was killed, or the machine ran out of memory"
        ) from None
    if error is not None:
        raise error
    return result


def _serve(
    work: Callable[[int], Result], items: range, send: Connection, inherited: tuple[Connection, ...]
) -> None:
    """In a child, compute the items; send ``(result, None)`` or ``(None, error)``."""
    # While a child holds the parent's ends, its writes never fail and it outlives the parent.
    for end in inherited:
        end.close()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if signal.getsignal(signal.SIGHUP) != signal.SIG_IGN:
        signal.signal(signal.SIGHUP, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _SIGNALS)
    for item in items:
        try:
            message: tuple[Result | None, Exception | None] = (work(item), None)
        except Exception as error:
            message = (None, error)
        try:
            send.send(message)
        except BrokenPipeError:
            return
