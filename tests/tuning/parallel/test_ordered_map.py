"""Test the ordered map over processes: order, errors, and cleanup."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from functools import partial
from pathlib import Path

import pytest

from mosesplug.cli.shared.exits import raise_on_signals
from mosesplug.errors import DataError, DecoderError
from mosesplug.tuning.parallel.ordered_map import map_in_order, start_in_order
from tests.waiting import wait_until


def square(number: int) -> int:
    time.sleep(0.001 * (number % 3))
    return number * number


def process_id(number: int) -> int:
    return os.getpid()


def fail_at_three(number: int) -> int:
    if number == 3:
        raise DataError("three")
    return number


def die_at_three(number: int) -> int:
    if number == 3:
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("processes", [1, 2, 5])
def test_results_come_in_order(processes: int) -> None:
    assert list(map_in_order(square, 12, processes)) == [n * n for n in range(12)]
    assert list(map_in_order(square, 0, processes)) == []


def test_the_work_is_shared_out() -> None:
    found = list(map_in_order(process_id, 6, 2))
    assert len(set(found)) == 2
    assert os.getpid() not in found
    assert list(map_in_order(process_id, 3, 1)) == [os.getpid()] * 3


def leave_a_file(directory: Path, number: int) -> int:
    (directory / str(number)).touch()
    return number


def test_work_may_start_ahead(tmp_path: Path) -> None:
    with start_in_order(partial(leave_a_file, tmp_path), 2, 2) as results:
        wait_until(lambda: len(list(tmp_path.iterdir())) == 2)
        assert list(results) == [0, 1]
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("processes", [1, 2])
def test_an_error_reaches_the_caller(processes: int) -> None:
    results = map_in_order(fail_at_three, 6, processes)
    assert [next(results) for _ in range(3)] == [0, 1, 2]
    with pytest.raises(DataError, match="three"):
        next(results)


def test_a_process_that_dies_is_an_error() -> None:
    with pytest.raises(DecoderError, match="died"):
        list(map_in_order(die_at_three, 6, 2))


def die_at_writing(number: int) -> bytes:
    threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGKILL)).start()
    return bytes(1 << 20)  # more than a pipe holds: it waits for the reader


def test_a_process_that_dies_at_writing_is_an_error() -> None:
    with start_in_order(die_at_writing, 2, 2) as results:
        for worker in multiprocessing.active_children():
            worker.join()
        with pytest.raises(DecoderError, match="died"):
            next(results)


def test_no_process_is_left() -> None:
    results = map_in_order(square, 1000, 3)
    assert next(results) == 0
    # One may have no task left to wait for.
    assert multiprocessing.active_children()
    results.close()
    assert multiprocessing.active_children() == []


def test_processes_end_at_once_and_in_silence(capfd: pytest.CaptureFixture[str]) -> None:
    """Also while they are starting, still with the handlers of the program that starts them."""
    for _ in range(10):
        with raise_on_signals(), pytest.raises(DataError), start_in_order(square, 4, 4):
            raise DataError
    assert multiprocessing.active_children() == []
    assert capfd.readouterr().err == ""
