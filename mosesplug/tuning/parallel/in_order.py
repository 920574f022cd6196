"""The same work on many items in several processes, results in the order of the items."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection
from multiprocessing.context import BaseContext
from typing import Any, TypeVar

from mosesplug.errors import DecoderError

__all__ = ["begun", "in_order"]

Result = TypeVar("Result")

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def in_order(
    work: Callable[[int], Result], n_items: int, processes: int
) -> Generator[Result, None, None]:
    """``work(0)``, ``work(1)``, ... computed by ``processes`` processes, begun when asked for one.

    As ``begun``; the processes are gone when the iterator is exhausted or closed.
    """
    with begun(work, n_items, processes) as results:
        yield from results


@contextmanager
def begun(
    work: Callable[[int], Result], n_items: int, processes: int
) -> Iterator[Iterator[Result]]:
    """``work(0)``, ``work(1)``, ... by ``processes`` processes that are at work at once.

    Item ``i`` belongs to process ``i % processes``, so the outcome does not depend on timing. With
    one process, or one item, the caller does the work itself, when it asks for the result. The
    processes are gone after the block, and by themselves soon after the caller is killed.

    Raises:
        Whatever ``work`` raises; DecoderError if a process dies.
    """
    processes = min(processes, n_items)
    if processes <= 1:
        yield map(work, range(n_items))
        return
    # A forked child shares the model with its parent; where there is no fork it gets a copy.
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
            with _signals_held():
                worker.start()
            workers.append(worker)
            send.close()
        yield (_received(ends[item % processes]) for item in range(n_items))
    finally:
        for worker in workers:
            worker.terminate()
        for end in ends:
            end.close()
        for worker in workers:
            worker.join()


@contextmanager
def _signals_held() -> Iterator[None]:
    """Let signals wait: a child would take them with its parent's handlers before it has its own.

    An exception that is raised there may be ignored, and the child go on.
    """
    earlier = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, earlier)


def _received(end: Connection) -> Any:
    """The next result of a process, or its error raised."""
    try:
        result, error = end.recv()
    except (EOFError, OSError):  # the latter if it died at writing
        raise DecoderError("a working process died (killed, or out of memory)") from None
    if error is not None:
        raise error
    return result


def _serve(
    work: Callable[[int], Result], items: range, send: Connection, inherited: tuple[Connection, ...]
) -> None:
    """Compute the items and send ``(result, None)`` or ``(None, error)``, in a child process."""
    # While a child holds the parent's ends, its own writes never fail, and it outlives the parent.
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
