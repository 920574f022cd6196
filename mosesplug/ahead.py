"""Work ahead in other threads, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["map_ahead", "read_ahead"]

_Item = TypeVar("_Item")
_Result = TypeVar("_Result")


def map_ahead(
    executor: Executor, work: Callable[[_Item], _Result], items: Iterable[_Item], count: int
) -> Iterator[_Result]:
    """Yield ``work(item)`` of each item, in the order of the items.

    ``Executor.map`` would take all items at once.

    Args:
        executor: the threads.
        work: its errors are raised in their turn.
        items: taken by the calling thread.
        count: maximum number of items that are taken before their results are asked for.
    """
    waiting: deque[Future[_Result]] = deque()
    for item in items:
        waiting.append(executor.submit(work, item))
        if len(waiting) > count:
            yield waiting.popleft().result()
    while waiting:
        yield waiting.popleft().result()


def read_ahead(items: Iterable[_Item], count: int = 1) -> Iterator[_Item]:
    """Return an iterator over items that another thread takes, from now on.

    Args:
        items: its errors are raised in their turn.
        count: number of items that are taken before they are asked for.
    """
    iterator = iter(items)
    executor = ThreadPoolExecutor(1)
    waiting: deque[Future[list[_Item]]] = deque()

    def take_next() -> list[_Item]:
        return list(islice(iterator, 1))

    waiting.extend(executor.submit(take_next) for _ in range(count))

    def yield_items() -> Iterator[_Item]:
        with executor:
            while found := waiting.popleft().result():
                waiting.append(executor.submit(take_next))
                yield from found

    return yield_items()
