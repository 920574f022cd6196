"""Advance an iterator in another thread, while this one uses the items before."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

__all__ = ["read_ahead"]

_Item = TypeVar("_Item")


def read_ahead(items: Iterable[_Item], pool: ThreadPoolExecutor, count: int) -> Iterator[_Item]:
    """Return an iterator over items that a thread prepares from now on.

    Args:
        items: its errors are raised in their turn.
        pool: one thread, used for nothing else.
        count: number of items that are prepared before they are asked for.
    """
    iterator = iter(items)
    waiting: deque[Future[list[_Item]]] = deque()

    def take_next() -> list[_Item]:
        return list(islice(iterator, 1))

    waiting.extend(pool.submit(take_next) for _ in range(count))

    def yield_items() -> Iterator[_Item]:
        while found := waiting.popleft().result():
            waiting.append(pool.submit(take_next))
            yield from found

    return yield_items()
