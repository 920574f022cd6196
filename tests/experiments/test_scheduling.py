"""All runs of an experiment: one after the other or side by side; one failure stops no other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import mosesplug
from mosesplug.errors import DataError, UsageError
from mosesplug.events import Note
from mosesplug.experiments import scheduling
from mosesplug.experiments.planning import ExperimentPlan
from mosesplug.experiments.running import is_finished
from mosesplug.experiments.scheduling import finish_experiment
from tests.experiments.conftest import HEAD, KBMIRA

Plan = Callable[..., ExperimentPlan]
pytestmark = pytest.mark.usefixtures("decoder_in_process")

BROKEN = "[systems.broken]\ncommand = 'sh -c \"exit 3\" {directory} {seed}'\n"
PLAIN = "[systems.plain]\nuntuned = true\n"


class _Inline(Executor):
    """Runs tasks at once, as a worker does that has imported everything."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


def test_a_failed_run_does_not_stop_the_others(plan: Plan) -> None:
    made = plan(HEAD.replace('"kbmira"', '"plain"') + BROKEN + PLAIN)
    done: list[tuple[int, int, str]] = []
    notes: list[Any] = []
    failures = finish_experiment(
        made, progress=lambda *state: done.append(state), watch=notes.append
    )
    assert [failure.label for failure in failures] == [
        "broken/dense/small seed 1",
        "broken/dense/small seed 2",
    ]
    assert "exit code 3" in failures[0].message
    assert [is_finished(run) for run in made.runs] == [False, True, False, True]
    assert done[-1] == (4, 4, "plain/dense/small seed 2")
    warnings = [event.text for event in notes if isinstance(event, Note)]
    assert warnings[0].startswith("broken/dense/small seed 1 failed: the tuning program ended")


def test_events_name_their_run(plan: Plan) -> None:
    made = plan(HEAD + KBMIRA + "max-drop = 0.0\n")
    states: list[str] = []
    finish_experiment(made, progress=lambda done, total, what: states.append(what))
    assert "kbmira/dense/small seed 1, iteration 2" in states
    assert states[-1] == "kbmira/dense/small seed 2"


def test_runs_side_by_side_share_the_cores(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[Any, ...]] = []

    @contextmanager
    def open_executor(*arguments: Any) -> Iterator[Executor]:
        opened.append(arguments)
        yield _Inline()

    monkeypatch.setattr(scheduling, "open_executor", open_executor)
    monkeypatch.setattr(scheduling, "usable_cores", lambda: 8)
    threads: list[int] = []
    monkeypatch.setattr(
        scheduling, "finish_run", lambda run, watch: threads.append(run.values["threads"])
    )
    finish_experiment(plan(HEAD + KBMIRA), jobs=3)
    finish_experiment(plan(HEAD + KBMIRA + "threads = 5\n"), scheduler="tcp://host:1")
    assert opened == [("processes", 2, None), ("processes", 1, "tcp://host:1")]
    assert threads == [2, 2, 5, 5]


def test_systems_can_be_chosen(plan: Plan) -> None:
    made = plan(HEAD + KBMIRA + PLAIN)
    finish_experiment(made, ["plain"])
    assert [is_finished(run) for run in made.runs] == [False, True, False, True]
    finish_experiment(made, ["kbmira"], seeds=1)
    assert [is_finished(run) for run in made.runs] == [True, True, False, True]
    with pytest.raises(UsageError, match=r"no system plan in toy.toml. Did you mean plain\?"):
        finish_experiment(made, ["plan"])


def test_python_returns_the_table(toy_directory: Path) -> None:
    (toy_directory / "toy.toml").write_text(HEAD + KBMIRA + PLAIN)
    table = mosesplug.run_experiment("toy.toml")
    assert [(row.system, row.runs) for row in table.rows] == [("kbmira", 2), ("plain", 2)]
    assert (toy_directory / "results" / "index.html").is_file()
    (toy_directory / "toy.toml").write_text(HEAD + KBMIRA + BROKEN)
    with pytest.raises(DataError, match=r"failed runs of toy.toml: broken/dense/small seed 1: the"):
        mosesplug.run_experiment("toy.toml", systems=["broken"])
