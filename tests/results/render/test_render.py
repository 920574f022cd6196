"""Test one record in all layouts."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest

from mosesplug.results.render.record import Score, Text, tabulate
from mosesplug.results.render.render import Layout, Medium, describe, render
from mosesplug.results.render.tables import Block, Verbatim


@dataclass(frozen=True)
class Entry:
    """A record that is shown as a row."""

    JSON_KEYS: ClassVar = "key=name score note? double"

    name: Text
    score: Score
    note: str = ""

    @property
    def double(self) -> float:
        """Twice the score."""
        return 2.0 * self.score


@dataclass(frozen=True)
class Entries:
    """A report of several rows."""

    JSON_KEYS: ClassVar = "* first"

    path: Path
    entries: tuple[Entry, ...]

    @property
    def first(self) -> bytes:
        """A text in bytes."""
        return b"caf\xe9"

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield a line, a table, and a line of LaTeX."""
        yield f"a < b\n  in {medium.layout}"
        yield tabulate(Entry, self.entries)
        if medium.layout == "latex":
            yield Verbatim("% end")


@dataclass(frozen=True)
class Listed:
    """A record that is a list in JSON."""

    document: tuple[Entry, ...]


REPORT = Entries(Path("x"), (Entry("a", 0.5), Entry("b", math.nan, "n")))
ROWS = {
    "text": "a < b\n  in text\nname   score\na     0.5000\nb\n",
    "tsv": "name\tscore\na\t0.5000\nb\t\n",
    "csv": "name,score\na,0.5000\nb,\n",
    "markdown": "a < b\n  in markdown\n\n| name | score |\n|:--|--:|\n| a | 0.5000 |\n| b |  |\n\n",
    "html": '<p>a &lt; b</p><p style="white-space: pre-wrap; font-family: monospace; margin: 0">',
    "latex": "\\begin{tabular}{lr}\n",
}


@pytest.mark.parametrize(("layout", "begin"), ROWS.items())
def test_a_report_has_lines_and_tables(layout: Layout, begin: str) -> None:
    text = render(REPORT, layout)
    assert text.startswith(begin)
    if layout not in ("html", "latex"):
        assert text == begin
    assert text.endswith("% end\n") == (layout == "latex")
    assert ("<table>" in text) == (layout == "html")


@dataclass(frozen=True)
class Pair:
    """A report of two tables."""

    entries: tuple[Entry, Entry]

    def blocks(self, _medium: Medium) -> Iterator[Block]:
        """Yield a table of each, with a line between them."""
        first, second = self.entries
        yield tabulate(Entry, [first])
        yield "and"
        yield tabulate(Entry, [second])


def test_tables_for_programs_are_separated_by_a_blank_line() -> None:
    pair = Pair((Entry("a", 0.5), Entry("b", 0.25)))
    assert render(pair, "tsv") == "name\tscore\na\t0.5000\n\nname\tscore\nb\t0.2500\n"
    assert render(pair, "latex").count("\\end{tabular}\n\n\\begin{tabular}") == 1
    assert "\nand\n" in render(pair, "text")


def test_a_document_has_the_keys_of_its_records() -> None:
    text = render(REPORT, "json")
    assert json.loads(text) == {
        "path": "x",
        "entries": [
            {"key": "a", "score": 0.5, "double": 1.0},
            {"key": "b", "score": None, "note": "n", "double": None},
        ],
        "first": "caf\ufffd",
    }
    assert text.endswith("}\n")
    assert describe(Listed(REPORT.entries)) == describe(REPORT.entries)


def test_records_without_blocks_are_rows() -> None:
    assert render(REPORT.entries, "tsv") == ROWS["tsv"]
    assert render(REPORT.entries[0], "tsv") == "name\tscore\na\t0.5000\n"
    assert render([]) == ""
