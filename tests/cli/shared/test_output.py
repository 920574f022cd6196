"""Progress on a terminal and elsewhere."""

from __future__ import annotations

import io
import sys

import pytest

from mosesplug.cli.shared import output, tables
from mosesplug.results.render import progress


@pytest.mark.parametrize("quiet", [True, False])
def test_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    stream = io.StringIO()
    clock = iter([100.0, 120.0, 130.0, 159.0, 161.0])
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with output.progress_bar(quiet) as report:
        for done, total in ((1, 9), (2, 9), (3, 9), (4, 0)):  # 0: unknown
            report(done, total, "climbs")
    lines = "climbs: 2 of 9, 30 s\nclimbs: 4, 61 s\n"
    assert stream.getvalue() == ("" if quiet else lines)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_progress_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    out, err = Terminal(), Terminal()
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    clock = iter([0.0, 0.0, 0.01, 0.02, 20.0, 40.0])
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    monkeypatch.setenv("COLUMNS", "60")
    with output.progress_bar(quiet=False) as report:
        report(0, 4, "lists")
        report(1, 4, "lists")  # too early
        print("a line")
        print("a ", end="", file=sys.stderr)
        report(0, 0, "gra\x1bphs")
        report(2, 4, "lists of a name that is too long for this line")
        report(4, 4, "lists")
    assert out.getvalue() == "a line\n"
    clear = "\r\x1b[K"
    assert err.getvalue().split(clear) == [
        "",
        f"{'.' * 30} 0/4 lists",
        "",  # removed for the line on stdout
        "0 gra\\x1bphs",
        f"{'#' * 15}{'.' * 15} 2/4 lists of a name that is ",
        f"{'#' * 30} 4/4 lists",
        "a ",
    ]
    assert (sys.stdout, sys.stderr) == (out, err)


def test_labels_shrink_on_a_narrow_terminal() -> None:
    """To eight characters, so that each part of a table has room for another column."""
    for room, label in ((60, 20), (24, 8)):
        ((columns, widths),) = tables._fold([20, 14], [True, False], 1, room)
        assert columns == [0, 1]
        assert widths[0] == label
        assert widths[1] == 14
