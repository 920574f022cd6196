"""Work ahead in other threads, with results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from itertools import islice
from typing import Self, TypeVar

__all__ = ["ReadAhead", "map_ahead"]

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


class ReadAhead(Iterator[_Item]):
    """An iterator over items that another thread takes, from now on.

    Leaving its block or calling ``close`` ends the thread after the item that it is taking. The
    thread also ends after the last item.
    """

    def __init__(self, items: Iterable[_Item], count: int = 1) -> None:
        """Start the thread.

        Args:
            items: its errors are raised in their turn.
            count: number of items that are taken before they are asked for.
        """
        self._items = iter(items)
        self._executor = ThreadPoolExecutor(1)
        self._waiting: deque[Future[list[_Item]]] = deque()
        for _ in range(count):
            self._submit()

    def _submit(self) -> None:
        self._waiting.append(self._executor.submit(lambda: list(islice(self._items, 1))))

    def __next__(self) -> _Item:
        if not self._waiting:
            raise StopIteration
        try:
            found = self._waiting.popleft().result()
        except BaseException:
            self.close()
            raise
        if not found:
            self.close()
            raise StopIteration
        self._submit()
        return found[0]

    def close(self) -> None:
        """End the thread, and close the items. Those that were not asked for are dropped."""
        self._end(wait=True)
        if isinstance(self._items, Generator):
            self._items.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.close()
        else:  # an error is not to wait for the item
            self._end(wait=False)

    def _end(self, *, wait: bool) -> None:
        self._waiting.clear()
        self._executor.shutdown(wait=wait, cancel_futures=True)
