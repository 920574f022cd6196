"""Test how records are shown as tables, and tables in each layout."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated

import pytest

from mosesplug.results.render.record import (
    Change,
    Count,
    Score,
    Shown,
    Text,
    format_count,
    format_power_of_ten,
    format_size,
    tabulate,
)
from mosesplug.results.render.tables import TextTable, layout_table


@dataclass(frozen=True)
class Entry:
    """A record with a field of each kind."""

    name: Text
    hidden: int
    count: Count
    score: Score | None
    interval: Annotated[tuple[float, float] | None, Shown("+.1f", "95 %", "-")]

    @property
    def double(self) -> Change:
        """Twice the count."""
        return 2.0 * self.count

    @property
    def remark(self) -> Annotated[str, Shown(label="", is_text=True)]:
        """A text without a heading."""
        return "odd" if self.count % 2 else ""


ENTRIES = [Entry("a|b", 0, 3, 0.25, (-1.0, 2.0)), Entry("c_d", 0, 4, None, None)]
HEAD = ("name", "count", "BLEU", "95 %", "double", "")


def test_fields_and_properties_with_marks_are_columns() -> None:
    table = tabulate(Entry, ENTRIES, labels={"score": "BLEU"})
    assert table.plain == [
        HEAD,
        ("a|b", "3", "0.2500", "-1.0 to +2.0", "+6.0000", "odd"),
        ("c_d", "4", "", "-", "+8.0000", ""),
    ]
    assert (table.left, table.last) == (1, 1)


def test_columns_are_chosen_by_name() -> None:
    table = tabulate(Entry, ENTRIES, "count name")
    assert (table.plain[1], table.left, table.last) == (("3", "a|b"), 0, 1)
    assert tabulate(Entry, [], "name").plain == [("name",)]
    texts = tabulate(Entry, ENTRIES, "name remark")
    assert (texts.left, texts.last) == (2, 0)


def test_unknown_numbers_have_a_cell_of_their_own() -> None:
    shown = Shown(".1f", missing="?")
    assert [shown.cell(value) for value in (None, math.nan, 1.25)] == ["?", "?", "1.2"]


@pytest.mark.parametrize(
    ("layout", "lines"),
    [
        ("text", ["name  value", "a|b     0.5"]),
        ("tsv", ["name\tvalue", "a|b\t0.5"]),
        ("csv", ["name,value\na|b,0.5"]),
        ("markdown", ["| name | value |", "|:--|--:|", r"| a\|b | 0.5 |"]),
        (
            "latex",
            [
                r"\begin{tabular}{lr}",
                r"\hline",
                r"name & value \\",
                r"\hline",
                r"a|b & 0.5 \\",
                r"\hline",
                r"\end{tabular}",
            ],
        ),
        (
            "html",
            [
                '<div class="wide"><table>\n<thead><tr><th style="text-align:left">name</th>'
                "<th class=n>value</th></tr></thead>\n<tbody>\n"
                '<tr><td style="text-align:left">a|b</td><td class=n>0.5</td></tr>\n'
                "</tbody></table></div>\n"
            ],
        ),
    ],
)
def test_layouts(layout: str, lines: list[str]) -> None:
    table = TextTable([("name", "value"), ([("a|b", "red")], "0.5")], left=1)
    assert layout_table(table, layout) == lines


def test_numbers_with_units() -> None:
    assert [format_size(n) for n in (999, 1234, 5_600_000)] == ["999 B", "1.23 KB", "5.6 MB"]
    assert [format_power_of_ten(math.log(n)) for n in (12, 1.24e8)] == ["12", "1.2e+8"]
    assert [format_count(n) for n in (2.0, 2.5)] == ["2", "2.5"]
