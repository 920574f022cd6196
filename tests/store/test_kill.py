"""Killed anywhere, a store opens and holds every finished iteration; readers see no other."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import StoreError
from mosesplug.metrics.protocol import PreparedReferences
from mosesplug.store import NBestStore
from mosesplug.tuning_set import TuningSet
from tests.store.checks import check_rows, check_store
from tests.store.toys import StoreModel, ToyMetric
from tests.waiting import LIMIT

SCRIPT = Path(__file__).with_name("writer.py")


def load_writer() -> ModuleType:
    spec = importlib.util.spec_from_file_location("store_writer", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


WRITER = load_writer()
SIGKILLED = -9


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Callable[[], int]]]:
    """Hand a task to the writing process; the result waits for its exit code."""
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", str(SCRIPT), str(tmp_path_factory.mktemp("warm"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        cwd=SCRIPT.parent.parent.parent,
        env={"PYTHONPATH": str(SCRIPT.parent.parent.parent)},
    )
    assert process.stdin is not None
    assert process.stdout is not None

    def hand(**task: Any) -> Callable[[], int]:
        print(json.dumps(task), file=process.stdin, flush=True)
        return lambda: int(process.stdout.readline())  # type: ignore[union-attr]

    # When this is done, the process has loaded what it needs, and a test can time a task.
    assert hand(path=str(tmp_path_factory.mktemp("first")), iterations=(1, 1))() == 0
    yield hand
    process.stdin.close()
    assert process.wait(LIMIT) == 0
    process.stdout.close()


def check_finished(path: Path) -> int:
    """Compare a store with the model of its finished iterations; their number."""
    metric = ToyMetric()
    references = metric.prepare(WRITER.REFERENCES)
    try:
        store = NBestStore.open(path)
    except StoreError:
        # Killed before there was anything to open.
        return 0
    with store:
        n = len(store.iterations())
        model = StoreModel(WRITER.N_SENTENCES)
        for iteration in range(1, n + 1):
            model.add(WRITER.lines_of(iteration))
        check_store(store, model, metric, references)
        for record in store.iterations():
            assert record.record == {"iteration": record.iteration}
            assert record.result in (None, {"done": record.iteration})
        assert all(record.result for record in store.iterations()[:-1])
    return n


# Where, at which time there, and how many iterations are finished then.
POINTS = [
    ("block", 1, 1),
    ("block", 8, 1),
    ("score", 1, 1),
    ("score", 8, 1),
    ("write", 1, 1),
    ("put", 1, 1),
    ("put", 2, 1),
    ("put", 3, 1),
    ("committed", 1, 2),
    ("write", 2, 2),
    ("committed", 2, 2),
]


def test_killed_at_chosen_points(start: Callable[..., Callable[[], int]], tmp_path: Path) -> None:
    assert start(path=str(tmp_path), iterations=(1, 1))() == 0
    for point, count, finished in POINTS:
        task = {"path": str(tmp_path), "iterations": (2, 2), "point": point, "count": count}
        assert start(**task)() == SIGKILLED, (point, count)
        assert check_finished(tmp_path) == finished, (point, count)
        if finished == 2:
            with NBestStore.open(tmp_path, writable=True) as store:
                store.drop_last(2)
    assert start(path=str(tmp_path), iterations=(2, 3))() == 0
    assert check_finished(tmp_path) == 3


def check_open(path: Path, iteration: int) -> int:
    """Compare an iteration that grows in parts with those that its progress tells; their number."""
    try:
        store = NBestStore.open(path)
    except StoreError:
        return 0
    with store:
        found = store.open_iteration()
        if found is None:
            return 0
        assert found.iteration == iteration
        done = found.progress["done"]
        np.testing.assert_array_equal(found.progress["state"], np.full(3000, float(done)))
        parts = WRITER.parts_of(iteration)[:done]
        lines = [line for part in parts for line in part]
        assert found.sentences.tolist() == sorted({line.sentence for line in lines})
        batch = store.open_batch(found.sentences)
        truth = sorted(lines, key=lambda line: line.sentence)
        metric = ToyMetric()
        block = WRITER.make_list(truth)
        statistics = metric.statistics(
            metric.prepare(WRITER.REFERENCES), block.sentence_ids, block.buffer,
            block.text_starts, block.text_ends,
        )  # fmt: skip
        check_rows(batch, 0, truth, statistics)
        assert batch.n_hyps == len(truth)
    return int(done)


# Where, at which time there, and how many parts are stored then. For a part, three databases are
# written, each once; more often if the map was full, which is why no more is counted.
PART_POINTS = [
    ("block", 1, 0),
    ("write", 1, 0),
    ("put", 2, 0),
    ("put", 3, 0),
    ("committed", 1, 1),
    ("block", 3, 3),
    ("score", 1, 3),
    ("put", 1, 3),
    ("put", 3, 3),
    ("write", 2, 4),
    ("committed", 3, 7),
    ("write", 2, 8),
    ("put", 1, 8),
]


def test_killed_while_an_iteration_grows(
    start: Callable[..., Callable[[], int]], tmp_path: Path
) -> None:
    assert start(path=str(tmp_path), iterations=(1, 1))() == 0
    task = {"path": str(tmp_path), "iterations": (2, 2), "parts": True}
    for point, count, parts in PART_POINTS:
        assert start(**task, point=point, count=count)() == SIGKILLED, (point, count)
        assert check_finished(tmp_path) == 1, (point, count)
        assert check_open(tmp_path, 2) == parts, (point, count)
    # Finished, and killed before the result.
    assert start(**task, point="committed", count=1)() == SIGKILLED
    assert check_finished(tmp_path) == 2
    assert check_open(tmp_path, 3) == 0


def test_killed_at_any_time_while_iterations_grow(
    start: Callable[..., Callable[[], int]], tmp_path: Path
) -> None:
    began = time.perf_counter()
    assert start(path=str(tmp_path / "whole"), iterations=(1, 1), parts=True)() == 0
    whole = time.perf_counter() - began
    rng = np.random.default_rng(4)
    finished, parts = 0, 0
    for delay in rng.uniform(0.0, whole, 25).tolist():
        if finished == 2:
            (tmp_path / "data.mdb").unlink()
            finished = 0
        number = finished + 1
        path = str(tmp_path)
        code = start(path=path, iterations=(number, number), parts=True, delay=delay)()
        assert code in (0, SIGKILLED)
        found = check_finished(tmp_path)
        assert found in (finished, number)
        before, parts = parts, check_open(tmp_path, number)
        if found == number:
            assert parts == 0
            with NBestStore.open(tmp_path, writable=True) as store:
                store.record_result(found, {"done": found})
        else:
            assert parts >= before
        finished = found
    number = finished + 1
    assert start(path=str(tmp_path), iterations=(number, number), parts=True)() == 0
    assert check_finished(tmp_path) == number


def test_a_kill_during_creation(start: Callable[..., Callable[[], int]], tmp_path: Path) -> None:
    for count in (1, 2, 3):
        task = {"path": str(tmp_path), "iterations": (1, 1), "point": "write", "count": count}
        assert start(**task)() == SIGKILLED
        assert check_finished(tmp_path) == 0


def test_killed_at_any_time(start: Callable[..., Callable[[], int]], tmp_path: Path) -> None:
    began = time.perf_counter()
    assert start(path=str(tmp_path / "whole"), iterations=(1, 1))() == 0
    whole = time.perf_counter() - began
    rng = np.random.default_rng(3)
    finished = 0
    for delay in rng.uniform(0.0, 1.2 * whole, 30).tolist():
        if finished == 3:
            (tmp_path / "data.mdb").unlink()
            finished = 0
        path = str(tmp_path)
        code = start(path=path, iterations=(finished + 1, finished + 1), delay=delay)()
        assert code in (0, SIGKILLED)
        found = check_finished(tmp_path)
        assert found in (finished, finished + 1)
        if found == finished + 1:
            # Killed between the commit and the result: what a resumed run would do.
            with NBestStore.open(tmp_path, writable=True) as store:
                store.record_result(found, {"done": found})
        finished = found
    assert start(path=str(tmp_path), iterations=(finished + 1, finished + 1))() == 0
    assert check_finished(tmp_path) == finished + 1


@pytest.mark.parametrize("way", [{}, {"parts": True}], ids=["whole", "parts"])
def test_readers_see_finished_iterations_only(
    start: Callable[..., Callable[[], int]], tmp_path: Path, way: dict[str, bool]
) -> None:
    metric = ToyMetric()
    references = metric.prepare(WRITER.REFERENCES)
    path = tmp_path / "store"
    with NBestStore.open(path, writable=True, map_size=1 << 16):
        pass
    model = StoreModel(WRITER.N_SENTENCES)
    for iteration in range(1, 4):
        model.add(WRITER.lines_of(iteration))
    # The map grows in the writing process only, so this reader has to follow it.
    with NBestStore.open(path, map_size=1 << 16) as store:
        wait = start(path=str(path), iterations=(1, 3), seen=str(tmp_path), **way)
        n = 0
        while n < 3:
            before, n = n, len(store.iterations())
            assert n in (before, before + 1)
            if n:
                merged = store.tuning_set(range(1, n + 1))
                check_sentences(merged, model, n, metric, references)
                (tmp_path / str(n)).touch()
        assert wait() == 0
        assert (path / "data.mdb").stat().st_size > 1 << 16
        check_store(store, model, metric, references)


def check_sentences(
    merged: TuningSet, model: StoreModel, n: int, metric: ToyMetric, references: PreparedReferences
) -> None:
    """Compare two sentences of the first ``n`` iterations with the model."""
    for sentence in (0, WRITER.N_SENTENCES - 1):
        truth = model.merged(sentence, range(1, n + 1))
        first = merged.offsets[sentence]
        assert merged.offsets[sentence + 1] - first == len(truth)
        block = WRITER.make_list(truth)
        statistics = metric.statistics(
            references, block.sentence_ids, block.buffer, block.text_starts, block.text_ends
        )
        check_rows(merged, first, truth, statistics)
