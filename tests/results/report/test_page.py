"""The page of a run: what is on it, in a browser as well; and its figures as pictures."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from mosesplug.errors import UsageError
from mosesplug.results.report.data import LatticeFacts, LatticeLine, OutcomeFacts, ReportData
from mosesplug.results.report.figures import (
    FIGURES,
    draw_figure,
    render_png,
    render_surface_svgs,
    render_svg,
)
from mosesplug.results.report.page import render_pages
from mosesplug.results.views.run import open_run
from mosesplug.results.views.texts import ParallelText
from tests.results.pages import check_whole, open_in_browser, render_page
from tests.results.runs import REFERENCE, gather_report, make_run, read_graph

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


def test_page_is_whole_and_needs_nothing_else(data: ReportData, page: str) -> None:
    text = page
    check_whole(text)
    assert "<title>Tuning of &lt;x&gt;</title>" in text
    assert "WT_&lt;a&gt;~b" in text
    assert "&lt;b&gt;zwei &amp; $x$&lt;/b&gt;" in text
    for heading in ("Iterations", "Scores", "Features", "Search graph", "Worst sentences"):
        assert f">{heading}</h2>" in text
    assert text.count("<svg") == count_pictures(data)


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
    upper, lower = draw_figure("envelope", data).axes
    low, high = upper.get_xlim()
    assert -0.2 < low < 0.1
    assert 0.3 < high < 0.6
    legend = lower.get_legend()
    assert legend is not None
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["2: translation 1", "3: translation 2", "4: translation 3"]


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
    assert ">Coverage</h2>" in text
    for heading in ("Weights", "Error surfaces", "Features"):
        assert f">{heading}</h2>" not in text
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


def test_in_a_browser_without_complaints(data: ReportData, page: str, tmp_path: Path) -> None:
    shown = open_in_browser(page, tmp_path)
    assert shown.count("<svg") == count_pictures(data)


def count_pictures(data: ReportData) -> int:
    """Each figure is one picture, except for the surfaces, which are one for each feature."""
    return len(FIGURES) - 1 + len(data.surfaces)


def read_terms(page: str, kind: str) -> list[dict[str, str]]:
    """Return names and texts of the lists of a kind."""
    lists = re.findall(rf'<dl class="{kind}">(.*?)</dl>', page, re.DOTALL)
    return [dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", each)) for each in lists]


@pytest.mark.usefixtures("figures_without_svg")
def test_head_says_how_the_run_went(data: ReportData) -> None:
    outcome = OutcomeFacts("kbmira", "no weight changed", "the last ones", ("<short> lists",))
    text = render_page(replace(data, outcome=outcome), "x")
    head = text.partition("<nav>")[0]
    facts = read_terms(head, "facts")[0]
    assert facts["algorithm"] == "kbmira"
    assert facts["ended"] == "no weight changed"
    assert facts["resulting weights"] == "the last ones"
    assert "<b>Warning:</b> &lt;short&gt; lists" in head
    unknown = OutcomeFacts("", "", "the last ones")
    imported = render_page(replace(data, outcome=unknown), "x")
    assert list(read_terms(imported, "facts")[0]) == ["resulting weights", "metric"]
    assert "Warning" not in imported


@pytest.mark.usefixtures("figures_without_svg")
@pytest.mark.parametrize(
    ("scores", "words"),
    [
        ([0.25, 0.5, 0.375], "0.2500 in iteration 1, 0.5000 in iteration 2 (the highest), 0.3750"),
        ([0.25, 0.5], "0.2500 in iteration 1, 0.5000 in iteration 2 (the highest)."),
        ([0.5, 0.5], "0.5000 in iteration 1 (the highest), 0.5000 in iteration 2."),
        ([0.5], ": 0.5000 in iteration 1."),
    ],
)
def test_head_has_the_scores_of_iterations(
    data: ReportData, scores: list[float], words: str
) -> None:
    facts = [
        replace(data.iterations[0], number=number, score=score)
        for number, score in enumerate(scores, start=1)
    ]
    assert words in render_page(replace(data, iterations=tuple(facts)), "x")


@pytest.mark.usefixtures("figures_without_svg")
def test_unknown_times_are_left_out(data: ReportData) -> None:
    facts = [
        replace(facts, seconds_decoding=0.0, seconds_optimizing=0.0) for facts in data.iterations
    ]
    imported = replace(data, iterations=tuple(facts))
    text = render_page(imported, "x")
    assert "decoding</th>" not in text
    assert 'id="time"' not in text
    with pytest.raises(UsageError, match="times of this run are unknown"):
        render_svg("times", imported)


def test_contents_lead_to_every_section(page: str) -> None:
    links = re.findall('<a href="#(.*?)">', page.partition("<nav>")[2].partition("</nav>")[0])
    assert links == re.findall('<h2 id="(.*?)">', page)
    assert len(links) == len(set(links)) > 8


@pytest.mark.usefixtures("figures_without_svg")
def test_contents_of_two_runs_name_each_run(data: ReportData) -> None:
    text = render_pages([data, data], ["first <run>", "second run"], "both", None)
    contents = text.partition("<nav>")[2].partition("</nav>")[0]
    names = [re.findall('<a href="#(.*?)">(.*?)</a>', part) for part in contents.split("</p><p>")]
    assert [part[0] for part in names] == [("run", "first &lt;run&gt;"), ("run-2", "second run")]
    assert [f"{name}-2" for name, _ in names[0]] == [name for name, _ in names[1]]
    assert [name for part in names for name, _ in part] == re.findall('<h[12] id="(.*?)">', text)


@pytest.mark.parametrize("heading", ["iterations", "features", "search-graph"])
def test_columns_are_explained(page: str, heading: str) -> None:
    section = page.partition(f'<h2 id="{heading}">')[2].partition("</section>")[0]
    heads = re.findall("<th(?: [^>]*)?>(.*?)</th>", section)
    explained = ", ".join(read_terms(section, "columns")[0])
    assert [head for head in heads if head not in explained] in ([], ["feature"])


@pytest.mark.usefixtures("figures_without_svg")
def test_error_rates_are_shown_as_rates(data: ReportData) -> None:
    text = render_page(replace(data, metric="WER", signature="WER|nrefs:1|version:x"), "x")
    row = re.findall("<td class=n[^>]*>(.*?)</td>", text)
    assert float(row[1]) == pytest.approx(1 - data.iterations[0].score, abs=5e-5)
    assert "less is better" in text


@pytest.mark.parametrize("name", FIGURES)
def test_figures_follow_the_colors_of_the_page(data: ReportData, name: str) -> None:
    svg = render_svg(name, data).lower()
    assert "currentcolor" in svg
    assert not re.findall("#000000|#ffffff|: black|: white", svg)


@pytest.mark.parametrize("name", [name for name in FIGURES if name != "surfaces"])
def test_text_of_figures_is_readable_on_a_narrow_screen(data: ReportData, name: str) -> None:
    assert find_smallest_text(render_svg(name, data), 358.0, shrinks=name != "lattice") > 7.0


def test_text_of_surfaces_is_readable_on_a_narrow_screen(data: ReportData) -> None:
    for svg in render_surface_svgs(data):  # two beside each other
        assert find_smallest_text(svg, 171.0, shrinks=True) > 7.0


def test_surfaces_of_many_features_are_the_largest(
    data: ReportData, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("mosesplug.results.report.page._SURFACES", 1)
    text = render_page(data, "run").partition('id="surfaces"')[2].partition("</div>")[0]
    largest = max(data.features, key=lambda feature: abs(feature.weight * feature.spread))
    drawn = [feature.name for feature in data.features if feature.name in text]
    assert drawn == [largest.name]


def find_smallest_text(svg: str, room: float, *, shrinks: bool) -> float:
    """Return the size of the smallest letters where a picture has this room, in pixels."""
    width = float(re.findall('width="([0-9.]+)pt"', svg)[0]) * 96 / 72
    sizes = [float(size) for size in re.findall(r"font(?:-size)?: (?:[a-z]+ )*([\d.]+)px", svg)]
    # The unit of the picture is the point.
    return min(sizes) * 96 / 72 * (min(1.0, room / width) if shrinks else 1.0)


def test_no_picture_is_wider_than_the_page(page: str) -> None:
    style = page.partition("<style>")[2].partition("</style>")[0]
    assert "svg { max-width: 100%" in style
    wider = re.findall(r"([^{}]*)\{[^}]*(?:max-width: none|width: \d+(?:px|rem))", style)
    assert [each.strip() for each in wider if "svg" in each] == ["#lattice svg"]
    # The figure of a search graph scrolls.
    assert '<figure class="wide" id="lattice">' in page


def test_words_of_a_long_search_graph_do_not_overlap() -> None:
    edges = tuple(
        (node, node + 1, f"{'very long phrase number' if way else 'word'} {node}-{way}")
        for node in range(40)
        for way in range(1 + (node % 3))
    )
    facts = LatticeFacts(0, "LM0_0", 0.2, edges, 41, len(edges), ())
    data = ReportData("store", "BLEU", "BLEU+1", "BLEU|", {}, (), (), lattice=facts)
    figure = draw_figure("lattice", data)
    figure.draw_without_rendering()
    (axes,) = figure.axes
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    assert len(boxes) == len(edges)
    for one, other in combinations(boxes, 2):
        assert not one.overlaps(other)
    assert all(figure.bbox.x0 <= box.x0 and box.x1 <= figure.bbox.x1 for box in boxes)
