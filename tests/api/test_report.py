"""Test figures and pages of a run, and that the command writes the same bytes."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

import mosesplug
from mosesplug.cli.main import main
from mosesplug.results.report.data import ReportData
from mosesplug.results.report.figures import FIGURES, render_png
from mosesplug.results.report.gather import gather_figure
from mosesplug.results.views.run import open_run as open_stored_run
from mosesplug.results.views.texts import ParallelText
from tests.results.runs import REFERENCE, gather_report, make_run, read_graph

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with search graphs, which no test changes."""
    directory = tmp_path_factory.mktemp("run")
    return make_run(directory / "work", graph=read_graph(directory))


@pytest.fixture(scope="module")
def data(made: Path) -> ReportData:
    """All that a report of the run shows, without the references."""
    with open_stored_run(made) as stored:
        return gather_report(stored, ParallelText())


@pytest.fixture
def work(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the working directory, and the references beside it."""
    (tmp_path / "dev.en").write_bytes(b"\n".join(REFERENCE) + b"\n")
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(made, tmp_path / "work"))


def call(*words: str) -> int:
    """Return the exit code of a command."""
    with pytest.raises(SystemExit) as end:
        main(list(words))
    return int(end.value.code or 0)


@pytest.mark.usefixtures("figures_without_svg")
def test_page_equals_that_of_the_command(work: Path) -> None:
    assert call("report", "work", "--refs", "dev.en", "-o", "cli.html", "--quiet") == 0
    calls: list[tuple[int, int, str]] = []
    path = mosesplug.report("work", references="dev.en", progress=lambda *call: calls.append(call))
    assert path == Path("report.html")
    assert path.read_bytes() == Path("cli.html").read_bytes()
    assert calls[-1][:2] == (8, 8)
    mosesplug.open_run("work").report("run.html", references="dev.en", title="Tuning in work")
    assert Path("run.html").read_bytes() == Path("cli.html").read_bytes()


@pytest.mark.usefixtures("figures_without_svg")
def test_several_runs_on_one_page(work: Path) -> None:
    other = make_run(work.parent / "other")
    page = mosesplug.report([work, mosesplug.open_run(other)], "both.html").read_text()
    assert "<title>Tuning in work, other</title>" in page
    assert page.count("<h2") == len(set(re.findall('<h2 id="(.*?)"', page)))
    with pytest.raises(mosesplug.UsageError, match="shows one run"):
        mosesplug.report([work, other], figure="scores")
    with pytest.raises(mosesplug.UsageError, match="at least one run"):
        mosesplug.report([])


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"examples": -1}, "examples is -1: give an integer of at least 0"),
        ({"sentences": 0}, "sentences is 0: give an integer of at least 1"),
        ({"dpi": 0}, "dpi is 0: give an integer of at least 50"),
        ({"max_size": float("nan")}, "max_size is nan: give a number of at least 0.001"),
        ({"dpi": 100}, "dpi is the resolution of a figure"),
        ({"all_hypotheses": True, "max_size": 5}, "all_hypotheses and max_size exclude each other"),
        ({"figure": "scores", "max_size": 5}, "scores does not depend on max_size: omit it"),
        ({"figure": "weights", "sentence": 2}, "weights does not depend on sentence: omit it"),
    ],
)
def test_arguments_that_cannot_be_used_are_rejected(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(mosesplug.UsageError, match=message):
        mosesplug.report("work", **keywords)


@pytest.mark.usefixtures("figures_without_svg")
def test_page_in_a_notebook(work: Path) -> None:
    page = mosesplug.open_run("work").explore(references="dev.en", output="explored.html")
    assert page.path == Path("explored.html")
    assert page.path.read_bytes().startswith(b"<!DOCTYPE html>")
    frame = page._repr_html_()
    assert frame.startswith("<iframe srcdoc=")
    source = html.unescape(frame.split('srcdoc="')[1].split('"')[0])
    assert source == page.path.read_text()
    assert mosesplug.open_run("work").explore().path.name == "report.html"


def test_figure_equals_that_of_the_command(work: Path) -> None:
    assert call("report", "work", "--png", "scores", "--dpi", "60", "-o", "cli.png") == 0
    assert mosesplug.report("work", figure="scores", dpi=60) == Path("scores.png")
    assert Path("scores.png").read_bytes() == Path("cli.png").read_bytes()
    mosesplug.open_run(work).plot("scores").savefig("plot.png", dpi=60)
    assert Path("plot.png").read_bytes() == Path("cli.png").read_bytes()


@pytest.mark.parametrize("name", FIGURES)
def test_figure_needs_only_its_own_data(name: str, made: Path, data: ReportData) -> None:
    with open_stored_run(made) as stored:
        part = render_png(name, gather_figure(stored, name), 50)
    assert part == render_png(name, data, 50)


def test_figure_shows_itself_in_notebooks(work: Path) -> None:
    figure = mosesplug.open_run(work).plot("weights")
    assert figure._repr_png_().startswith(b"\x89PNG")  # type: ignore[attr-defined]
    axes = figure.axes[0]
    assert axes.get_xlabel() == "iteration"
    assert axes.get_ylabel() == "weight / L1 norm"


def test_invalid_figures_are_rejected(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = mosesplug.open_run(work)
    with pytest.raises(mosesplug.UsageError, match="there is no figure 'curves'"):
        run.plot("curves")
    with pytest.raises(mosesplug.DataError, match="sentence 1 has no search graph"):
        run.plot("lattice", sentence=1)
    with pytest.raises(mosesplug.UsageError, match="forest=True"):
        mosesplug.open_run(make_run(work.parent / "other")).plot("lattice")
    monkeypatch.setattr("mosesplug.results.report.figures.has_matplotlib", lambda: False)
    for draw in (run.plot, run.report):
        with pytest.raises(mosesplug.UsageError, match=r"mosesplug\[report\]"):
            draw()
