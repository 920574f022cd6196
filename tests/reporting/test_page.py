"""The page of a run: what is on it, in a browser as well; and its figures as pictures."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from mosesplug.errors import UsageError
from mosesplug.inspection.run import open_run
from mosesplug.inspection.texts import ParallelText
from mosesplug.reporting.data import LatticeFacts, LatticeLine, ReportData
from mosesplug.reporting.figures import FIGURES, draw_figure, render_png, render_svg
from mosesplug.reporting.page import render_page
from tests.inspection.runs import REFERENCE, gather_report, make_run, read_graph
from tests.reporting.pages import check_whole, open_in_browser

pytest.importorskip("matplotlib")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> ReportData:
    """A run with everything that a report shows."""
    directory = tmp_path_factory.mktemp("run")
    work = make_run(directory / "work", graph=read_graph(directory))
    with open_run(work) as run:
        found = gather_report(run, ParallelText((b"<b>zwei & $x$</b>",) * 3, [REFERENCE]))
    return replace(found, sparse=(("WT_<a>~b", 0.25),), n_sparse=1)


@pytest.fixture(scope="module")
def page(data: ReportData) -> str:
    """The page of the run."""
    return render_page(data, "Tuning of <x>")


def test_page_is_whole_and_needs_nothing_else(page: str) -> None:
    text = page
    check_whole(text)
    assert "<title>Tuning of &lt;x&gt;</title>" in text
    assert "WT_&lt;a&gt;~b" in text
    assert "&lt;b&gt;zwei &amp; $x$&lt;/b&gt;" in text
    for heading in ("Iterations", "Scores", "Features", "Search graph", "Worst sentences"):
        assert f"<h2>{heading}</h2>" in text
    assert text.count("<svg") == len(FIGURES)


def test_ids_of_figures_do_not_clash(page: str) -> None:
    clips = [set(re.findall(r'<clipPath id="(\w+)"', svg)) for svg in page.split("<svg")[1:]]
    assert sum(map(bool, clips)) > 1
    assert sum(map(len, clips)) == len(set().union(*clips))


def test_same_data_same_bytes(data: ReportData, page: str) -> None:
    assert render_page(data, "Tuning of <x>") == page


def test_envelope_is_drawn_around_the_result() -> None:
    ends = (-math.inf, -900.0, 0.1, 0.3, 400.0, math.inf)
    lines = tuple(
        LatticeLine(f"translation {place}", -abs(place - 2.0), place - 2.0, start, end, 0.5)
        for place, (start, end) in enumerate(pairwise(ends))
    )
    facts = LatticeFacts(0, "LM0_0", 0.2, ((0, 1, "a"),), 2, 1, lines)
    data = ReportData("store", "BLEU", "BLEU+1", "BLEU|", {}, (), (), lattice=facts)
    upper, _ = draw_figure("envelope", data).axes
    low, high = upper.get_xlim()
    assert -0.2 < low < 0.1
    assert 0.3 < high < 0.6
    legend = upper.get_legend()
    assert legend is not None
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["translation 1", "translation 2", "translation 3"]


def test_heaviest_of_many_weights_are_labeled(data: ReportData) -> None:
    names = tuple(f"F{number}_0" for number in range(24))
    weights = tuple((number - 12) / 100 for number in range(24))
    facts = tuple(replace(each, weights=weights) for each in data.iterations)
    axes = draw_figure("weights", replace(data, names=names, iterations=facts)).axes[0]
    legend = axes.get_legend()
    assert legend is not None
    shown = [text.get_text() for text in legend.get_texts()]
    # Those near 0 are left out.
    assert shown == [*names[:11], *names[15:], "4 more"]
    assert len(axes.lines) == 25  # and the one at 0


def test_run_whose_lists_lie_elsewhere(data: ReportData) -> None:
    bare = replace(
        data, features=(), surfaces=(), coverage=None, worst=(), best=(), lattice=None, sparse=()
    )
    text = render_page(bare, "x")
    assert "stores of its shards" in text
    assert "Error surfaces" not in text
    for name in ("features", "surfaces", "coverage", "lattice", "envelope"):
        with pytest.raises(UsageError):
            render_svg(name, bare)


def test_run_of_sparse_features_alone(data: ReportData) -> None:
    iterations = tuple(replace(facts, weights=()) for facts in data.iterations)
    text = render_page(
        replace(data, names=(), iterations=iterations, features=(), surfaces=()), "x"
    )
    assert "stores of its shards" not in text
    assert "<h2>Coverage</h2>" in text
    for heading in ("Weights", "Error surfaces", "Features"):
        assert f"<h2>{heading}</h2>" not in text
    with pytest.raises(UsageError, match="no dense features"):
        render_svg("weights", replace(data, names=()))


def test_names_of_any_script_that_begin_with_any_sign(
    data: ReportData, recwarn: pytest.WarningsRecorder
) -> None:
    assert data.lattice is not None
    edges = tuple((start, end, f"_中 {words}") for start, end, words in data.lattice.edges)
    lines = tuple(replace(line, text=f"_中 {line.text}") for line in data.lattice.lines)
    odd = replace(
        data, names=("_语", "LM_0"), lattice=replace(data.lattice, edges=edges, lines=lines)
    )
    for name in ("weights", "lattice", "envelope"):
        assert ("_语" if name == "weights" else "_中 ") in render_svg(name, odd)
        assert render_png(name, odd, 50)
    assert not recwarn.list


@pytest.mark.parametrize("name", FIGURES)
def test_pictures(name: str, data: ReportData) -> None:
    assert render_png(name, data, 60).startswith(b"\x89PNG")


def test_in_a_browser_without_complaints(page: str, tmp_path: Path) -> None:
    shown = open_in_browser(page, tmp_path)
    assert shown.count("<svg") == len(FIGURES)
