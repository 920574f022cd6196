"""An iterator in another thread yields the same items and errors."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mosesplug.moses_tools.read_ahead import read_ahead


@pytest.mark.parametrize("count", [1, 2, 9])
def test_items_in_order(count: int) -> None:
    with ThreadPoolExecutor(1) as pool:
        assert list(read_ahead(range(5), pool, count)) == [0, 1, 2, 3, 4]
        assert list(read_ahead([], pool, count)) == []


def test_the_other_thread_starts_at_once_and_stays_near() -> None:
    started = threading.Event()
    taken: list[int] = []

    def items() -> Iterator[int]:
        started.set()
        for number in range(9):
            taken.append(number)
            yield number

    with ThreadPoolExecutor(1) as pool:
        found = read_ahead(items(), pool, 2)
        assert started.wait(10)
        assert next(found) == 0
    assert taken == [0, 1, 2]


def test_errors_come_in_their_turn() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("late")

    with ThreadPoolExecutor(1) as pool:
        found = read_ahead(items(), pool, 3)
        assert next(found) == 1
        with pytest.raises(ValueError, match="late"):
            next(found)
