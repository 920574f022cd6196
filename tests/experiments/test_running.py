"""One run: killed anywhere it goes on to the same bytes, and finished steps are not repeated."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.errors import DataError, DecoderError
from mosesplug.events import Event, IterationFinished
from mosesplug.experiments import running
from mosesplug.experiments.estimate import forecast_runs
from mosesplug.experiments.planning import ExperimentPlan, PlannedRun
from mosesplug.experiments.running import (
    finish_run,
    is_finished,
    read_record,
    translation_path,
)
from mosesplug.experiments.table import make_table
from tests.experiments.conftest import HEAD, KBMIRA

Plan = Callable[..., ExperimentPlan]
pytestmark = pytest.mark.usefixtures("decoder_in_process")

COMMAND = """
[systems.kbmira]
command = '''
sh -c 'mkdir "$1" && sed "s/^LM0= .*/LM0= 0.$2/" "$3" > "$1/tuned.ini" && touch "$1/run1.moses.ini"'
tune {directory} {seed} {config}
'''
result = "tuned.ini"
"""


def read_results(run: PlannedRun) -> dict[str, bytes]:
    """Return translations and weights of a run, without comments."""
    files = [
        *run.directory.glob("tests/*.out"),
        *run.work.glob("run*.dense"),
        run.work / "moses.ini",
    ]
    return {
        path.name: b"".join(
            line for line in path.read_bytes().splitlines(keepends=True) if line[:1] != b"#"
        )
        for path in files
    }


class _Killed(BaseException):
    """Ends a run as a signal does."""


def kill_after(iteration: int) -> Callable[[Event], None]:
    """Return a watcher that ends a run after an iteration."""

    def watch(event: Event) -> None:
        if isinstance(event, IterationFinished) and event.iteration == iteration:
            raise _Killed

    return watch


def test_a_killed_run_ends_with_the_same_bytes(
    plan: Plan, toy_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = plan(HEAD + KBMIRA)
    made.write_files()
    whole, _ = made.runs
    finish_run(whole)
    expected = read_results(whole)

    again = plan(HEAD + KBMIRA, directory=Path("again"))
    again.write_files()
    killed, _ = again.runs
    with pytest.raises(_Killed):
        finish_run(killed, kill_after(1))
    assert read_record(killed) is None
    assert json.loads((killed.directory / "cost.json").read_bytes())["cpu"] > 0.0
    # The second kill comes while a test set is being translated.
    with monkeypatch.context() as patch:
        patch.setattr(running, "translate_text", kill_after)
        with pytest.raises(TypeError):
            finish_run(killed)
    assert read_record(killed) is not None
    assert not is_finished(killed)
    finish_run(killed)
    assert is_finished(killed)
    assert read_results(killed) == expected
    record = read_record(killed)
    assert record is not None
    assert (record.interruptions, record.decodings, record.active) == (1, 2, 6)
    assert record.cpu > 0.0
    assert not (killed.directory / "cost.json").exists()


def test_finished_steps_are_not_run_again(plan: Plan, monkeypatch: pytest.MonkeyPatch) -> None:
    made = plan(HEAD + KBMIRA)
    made.write_files()
    run = made.runs[0]
    finish_run(run)
    before = {path: path.stat().st_mtime_ns for path in run.directory.rglob("*.out")}
    calls: list[str] = []
    monkeypatch.setattr(running, "tune", lambda *_: calls.append("tune"))
    finish_run(run)
    assert not calls
    assert {path: path.stat().st_mtime_ns for path in run.directory.rglob("*.out")} == before
    # A test set with other sentences is translated again, and nothing else is repeated.
    Path("other").write_text(Path("input").read_text().replace("ein", "der"))
    text = HEAD.replace('[tests.whole]\ninput = "input"', '[tests.whole]\ninput = "other"')
    other = plan(text + KBMIRA).runs[0]
    assert not is_finished(other)
    finish_run(other)
    assert is_finished(other)
    assert not calls
    assert {path: path.stat().st_mtime_ns for path in run.directory.rglob("*.out")} != before


def test_stores_lists_and_graphs_are_removed_unless_kept(plan: Plan) -> None:
    for text, is_kept in ((HEAD, False), ("keep-lists = true\n" + HEAD, True)):
        made = plan(text + KBMIRA, directory=Path(f"kept-{is_kept}"))
        made.write_files()
        finish_run(made.runs[0])
        # Search graphs, which this toy has not.
        (made.runs[0].work / "hypergraph").mkdir()
        finish_run(made.runs[0])
        names = {path.name for path in made.runs[0].work.iterdir()}
        assert {"moses.ini", "summary.json", "settings.toml"} <= names
        assert ("nbests.lmdb" in names) is ("hypergraph" in names) is is_kept
        assert any(name.endswith(".out.gz") for name in names) is is_kept


def test_another_definition_is_an_error(plan: Plan) -> None:
    made = plan(HEAD + KBMIRA)
    made.write_files()
    finish_run(made.runs[0])
    other = plan(HEAD + KBMIRA + "nbest = 10\n")
    with pytest.raises(DataError, match=r"run.json: .*\(nbest: 15, now 10\). Remove .*kbmira"):
        finish_run(other.runs[0])
    for use in (make_table, lambda other: forecast_runs(other.runs, other.runs)):
        with pytest.raises(DataError, match=r"\(nbest: 15, now 10\)"):
            use(other)
    # Threads change no result.
    finish_run(plan(HEAD + KBMIRA + "threads = 1\n").runs[0])


def test_other_programs_tune(plan: Plan) -> None:
    made = plan(HEAD + COMMAND)
    made.write_files()
    for run in made.runs:
        finish_run(run)
        assert f"LM0= 0.{run.seed}" in (run.work / "tuned.ini").read_text()
        record = read_record(run)
        assert record is not None
        assert (record.decodings, record.active) == (1, 6)
        assert len(translation_path(run, made.tests[0]).read_bytes().splitlines()) == 12


def test_a_program_that_fails_or_writes_no_result(plan: Plan) -> None:
    failing = "[systems.kbmira]\ncommand = \"sh -c 'echo broken >&2; exit 3' {directory} {seed}\"\n"
    made = plan(HEAD + failing)
    made.write_files()
    with pytest.raises(DecoderError, match="the tuning program ended with exit code 3"):
        finish_run(made.runs[0])
    silent = plan(
        HEAD + '[systems.kbmira]\ncommand = "sh -c true {directory} {seed}"\n',
        directory=Path("silent"),
    )
    silent.write_files()
    with pytest.raises(DataError, match=r"the tuning program wrote no .*work/moses.ini"):
        finish_run(silent.runs[0])


def test_untuned_weights_are_those_of_the_feature_set(plan: Plan) -> None:
    made = plan(f"{HEAD}{KBMIRA}[systems.plain]\nuntuned = true\nseeds = 1\n")
    made.write_files()
    [run] = made.runs_of(made.rows[1])
    finish_run(run)
    record = read_record(run)
    assert record is not None
    assert (record.decodings, record.active) == (0, 6)
