"""The table of an experiment, against numbers that are computed by hand."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path

import pytest

import mosesplug
from mosesplug.experiments.estimate import ExperimentForecast, forecast_runs, format_duration
from mosesplug.experiments.outputs import write_table
from mosesplug.experiments.planning import ExperimentPlan, PlannedRun
from mosesplug.experiments.running import TuningRecord, translation_path
from mosesplug.experiments.table import (
    ExperimentTable,
    list_notes,
    make_table,
    tabulate_experiment,
)
from mosesplug.results.render.render import render

Plan = Callable[..., ExperimentPlan]

EXPERIMENT = """
baseline = "base"
metrics = ["WER"]
seeds = 2
trials = 200
directory = "results"
settings = { decoder = "./decoder" }
[features.dense]
config = "moses.ini"
[tuning.small]
input = "input"
refs = "reference"
sentences = 6
[tests.one]
input = "ten"
refs = "ten"
[tests.two]
input = "ten"
refs = "ten"
[systems.base]
[systems.new]
algorithm = "mert"
[systems.late]
algorithm = "pro"
"""
TEXT = [f"a{line} b c d e f g h i j" for line in range(10)]
"""100 words."""
RECORD = TuningRecord(1.0, 2.0, 0, 3, 4)


def finish(run: PlannedRun, errors: Mapping[str, int], record: TuningRecord = RECORD) -> None:
    """Leave a finished run, whose translations have this number of wrong words."""
    (run.directory / "tests").mkdir(parents=True)
    (run.directory / "tuned.json").write_text(json.dumps(asdict(record)))
    for test in run.tests:
        lines = [
            line.replace(" j", " x") if number < errors[test.name] else line
            for number, line in enumerate(TEXT)
        ]
        translation_path(run, test).write_text("".join(f"{line}\n" for line in lines))
        translation_path(run, test).with_suffix(".json").write_text(
            json.dumps({"input": test.digest, "cpu": record.wall / 20.0})
        )


@pytest.fixture
def made(plan: Plan, toy_directory: Path) -> ExperimentPlan:
    """An experiment of three systems of two seeds, of which the last one has not run."""
    (toy_directory / "ten").write_text("".join(f"{line}\n" for line in TEXT))
    made = plan(EXPERIMENT)
    base, new, _, base2, _, _ = made.runs
    finish(base, {"one": 8, "two": 2}, TuningRecord(100.0, 50.0, 0, 7, 14))
    finish(base2, {"one": 10, "two": 2}, TuningRecord(110.0, 60.0, 1, 8, 14))
    finish(new, {"one": 1, "two": 2}, TuningRecord(30.4, 20.0, 0, None, 11))
    return made


def test_means_deviations_and_costs(made: ExperimentPlan) -> None:
    table = make_table(made)
    base, new = table.rows
    # Error rates of 8 and 10 %: mean 9, standard deviation sqrt(2).
    assert [score.mean for score in base.tests] == pytest.approx([9.0, 2.0])
    assert [score.deviation for score in base.tests] == pytest.approx([2.0**0.5, 0.0])
    # The means over the test sets of the two runs are 5 and 6.
    assert (base.mean, base.deviation) == pytest.approx((5.5, 0.5**0.5))
    assert (base.cpu, base.wall, base.decodings, base.active) == (105.0, 55.0, 7.5, 14.0)
    assert (base.runs, base.planned, base.sentences) == (2, 2, 6)
    assert all(score.p is None and score.difference is None for score in base.tests)
    assert (new.mean, new.deviation, new.decodings) == (pytest.approx(1.5), None, None)
    assert [score.difference for score in new.tests] == pytest.approx([-8.0, 0.0])
    assert (new.runs, new.planned) == (1, 2)


def test_p_is_that_of_compare(made: ExperimentPlan) -> None:
    new = make_table(made).rows[1]
    base = [run.directory for run in made.runs_of(made.rows[0])]
    directory = made.runs_of(made.rows[1])[0].directory
    for score in new.tests:
        name = f"tests/{score.test}.out"
        systems = {"base": [path / name for path in base], "new": [directory / name]}
        compared = mosesplug.compare(systems, "ten", "WER", trials=200)
        assert score.p == compared[1].p_randomization
    # Equal systems differ as much in every trial.
    assert new.tests[1].p == 1.0
    assert new.tests[0].p is not None
    assert new.tests[0].p < 0.05


def test_table_for_people(made: ExperimentPlan) -> None:
    table = make_table(made)
    head, base, new = tabulate_experiment(table).plain
    p = f"{table.rows[1].tests[0].p:.4f}"
    assert head == (
        *("system", "seeds", "mean WER", "one", "p", "two", "p"),
        *("active", "decodings", "CPU s", "wall s", "test CPU s"),
    )
    assert base == (
        *("base", "2", "5.50 ± 0.71", "9.00 ± 1.41", "", "2.00 ± 0.00", ""),
        *("14", "7.5", "105", "55", "5.5"),
    )
    assert new == (
        "new",
        "1 of 2",
        "1.50",
        "1.00",
        p,
        "2.00",
        "1.0000",
        "11",
        "",
        "30",
        "20",
        "2.0",
    )
    notes = list_notes(table)
    assert notes[0].startswith("p: approximate randomization over all seeds against base/dense/")
    assert notes[1].endswith("what was repeated: base/dense/small")
    assert notes[2] == (
        "not finished: late/dense/small seed 1, new/dense/small seed 2, late/dense/small seed 2"
    )


def test_without_the_baseline_there_is_no_p(plan: Plan, toy_directory: Path) -> None:
    (toy_directory / "ten").write_text("".join(f"{line}\n" for line in TEXT))
    made = plan(EXPERIMENT)
    finish(made.runs[1], {"one": 5, "two": 5})
    [row] = make_table(made).rows
    assert [(score.mean, score.p) for score in row.tests] == [(pytest.approx(5.0), None)] * 2


def test_all_forms_of_the_table_are_written(made: ExperimentPlan) -> None:
    table = make_table(made)
    page = write_table(table, made).read_text()
    directory = made.experiment.directory
    assert "base" in (directory / "table.txt").read_text().splitlines()[1]
    assert (directory / "table.md").read_text().startswith("| system | seeds | mean WER | one | p ")
    assert (directory / "table.tex").read_text().startswith(r"\begin{tabular}{lrrrrrrrrrrr}")
    document = json.loads((directory / "table.json").read_text())
    assert document["rows"][0]["tests"][0]["scores"] == pytest.approx([8.0, 10.0])
    for text in (
        *("5.50 ± 0.71", "Score and CPU time", "Score and active features", "<svg"),
        *("Score and decoding time", "1.50, 2.0 test CPU s"),
    ):
        assert text in page
    assert "Learning curves" not in page  # there is one size
    assert page.count("<circle") == 6


def test_the_front_of_score_and_decoding_time(plan: Plan, toy_directory: Path) -> None:
    """Fewer errors in less time beat others; a line connects the rest, sorted by time."""
    (toy_directory / "ten").write_text("".join(f"{line}\n" for line in TEXT))
    made = plan(EXPERIMENT.replace("seeds = 2", "seeds = 1"))
    for run, (errors, seconds) in zip(made.runs, ((4, 20.0), (2, 40.0), (5, 60.0)), strict=True):
        finish(run, {"one": errors, "two": errors}, TuningRecord(1.0, seconds, 0, 3, 4))
    table = make_table(made)
    assert [row.test_cpu for row in table.rows] == [2.0, 4.0, 6.0]
    plot = write_table(table, made).read_text().partition("Score and decoding time")[2]
    marks = re.findall(r'<circle class="([^"]*)"[^>]*><title>([^:]*)', plot)
    assert {name for kind, name in marks if "optimal" in kind} == {"base", "new"}
    assert {name for kind, name in marks if "optimal" not in kind} == {"late"}
    assert {"base", "new", "late"} <= set(re.findall(r"<text [^>]*>([^<]*)<", plot))


def test_times_of_earlier_versions_are_unknown(made: ExperimentPlan) -> None:
    run = made.runs[0]
    path = translation_path(run, run.tests[0]).with_suffix(".json")
    path.write_text(json.dumps({"input": run.tests[0].digest}))
    base, new = make_table(made).rows
    assert base.test_cpu is None
    assert new.test_cpu == 2.0


def test_lines_connect_tuning_sets_of_one_file(plan: Plan, toy_directory: Path) -> None:
    (toy_directory / "ten").write_text("".join(f"{line}\n" for line in TEXT))
    more = """
