"""Work in other threads gives the same items and errors, in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mosesplug.ahead import map_ahead, read_ahead


@pytest.mark.parametrize("count", [1, 2, 9])
def test_items_in_order(count: int) -> None:
    assert list(read_ahead(range(5), count)) == [0, 1, 2, 3, 4]
    assert list(read_ahead([], count)) == []


def test_the_other_thread_starts_at_once_and_stays_near() -> None:
    started = threading.Event()
    taken: list[int] = []

    def items() -> Iterator[int]:
        started.set()
        for number in range(9):
            taken.append(number)
            yield number

    found = read_ahead(items(), 2)
    assert started.wait(10)
    assert next(found) == 0
    found.close()  # type: ignore[attr-defined]
    assert taken == [0, 1, 2]


def test_errors_come_in_their_turn() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("late")

    found = read_ahead(items(), 3)
    assert next(found) == 1
    with pytest.raises(ValueError, match="late"):
        next(found)


@pytest.mark.parametrize("threads", [1, 3])
def test_results_in_the_order_of_the_items(threads: int) -> None:
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(9):
            taken.append(number)
            yield number

    with ThreadPoolExecutor(threads) as pool:
        found = map_ahead(pool, lambda number: number**2, items(), 2)
        assert next(found) == 0
        assert taken == [0, 1, 2]
        assert list(found) == [number**2 for number in range(1, 9)]
