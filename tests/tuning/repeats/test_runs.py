"""Several runs of one tuning: seeds, directories, resumption, and whose weights are the result."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.moses.ini import read_moses_ini
from mosesplug.cli.run.running import list_runs
from mosesplug.decoders.prepare import prepare_config
from mosesplug.errors import DataError, UsageError
from mosesplug.events import Note, PhaseStarted
from mosesplug.metrics import metric
from mosesplug.results.render.tables import TextTable
from mosesplug.settings.decoding import GraphSettings, ModelFilter
from mosesplug.settings.online import HeldOutSet, Monitor
from mosesplug.settings.reported import ReportedMetric
from mosesplug.tuning import Configuration, tune
from mosesplug.tuning.conclude import has_free_scale
from mosesplug.tuning.repeats import runs as several_runs
from mosesplug.tuning.repeats.files import check_single, find_run_directories, share_filtered
from mosesplug.tuning.repeats.result import note_idle_runs
from mosesplug.tuning.repeats.runs import tune_several
from mosesplug.tuning.repeats.scores import (
    FinishedRun,
    find_median_run,
    measure_spread,
    read_finished_run,
    select_scores,
)
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.workspace import Workspace
from tests.tuning.conftest import make_toy

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any
Files = Callable[[Path], dict[str, bytes]]


def a_run(number: int, dev: float | None, heldout: float | None = None) -> FinishedRun:
    return FinishedRun(
        number=number, directory=Path(f"run.{number}"), seed=number, iterations=1, reason="",
        names=("LM0",), weights=Weights((1.0,)), dev=dev, dev_of="decoded", heldout=heldout,
        metric="BLEU", signature="BLEU", settings={},
    )  # fmt: skip


def test_the_spread_is_that_of_a_sample() -> None:
    found = measure_spread([0.2, None, 0.5, 0.3, 0.4])
    assert found is not None
    assert (found.runs, found.low, found.high) == (4, 0.2, 0.5)
    assert found.mean == pytest.approx(0.35)
    assert found.median == pytest.approx(0.35)
    assert found.optimizer == pytest.approx(np.std([0.2, 0.5, 0.3, 0.4], ddof=1))
    alone = measure_spread([0.2])
    assert alone is not None
    assert alone.optimizer is None
    assert measure_spread([None]) is None


@pytest.mark.parametrize(
    ("scores", "number"),
    [([0.3, 0.1, 0.2], 3), ([0.4, 0.1, 0.3, 0.2], 4), ([0.2, 0.2, 0.2], 2), ([0.5, 0.1], 2)],
)
def test_the_median_is_the_lower_of_two_in_the_middle(scores: list[float], number: int) -> None:
    runs = [a_run(place, score) for place, score in enumerate(scores, start=1)]
    assert find_median_run(runs).number == number


def test_held_out_scores_count_where_all_runs_have_one() -> None:
    runs = [a_run(1, 0.3, 0.1), a_run(2, 0.2, 0.2), a_run(3, 0.1, 0.3)]
    assert select_scores(runs) == ("heldout", (0.1, 0.2, 0.3))
    assert select_scores([*runs[:2], replace(runs[2], heldout=None)]) == (
        "dev",
        (0.3, 0.2, 0.1),
    )
    with pytest.raises(DataError, match=r"run\.2: its weights are not scored"):
        select_scores([runs[0], a_run(2, None)])


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Path]:
    """A toy system, and the working directory of a run on it."""
    system = make_toy(tmp_path_factory.mktemp("done"))
    tune(system.configuration("done", maximum_iterations=1))
    return system, system.directory / "done"


@pytest.fixture
def quick(done: tuple[Any, Path], monkeypatch: pytest.MonkeyPatch) -> tuple[Configuration, list]:
    """A tuning whose runs are copies of one, but for their scores and weights; and their calls.

    A run with seed S scores as S's place in a list says, and has LM weight S.
    """
    system, finished = done
    scores = {10: 0.30, 11: 0.50, 12: 0.40, 13: 0.45}
    calls: list[tuple[str, str, int | None]] = []
    shutil.rmtree(system.directory / "work", ignore_errors=True)

    def copied(configuration: Configuration, watch: Callable[[Any], None]) -> None:
        seed, place = configuration.optimization.seed, configuration.working_directory
        assert seed is not None
        calls.append((place.name, configuration.existing, seed))
        watch(Note("before"))
        shutil.copytree(finished, place, dirs_exist_ok=True)
        (place / "summary.json").unlink()
        watch(PhaseStarted(1, "decode"))
        summary = json.loads((finished / "summary.json").read_text())
        summary["iterations"][0]["first_best_score"] = scores[seed]
        summary["iterations"][0]["heldout"] = [{"updates": 0, "score": 1 - scores[seed]}]
        summary["result"]["weights"]["LM0_0"] = float(seed)
        summary["result"] |= {"decoded_in_iteration": 1, "score_of": "decoded"}
        (place / "summary.json").write_text(json.dumps(summary))
        (place / "moses.ini").write_text(f"seed {seed}\n")

    monkeypatch.setattr(several_runs, "tune", copied)
    base = system.configuration(select="best-dev")
    return replace(base, optimization=replace(base.optimization, seed=10)), calls


def test_seeds_directories_and_the_median(quick: Any) -> None:
    configuration, calls = quick
    result = tune_several(configuration, 3)
    work = configuration.working_directory
    assert calls == [("run.1", "refuse", 10), ("run.2", "refuse", 11), ("run.3", "refuse", 12)]
    assert [run.name for run in find_run_directories(work)] == ["run.1", "run.2", "run.3"]
    # 0.7, 0.5, 0.6 on the held-out text
    assert (result.choice, result.by, result.chosen_run and result.chosen_run.number) == (
        "median", "heldout", 3,
    )  # fmt: skip
    assert (work / "moses.ini").read_text() == "seed 12\n"
    summary = json.loads((work / "summary.json").read_text())
    assert summary["dev"]["mean"] == pytest.approx(0.4)
    assert summary["dev"]["s_opt"] == pytest.approx(0.1)
    assert [run["seed"] for run in summary["runs"]] == [10, 11, 12]
    assert summary["result"]["run"] == 3
    assert summary["result"]["weights"]["LM0_0"] == 12.0
    with pytest.raises(UsageError, match="holds 3 runs"):
        check_single(work)


def test_finished_runs_are_kept_and_more_can_follow(quick: Any, log: Log) -> None:
    configuration, calls = quick
    work = configuration.working_directory

    def killed(run: int, seed: int) -> None:
        if run == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune_several(configuration, 2, None, log, killed)
    with pytest.raises(UsageError, match="holds 2 runs: continue them with --continue"):
        tune_several(configuration, 2)
    again = replace(configuration, existing="continue")
    with pytest.raises(UsageError, match="seeds from 10 on, not 4"):
        tune_several(replace(again, optimization=replace(again.optimization, seed=4)), 2)
    del calls[:]
    tune_several(replace(again, optimization=replace(again.optimization, seed=None)), 2)
    assert calls == [("run.2", "refuse", 11)]
    (work / "run.2" / "summary.json").unlink()  # as if it had been killed in the midst
    tune_several(again, 4)
    assert calls[1:] == [
        ("run.2", "continue", 11), ("run.3", "refuse", 12), ("run.4", "refuse", 13),
    ]  # fmt: skip
    with pytest.raises(UsageError, match="holds 4 runs: continue with --runs 4 or more"):
        tune_several(again, 3)


def test_overwriting_leaves_nothing_of_earlier_runs(quick: Any) -> None:
    configuration, calls = quick
    work = configuration.working_directory
    tune_several(configuration, 3)
    del calls[:]
    anew = replace(
        configuration,
        existing="overwrite",
        optimization=replace(configuration.optimization, seed=11),
    )

    def refused(configuration: Configuration, watch: Callable[[Any], None]) -> None:
        watch(Note("before"))
        raise UsageError("no")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(several_runs, "tune", refused)
        with pytest.raises(UsageError, match="no"):
            tune_several(anew, 2)
    assert (work / "summary.json").is_file()  # what cannot be begun replaces nothing

    def killed(run: int, seed: int) -> None:
        if run == 2:
            assert [path.name for path in find_run_directories(work)] == ["run.1"]
            assert not (work / "moses.ini").exists()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune_several(anew, 2, began=killed)
    result = tune_several(replace(anew, existing="continue"), 2)
    assert calls == [("run.1", "overwrite", 11), ("run.2", "refuse", 12)]
    assert [run.seed for run in result.runs] == [11, 12]


def test_the_mean_of_all_runs(quick: Any) -> None:
    configuration, _ = quick
    result = tune_several(configuration, 2, "average")
    points = [np.array(run.weights.dense) for run in result.runs]
    mean = np.mean([point / np.abs(point).sum() for point in points], axis=0)
    np.testing.assert_allclose(result.weights.dense, mean, rtol=1e-12)
    written = read_moses_ini(configuration.working_directory / "moses.ini").weights
    assert written["LM0"] == (pytest.approx(mean[1], rel=1e-12),)
    # Where some features only are tuned, weights have a scale that must stay.
    some = replace(configuration.optimization, active=("LM0",))
    result = tune_several(
        replace(configuration, optimization=some, existing="continue"), 2, "average"
    )
    np.testing.assert_allclose(result.weights.dense, np.mean(points, axis=0), rtol=1e-12)


def test_fixed_weights_set_the_scale(quick: Any) -> None:
    configuration, _ = quick
    assert has_free_scale(configuration, {})
    assert has_free_scale(configuration, {"UnknownWordPenalty0": 1.0, "TM0_2": 0.0})
    assert not has_free_scale(configuration, {"UnknownWordPenalty0": 1.0, "TM0_2": 0.5})


def test_invalid_settings_are_rejected(quick: Any, done: tuple[Any, Path]) -> None:
    configuration, calls = quick
    _, single = done
    with pytest.raises(UsageError, match="holds a single run"):
        tune_several(replace(configuration, working_directory=single), 2)
    with pytest.raises(UsageError, match="2 at least"):
        tune_several(configuration, 1)
    with pytest.raises(UsageError, match="give --heldout, too"):
        tune_several(configuration, 2, "best-heldout")
    averaged = replace(configuration, select="average")
    on_graphs = replace(averaged, decoding=replace(averaged.decoding, graphs=GraphSettings()))
    on_graphs = replace(on_graphs, optimization=replace(on_graphs.optimization, algorithm="mert"))
    with pytest.raises(UsageError, match="no run can be the median one"):
        tune_several(on_graphs, 2, "median")
    inside = replace(configuration, working_directory=configuration.config.parent)
    with pytest.raises(UsageError, match=r"moses\.ini is both an input"):
        tune_several(inside, 2)
    assert calls == []
    # The mean of a run on lists has a score in them.
    assert tune_several(averaged, 2).choice == "median"


def test_runs_that_learned_nothing_or_are_alike_are_warnings(done: tuple[Any, Path]) -> None:
    _, finished = done
    run = read_finished_run(finished, 1, 10)
    start = replace(run, is_start=True)
    other = replace(run, weights=Weights((0.5, *run.weights.dense[1:])))
    for runs, message in (
        ((start, replace(other, number=2)), "run 1 of 2 ends with the starting weights"),
        ((start, replace(start, number=2)), "runs 1, 2 of 2 end with the starting weights"),
        ((run, replace(run, number=2)), "all runs end with the same weights"),
        ((run, other), None),
    ):
        notes: list[Note] = []
        note_idle_runs(runs, notes.append)
        assert [note.is_warning for note in notes] == [True] * (message is not None)
        assert message is None or notes[0].text.startswith(message)


def test_the_model_is_filtered_once(toy: Toy, log: Log) -> None:
    script, calls = toy.directory / "filter", toy.directory / "calls"
    script.write_text(f'#!/bin/sh\necho >> {calls}\nmkdir "$1" && cp "$2" "$1/moses.ini"\n')
    script.chmod(0o755)
    filtering = ModelFilter((str(script),), toy.directory / "input")

    def filtered(name: str) -> Path:
        one = toy.configuration(name, decoding={"filtering": filtering})
        one.working_directory.mkdir(exist_ok=True)
        files = Workspace(one.working_directory, 15)
        return prepare_config(
            one.config, files, log, filtering=one.decoding.filtering, cache=None, queue=None
        )

    config, first, other = (toy.directory / name for name in ("moses.ini", "first", "other"))
    filtered("first")
    share_filtered(config, first, other)
    assert filtered("other") == other / "filtered" / "moses.ini"
    assert calls.read_text() == "\n"
    config.write_bytes(config.read_bytes() + b"# changed\n")
    assert filtered("other").read_bytes() == config.read_bytes()
    assert not (other / "filtered").is_symlink()
    assert not (first / "filtered" / "moses.ini").read_bytes().endswith(b"# changed\n")
    assert calls.read_text() == "\n\n"
    config.write_bytes(config.read_bytes() + b"[feature]\nX path=model\n")
    for place in (first, toy.directory / "third"):
        place.mkdir(exist_ok=True)
        (place / "model").write_text(place.name)  # of one name, and not the same
    share_filtered(config, first, toy.directory / "third")
    assert not (toy.directory / "third" / "filtered").exists()


def test_a_run_equals_a_single_run_and_resumes_after_a_kill(
    toy: Toy, log: Log, left_by_run: Files
) -> None:
    (toy.directory / "heldout").write_bytes((toy.directory / "input").read_bytes())
    held_out = HeldOutSet(toy.directory / "heldout", toy.directory / "reference")
    monitors = (Monitor("same", held_out.input, held_out.references),)
    scored: dict[str, Any] = {"held_out": held_out, "monitors": monitors}
    scored["report_metrics"] = (ReportedMetric("WER", metric("WER")),)
    configuration = toy.configuration("several", maximum_iterations=2, **scored)

    class Killed(Exception):
        pass

    def watch(event: Any) -> None:
        log(event)
        phases = [(each.iteration, each.phase) for each in log.of(PhaseStarted)]
        if phases.count((2, "optimize")) == 2:
            raise Killed

    with pytest.raises(Killed):
        tune_several(configuration, 2, "best-heldout", watch)
    result = tune_several(replace(configuration, existing="continue"), 2, "best-heldout")
    alone = toy.configuration("alone", maximum_iterations=2, **scored)
    tune(replace(alone, optimization=replace(alone.optimization, seed=6)))
    assert left_by_run(toy.directory / "several" / "run.2") == left_by_run(alone.working_directory)
    assert result.chosen_run is not None
    scores = [run.heldout for run in result.runs]
    assert result.chosen_run.heldout == max(s for s in scores if s is not None)
    assert [run.monitors for run in result.runs] == [{"same": score} for score in scores]
    assert result.monitors == {"same": result.heldout}
    summary = json.loads((toy.directory / "several" / "summary.json").read_text())
    assert summary["monitors"]["same"] == summary["heldout"]
    errors = [run.reported["WER"] for run in result.runs]
    assert result.reported == {"WER": measure_spread(errors)}
    assert summary["reported"]["WER"]["max"] == max(errors)
    table, _, spreads, *_ = list_runs(result)
    assert isinstance(table, TextTable)
    assert isinstance(spreads, TextTable)
    assert table.rows[0][-3:] == ("held out", "same", "WER")
    assert table.rows[1][-1] == f"{1 - errors[0]:.4f}"
    assert spreads.rows[-1][4] == f"{1 - max(errors):.4f}"
    ini = (toy.directory / "several" / "moses.ini").read_bytes()
    assert ini == (result.chosen_run.directory / "moses.ini").read_bytes()