[tuning.whole]
input = "input"
refs = "reference"
[tuning.other]
input = "ten"
refs = "ten"
[systems.base]
"""
    made = plan(EXPERIMENT.partition("[systems.base]")[0] + more)
    for run in made.runs:
        finish(run, {"one": run.n_sentences, "two": 0})
    page = write_table(make_table(made), made).read_text()
    curves = page.partition("Learning curves")[2]
    [points] = re.findall(r'<polyline class="line c0" points="([^"]*)"', curves)
    (left, top), (right, bottom) = (map(float, point.split(",")) for point in points.split())
    # 12 sentences are to the right of 6, and more errors are below.
    assert left < right
    assert top < bottom
    assert curves.count('<circle class="c0"') == 3


def test_a_table_of_nothing(plan: Plan, toy_directory: Path) -> None:
    (toy_directory / "ten").write_text("".join(f"{line}\n" for line in TEXT))
    made = plan(EXPERIMENT)
    table = make_table(made)
    assert isinstance(table, ExperimentTable)
    assert table.rows == ()
    write_table(table, made)
    assert list_notes(table)[-1].endswith("and 1 more")


def test_estimates_are_means_of_runs_that_are_alike(made: ExperimentPlan) -> None:
    """Of other seeds, else of other systems."""
    forecasts = forecast_runs(made.runs, made.runs)
    states = {(one.system, one.seed): (one.state, one.wall) for one in forecasts}
    assert states["base", 1] == ("finished", 0.0)
    assert states["new", 2] == ("not begun", pytest.approx(20.0))
    assert states["late", 1] == ("not begun", pytest.approx((50.0 + 60.0 + 20.0) / 3))
    # 20 and twice 130 / 3 seconds are 107, in two jobs 53.
    text = render(ExperimentForecast(forecasts, 2))
    assert text.endswith("\n\nestimated time to go: 53 s with --jobs 2\n")
    # Runs that are not among the chosen ones count, too.
    late = [run for run in made.runs if run.row.system == "late"]
    assert [one.based_on for one in forecast_runs(late, made.runs)] == ["other systems"] * 2


@pytest.mark.parametrize(
    ("seconds", "text"), [(5.4, "5 s"), (600.0, "10 min"), (3600.0, "1 h 00 min"), (9000, "2 h 30")]
)
def test_durations(seconds: float, text: str) -> None:
    assert format_duration(seconds).startswith(text)
