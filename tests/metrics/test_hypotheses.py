"""Sharing hypotheses out among threads; what is refused is in the conformance tests."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from mosesplug.metrics.hypotheses import SMALLEST_SHARE, read_only, run_in_threads
from tests.waiting import LIMIT


@pytest.mark.parametrize("n", [0, 1, SMALLEST_SHARE - 1, 2 * SMALLEST_SHARE + 1, 7777])
@pytest.mark.parametrize("threads", [0, 1, 2, 3, 100])
def test_shares_are_the_whole_once(n: int, threads: int) -> None:
    visits = np.zeros(n, dtype=np.int64)
    shares = []

    def work(rows: slice) -> None:
        visits[rows] += 1
        shares.append(rows)

    run_in_threads(work, n, threads)
    assert np.all(visits == 1)
    assert len(shares) == max(1, min(threads, n // SMALLEST_SHARE))


def test_shares_run_at_the_same_time() -> None:
    meeting = threading.Barrier(2, timeout=LIMIT)

    def work(rows: slice) -> None:
        meeting.wait()

    run_in_threads(work, 2 * SMALLEST_SHARE, 2)
    assert not meeting.broken


def test_a_thread_that_fails_is_heard() -> None:
    def work(rows: slice) -> None:
        if rows.start:
            raise ArithmeticError("in a thread")

    with pytest.raises(ArithmeticError, match="in a thread"):
        run_in_threads(work, 2 * SMALLEST_SHARE, 2)


def test_read_only_views_share_memory_where_they_can() -> None:
    array = np.arange(6)
    view = read_only(array, np.int64)
    assert np.shares_memory(array, view)
    assert not view.flags.writeable
    assert array.flags.writeable
    assert not np.shares_memory(array, read_only(array[::2], np.int64))
    assert read_only(array, np.float64).tolist() == [0, 1, 2, 3, 4, 5]
