"""Tables in text, Markdown and LaTeX, and the numbers in them."""

from __future__ import annotations

from mosesplug.results.render.tables import (
    format_change,
    format_latex,
    format_markdown,
    format_row,
    format_score,
    format_sparkline,
    format_table,
)

HEAD = ("feature", "weight", "note")
ROWS = [("LM_0", "0.25", "a|b"), ("a feature", "-1.5", "50 %")]


def test_columns_are_aligned_and_empty_ones_omitted() -> None:
    rows = [(*row[:2], "", row[2]) for row in (HEAD, *ROWS)]
    assert format_table(rows, left=1, last=1) == [
        "feature    weight  note",
        "LM_0         0.25  a|b",
        "a feature    -1.5  50 %",
    ]
    assert format_table([("a", ""), ("b", "")]) == ["a", "b"]


def test_rows_of_fixed_widths() -> None:
    assert format_row(("a", "1", "x"), (3, 4, 5), left=1, last=1) == "a       1  x"
    assert format_row(("a", "1", "x"), (3, 4, 5)) == "  a     1      x"
    assert format_row(("longer", "1"), (3, 2), left=1) == "longer   1"


def test_markdown_and_latex_escape_their_signs() -> None:
    assert format_markdown(HEAD, ROWS[:1], {0}) == [
        "| feature | weight | note |",
        "|:--|--:|--:|",
        "| LM_0 | 0.25 | a\\|b |",
    ]
    assert format_latex(HEAD, ROWS[1:], {0, 1}) == [
        r"\begin{tabular}{llr}",
        r"\hline",
        r"feature & weight & note \\",
        r"\hline",
        r"a feature & -1.5 & 50 \% \\",
        r"\hline",
        r"\end{tabular}",
    ]
    assert format_latex(("a_b",), [("\\~^",)], {0})[2:5:2] == [
        r"a\_b \\",
        r"\textbackslash{}\textasciitilde{}\textasciicircum{} \\",
    ]


def test_numbers() -> None:
    assert format_score(None) == ""
    assert format_score(0.123456) == "0.1235"
    # Rounding errors are no change.
    assert format_change(2.8e-17) == format_change(0.0) == "0"
    assert format_change(1.25e-3) == "0.0013"
    assert format_change(None) == ""


def test_sparklines() -> None:
    assert format_sparkline((0.0, 0.5, 1.0, -1.0), "utf-8") == "▅▆█▁"
    assert format_sparkline((0.0, None, 1.0), "ascii") == "1 8"
    assert format_sparkline((2.0, 2.0), "utf-8") == "▄▄"
    assert format_sparkline((), "utf-8") == ""
