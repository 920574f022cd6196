"""An iteration that is dropped: nothing in the working directory calls it finished any more."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from mosesplug.errors import DataError, StoreError
from mosesplug.events import CommandStarted
from mosesplug.results.views.maintenance import drop_iteration
from mosesplug.results.views.run import open_run
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from tests.results.runs import make_run
from tests.tuning.conftest import left_by_run, make_toy

__all__ = ["left_by_run"]


def test_a_run_continues_as_if_the_dropped_iteration_never_happened(
    tmp_path: Path, left_by_run: object
) -> None:
    toy = make_toy(tmp_path)
    settings: dict[str, Any] = {"maximum_iterations": 2, "minimum_change": 0.0}
    tune(toy.configuration("whole", **settings))
    shutil.copytree(tmp_path / "whole", tmp_path / "dropped")
    work = tmp_path / "dropped"
    mended = drop_iteration(work / "nbests.lmdb", 2)
    assert mended == [work / "finished_step.txt", work / "summary.json"]
    assert (work / "finished_step.txt").read_text() == "1\n"
    with open_run(work) as run:
        assert run.weights_origin == "those found in iteration 1"
    decoded: list[object] = []
    tune(toy.configuration("dropped", existing="continue", **settings), decoded.append)
    assert any(isinstance(event, CommandStarted) for event in decoded)
    assert left_by_run(work) == left_by_run(tmp_path / "whole")  # type: ignore[operator]


def test_dropping_the_first_iteration_leaves_none(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work")
    (work / "finished_step.txt").write_text("1\n")
    with pytest.raises(StoreError, match="the newest is 2"):
        drop_iteration(work / "nbests.lmdb", 1)
    assert (work / "finished_step.txt").read_text() == "1\n"
    # The file is older than the store: it lacks the second iteration.
    assert drop_iteration(work / "nbests.lmdb", 2) == []
    assert drop_iteration(work / "nbests.lmdb", 1) == [work / "finished_step.txt"]
    assert not (work / "finished_step.txt").exists()


def test_files_of_another_store_are_not_changed(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work")
    (work / "nbests.lmdb").rename(work / "copy.lmdb")
    for name, content in (("finished_step.txt", "2\n"), ("summary.json", "{}")):
        (work / name).write_text(content)
    with open_run(work / "copy.lmdb") as run:
        assert run.weights_origin == "those found in iteration 2"
    assert drop_iteration(work / "copy.lmdb", 2) == []
    assert (work / "finished_step.txt").read_text() == "2\n"


def test_a_step_that_is_not_a_number_is_an_error(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work")
    (work / "finished_step.txt").write_text("two\n")
    with pytest.raises(DataError, match="is not a number"):
        drop_iteration(work / "nbests.lmdb", 2)
    with NBestStore.open(work / "nbests.lmdb") as store:
        assert len(store.iterations()) == 2
