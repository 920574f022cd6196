"""Progress without a terminal."""

from __future__ import annotations

import io

import pytest

from mosesplug.cli.shared import output


@pytest.mark.parametrize("quiet", [True, False])
def test_progress_without_a_terminal(monkeypatch: pytest.MonkeyPatch, quiet: bool) -> None:
    stream = io.StringIO()
    clock = iter([100.0, 120.0, 130.0, 159.0, 161.0])
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr(output.time, "monotonic", lambda: next(clock))
    with output.progress_bar(quiet) as progress:
        for done in range(1, 5):
            progress(done, 9, "climbs")
    lines = "climbs: 2 of 9, 30 s\nclimbs: 4 of 9, 61 s\n"
    assert stream.getvalue() == ("" if quiet else lines)
