"""Test that tasks fail when their workers are gone for good."""

from __future__ import annotations

from concurrent.futures import CancelledError, Executor, Future
from typing import Any

import pytest

from mosesplug.tuning.parallel import cluster
from mosesplug.tuning.parallel.cluster import WatchedExecutor
from tests.waiting import LIMIT


class Held(Executor):
    """Keeps tasks until the test gives their outcome."""

    def __init__(self) -> None:
        self.tasks: list[Future[Any]] = []

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Future[Any]:
        self.tasks.append(Future())
        return self.tasks[-1]


class LostError(Exception):
    """The error of lost tasks."""


def watch(held: Held, count: Any, patience: float = LIMIT) -> WatchedExecutor:
    return WatchedExecutor(held, count, patience, LostError)


def test_outcomes_are_those_of_the_executor() -> None:
    held = Held()
    with watch(held, lambda: ["a"]) as executor:
        good, bad, lost, unwanted = (executor.submit(print) for _ in range(4))
        held.tasks[0].set_result(3)
        held.tasks[1].set_exception(KeyError("x"))
        held.tasks[2].cancel()
        assert unwanted.cancel()
    assert good.result(0) == 3
    assert isinstance(bad.exception(0), KeyError)
    with pytest.raises(CancelledError):
        lost.result(0)
    assert held.tasks[3].cancelled()


def test_tasks_fail_when_no_worker_comes_back() -> None:
    held = Held()
    with watch(held, list, 0.05) as executor:
        future = executor.submit(print)
        with pytest.raises(LostError):
            future.result(LIMIT)
        held.tasks[0].set_result(1)  # too late
        later = executor.submit(print)
        with pytest.raises(LostError):
            later.result(LIMIT)


@pytest.mark.parametrize("problem", [False, True], ids=["back in time", "unknown"])
def test_tasks_go_on_when_workers_come_back_or_cannot_be_counted(
    problem: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "_LONGEST_BEAT", 0.001)
    held: Held = Held()
    counted: list[int] = []

    def count() -> list[str]:
        counted.append(1)
        if len(counted) == 20:
            held.tasks[0].set_result(7)
        if problem:
            raise OSError
        return ["a"] * (len(counted) % 2)

    with watch(held, count) as executor:
        assert executor.submit(print).result(LIMIT) == 7
