"""Work in other threads gives the same items and errors, in order."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from mosesplug.ahead import ReadAhead, map_ahead
from tests.waiting import wait_until


@pytest.mark.parametrize("count", [1, 2, 9])
def test_items_in_order(count: int) -> None:
    assert list(ReadAhead(range(5), count)) == [0, 1, 2, 3, 4]
    assert list(ReadAhead([], count)) == []


def test_the_other_thread_starts_at_once_and_stays_near() -> None:
    started = threading.Event()
    taken: list[int] = []

    def items() -> Iterator[int]:
        started.set()
        for number in range(9):
            taken.append(number)
            yield number

    found = ReadAhead(items(), 2)
    assert started.wait(10)
    assert next(found) == 0
    assert next(found) == 1
    found.close()
    assert taken[:2] == [0, 1]
    assert len(taken) <= 4
    assert list(found) == []


def test_what_nobody_asks_for_is_not_waited_for() -> None:
    first = threading.Event()
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(9):
            taken.append(number)
            yield number
            assert first.wait(10)

    found = ReadAhead(items(), 8)
    asked = list(found._waiting)
    closing = threading.Thread(target=found.close)
    closing.start()
    wait_until(lambda: all(each.cancelled() for each in asked[2:]))
    first.set()
    closing.join()
    assert len(taken) <= 2


def test_errors_come_in_their_turn() -> None:
    def items() -> Iterator[int]:
        yield 1
        raise ValueError("late")

    found = ReadAhead(items(), 3)
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
