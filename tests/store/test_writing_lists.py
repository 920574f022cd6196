"""Large lists, which are stored in several transactions: the same store, or nothing of them."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError
from mosesplug.errors import StoreError
from mosesplug.store import NBestStore, writing
from mosesplug.store.files.environment import Environment
from tests.store.test_kill import SIGKILLED, check_finished
from tests.store.test_kill import start as start
from tests.store.test_raw import everything
from tests.store.toys import Hypothesis, ToyMetric, make_list

REFERENCES = ((b"w1 w2",) * 6,)
Blocks = list[list[Hypothesis]]


@pytest.fixture(autouse=True)
def _one_date(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mosesplug.store.writing._now", lambda: "2020-02-02T20:20:02+00:00")


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Store the records of each block in a transaction of its own."""
    monkeypatch.setattr(writing, "TRANSACTION_BYTES", 1)


def iteration_of(seed: int) -> Blocks:
    """Lists of six sentences in four blocks, not in order; half of each repeats."""
    rng = np.random.default_rng(5)
    words = rng.integers(0, 6, (6, 12, 2))
    order = np.random.default_rng(seed).permutation(6).tolist()
    lines = {
        i: [
            Hypothesis(
                i,
                b" ".join(b"w%d" % word for word in words[i, j]),
                (float(j), float(i), 0.0),
                ((f"s_{words[i, j, 0]}", 1.0),),
                -float(j),
            )
            for j in range(4 * seed, 4 * seed + 8)
        ]
        for i in range(6)
    }
    groups = (order[:2], order[2:3], order[3:5], order[5:])
    return [[line for i in sentences for line in lines[i]] for sentences in groups]


def add(store: NBestStore, blocks: Blocks, threads: int = 1) -> Any:
    metric = ToyMetric()
    return store.add_iteration(
        len(store.iterations()) + 1,
        map(make_list, blocks),
        metric=metric,
        references=metric.prepare(REFERENCES),
        n_sentences=6,
        record={},
        threads=threads,
    )


def fill(path: Path, threads: int) -> list[Any]:
    """Add two iterations to a map that is too small for them, and return their reports."""
    with NBestStore.open(path, writable=True, map_size=1 << 16) as store:
        reports = [add(store, iteration_of(seed), threads) for seed in range(2)]
        assert store.verify_iteration(1).faults == ()
    return reports


@pytest.mark.parametrize("threads", [1, 2])
def test_the_bytes_are_those_of_one_transaction(
    threads: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written, write = [], Environment.write

    def counted(self: Environment, action: Callable[[Any], Any]) -> Any:
        written.append(self.path)
        return write(self, action)

    monkeypatch.setattr(Environment, "write", counted)
    whole = fill(tmp_path / "whole", 1)
    n_whole = len(written)
    monkeypatch.setattr(writing, "TRANSACTION_BYTES", 1)
    assert fill(tmp_path / "parts", threads) == whole
    assert len(written) - n_whole == n_whole + 2 * 4
    assert everything(tmp_path / "parts") == everything(tmp_path / "whole")


FAULTS = {
    "is not finite": [Hypothesis(5, b"a", score=math.inf)],
    "sentence 0 already has a list": [Hypothesis(0, b"a")],
    "sentence 6 does not exist": [Hypothesis(6, b"a")],
}


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("message", FAULTS)
def test_an_error_leaves_nothing(message: str, tmp_path: Path) -> None:
    path = tmp_path / "store"
    with NBestStore.open(path, writable=True) as store:
        add(store, iteration_of(0))
    before = everything(path)
    bad = [[Hypothesis(i, b"a", score=0.0)] for i in range(4)]
    with (
        NBestStore.open(path, writable=True) as store,
        pytest.raises(FormatError, match=message),
    ):
        add(store, [*bad, FAULTS[message]])
    assert everything(path) == before
    with NBestStore.open(path, writable=True) as store:
        add(store, iteration_of(1))
    fill(tmp_path / "other", 1)
    assert everything(path) == everything(tmp_path / "other")


@pytest.mark.usefixtures("small")
def test_a_wrong_iteration_removes_nothing(tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, iteration_of(0))
    before, metric = everything(tmp_path), ToyMetric()
    with (
        NBestStore.open(tmp_path, writable=True) as store,
        pytest.raises(StoreError, match="the next one is 2"),
    ):
        store.add_iteration(
            1, [], metric=metric, references=metric.prepare(REFERENCES), n_sentences=6, record={}
        )
    assert everything(tmp_path) == before


# Where, at which time there, and how many iterations are finished then: eight transactions of one
# block each and the last one are written.
POINTS = [("block", 5, 1), ("put", 3, 1), ("committed", 1, 1), ("committed", 8, 1), ("write", 9, 1)]


def test_killed_between_transactions(
    start: Callable[..., Callable[[], int]], tmp_path: Path
) -> None:
    assert start(path=str(tmp_path), iterations=(1, 1))() == 0
    for point, count, finished in POINTS:
        task = {"path": str(tmp_path), "iterations": (2, 2), "point": point, "count": count}
        # Each attempt first removes what the one before has left, in one more transaction.
        assert start(**task, transaction_bytes=1)() == SIGKILLED, (point, count)
        assert check_finished(tmp_path) == finished, (point, count)
    assert any(key.startswith(b"\0\0\0\2") for key in everything(tmp_path)[b"kbest"])
    assert start(path=str(tmp_path), iterations=(2, 3))() == 0
    assert check_finished(tmp_path) == 3
    other = tmp_path / "other"
    other.mkdir()
    assert start(path=str(other), iterations=(1, 3))() == 0
    for name in (b"kbest", b"statistics"):
        assert everything(tmp_path)[name] == everything(other)[name]


def test_lists_that_a_killed_process_left_go_with_the_iteration_before(
    start: Callable[..., Callable[[], int]], tmp_path: Path
) -> None:
    assert start(path=str(tmp_path), iterations=(1, 1))() == 0
    task = {"path": str(tmp_path), "iterations": (2, 2), "point": "committed", "count": 3}
    assert start(**task, transaction_bytes=1)() == SIGKILLED
    with NBestStore.open(tmp_path, writable=True) as store:
        store.drop_last(1)
    assert not everything(tmp_path)[b"kbest"]
