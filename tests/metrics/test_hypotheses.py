"""Sharing hypotheses out among threads; what is refused is in the conformance tests."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from mosesplug.metrics.hypotheses import SMALLEST_SHARE, run_in_threads
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
