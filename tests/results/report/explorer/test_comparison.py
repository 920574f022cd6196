"""Test which runs of one page are compared."""

from __future__ import annotations

from pathlib import Path

from mosesplug.results.report.explorer.comparison import compare_runs
from mosesplug.results.report.explorer.run_data import ExplorerRun, gather_explorer
from mosesplug.results.views.run import open_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.tuning.workdir.records import ListFigures
from tests.results.runs import gather_report, make_run


def explore(directory: Path, name: str) -> ExplorerRun:
    """The run of a directory as the page has it."""
    with open_run(directory) as run:
        return gather_explorer(run, ParallelText(), gather_report(run, ParallelText()), name, None)


def test_runs_that_cannot_be_compared_have_a_reason(tmp_path: Path) -> None:
    shards = ListFigures(0.25, 3, 9, 5)
    runs = [
        explore(make_run(tmp_path / "mira"), "mira"),
        explore(make_run(tmp_path / "online", lists=((), ()), shards=shards), "online"),
        explore(make_run(tmp_path / "wer", name="WER"), "wer"),
    ]
    assert compare_runs(runs) == [
        {"reason": "the lists of online are in the stores of its shards"},
        {"reason": "they were tuned by different metrics"},
    ]
    assert compare_runs(runs[:1]) == []
