"""The page of an analysis: whole, escaped, and readable in a browser."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mosesplug.results.analysis.analysis import (
    SystemAnalysis,
    analyze_systems,
    measure_metric,
    read_systems,
)
from mosesplug.results.report.analysis_page import render_analysis
from mosesplug.results.report.bars import BarGroup, render_bars
from mosesplug.results.scores.comparison import System, compare_systems
from mosesplug.results.scores.scoring import prepare_metrics
from tests.results.pages import check_whole, open_in_browser

REFERENCES = [[b"<b>&amp; x</b>", b"we see it", b""], [b"a &", b"one sees it", b"x"]]
SYSTEMS = [
    System("<base>", ([b"<b>&amp; x</b>", b"we saw", b""],)),
    System("new&", ([b"<script>alert('x')</script>", b"we see it", b"\xff\xfe"],)),
    System("same", ([b"<b>&amp; x</b>", b"we saw", b""],)),
]
SOURCE = [b"<script>", b"\xe9", b""]


def analyze(systems: list[System]) -> SystemAnalysis:
    return analyze_systems(
        read_systems(systems, 3),
        REFERENCES,
        [measure_metric(systems, each) for each in prepare_metrics(["BLEU", "WER"], REFERENCES)],
        source=SOURCE,
    )


@pytest.fixture(scope="module")
def page() -> str:
    (metric,) = prepare_metrics(["BLEU"], REFERENCES)
    scores = compare_systems(SYSTEMS, metric, samples=5, trials=5)
    return render_analysis(analyze(SYSTEMS), "A & B", scores)


def test_page_is_whole(page: str) -> None:
    check_whole(page)
    assert "<title>A &amp; B</title>" in page
    for heading in ("Scores", "Word accuracy by frequency", "Sentences by length", "N-grams"):
        assert f">{heading}" in page
    assert page.count("<svg") == 4
    for better, worse in (("new&amp;", "&lt;base&gt;"), ("&lt;base&gt;", "new&amp;")):
        assert f">Sentences where {better} is better than {worse}</h2>" in page


def test_texts_are_escaped(page: str) -> None:
    assert "<script" not in page
    assert "<b>&amp;" not in page
    assert "&lt;b&gt;&amp;amp; x&lt;/b&gt;" in page
    # No reference has these words.
    assert "<mark>&lt;script&gt;alert(&#x27;x&#x27;)&lt;/script&gt;</mark>" in page
    assert "we <mark>saw</mark>" in page
    page.encode()


def test_equal_systems_have_no_differences() -> None:
    page = render_analysis(analyze([SYSTEMS[0], SYSTEMS[2]]), "x")
    check_whole(page)
    assert page.count('<p class="note">none</p>') == 6
    assert ">Scores</h2>" not in page


def test_same_data_same_bytes(page: str) -> None:
    (metric,) = prepare_metrics(["BLEU"], REFERENCES)
    scores = compare_systems(SYSTEMS, metric, samples=5, trials=5)
    assert render_analysis(analyze(SYSTEMS), "A & B", scores) == page


def test_bars() -> None:
    nan = float("nan")
    groups = [
        BarGroup("a", (0.5, nan, -0.5), ("0.5", "", "-0.5")),
        BarGroup("b", (1.0,) * 9, ("1",) * 9),
    ]
    chart = render_bars(groups, "x")
    bars = [
        (color, float(start), float(length))
        for color, start, length in re.findall(
            r'<rect class="(c\d)" x="([\d.]+)%" y="\d+" width="([\d.]+)%"', chart
        )
    ]
    # From -0.5 to 1, on 60 % of the width: 0.5 is 20 %.
    assert bars[:3] == [("c0", 44.0, 20.0), ("c1", 44.0, 0.0), ("c2", 24.0, 20.0)]
    assert bars[3:] == [(f"c{place % 8}", 44.0, 40.0) for place in range(9)]
    assert "<svg" in render_bars([BarGroup("a", (0.0, nan), ("0", ""))], "only zeros")


def test_in_a_browser_without_complaints(page: str, tmp_path: Path) -> None:
    assert open_in_browser(page, tmp_path).count("<svg") == 4
