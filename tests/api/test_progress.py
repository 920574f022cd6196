"""Progress of calls: silent, on stderr, in a notebook, or in a function."""

from __future__ import annotations

import sys
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from mosesplug.api.progress import open_progress
from mosesplug.errors import UsageError


@pytest.mark.parametrize("silent", [None, False])
def test_nothing_is_printed_by_default(
    silent: bool | None, capfd: pytest.CaptureFixture[str]
) -> None:
    with open_progress(silent) as report:
        report(1, 2, "lists")
    assert capfd.readouterr() == ("", "")


def test_bar_on_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    with open_progress(True) as report:
        report(1, 2, "lists")
        report(1, 2, "lists")
        report(2, 2, "lists")
    out, err = capfd.readouterr()
    assert out == ""
    shown = err.split("\r")
    assert shown[1:3] == ["###############............... 1/2 lists", f"{'#' * 30} 2/2 lists"]
    assert not shown[3].strip()


def test_function() -> None:
    seen: list[tuple[int, int, str]] = []
    with open_progress(lambda *work: seen.append(work)) as report:
        report(1, 2, "lists")
    assert seen == [(1, 2, "lists")]


def test_other_values_are_rejected() -> None:
    with pytest.raises(UsageError, match="progress is 'yes'"), open_progress("yes"):  # type: ignore[arg-type]
        pass


class Notebook:
    """What IPython offers in a notebook: each display, with all that it has shown."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, has_kernel: bool = True) -> None:
        self.displays: list[list[str]] = []
        shell = SimpleNamespace(kernel=object()) if has_kernel else SimpleNamespace()
        ipython = ModuleType("IPython")
        display = ModuleType("IPython.display")
        vars(ipython)["get_ipython"] = lambda: shell
        vars(display).update(HTML=str, display=self.display)
        monkeypatch.setitem(sys.modules, "IPython", ipython)
        monkeypatch.setitem(sys.modules, "IPython.display", display)

    def display(self, html: str, *, display_id: bool) -> Any:
        assert display_id
        shown = [html]
        self.displays.append(shown)
        return SimpleNamespace(update=shown.append)


def test_bar_in_a_notebook(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    notebook = Notebook(monkeypatch)
    now = [0.0]
    monkeypatch.setattr("mosesplug.api.progress.time.monotonic", lambda: now[0])
    with open_progress(True) as report:
        report(0, 10, "<lists>")
        for done, seconds in ((1, 2.0), (2, 2.05), (3, 6.0), (10, 20.0)):
            now[0] = seconds
            report(done, 10, "<lists>")
        report(1, 0, "other")
    (shown,) = notebook.displays
    assert shown == [
        "",
        '<progress value="0" max="10"></progress> 0/10 &lt;lists&gt;',
        '<progress value="1" max="10"></progress> 1/10 &lt;lists&gt;, 18 s left',
        '<progress value="3" max="10"></progress> 3/10 &lt;lists&gt;, 14 s left',
        '<progress value="10" max="10"></progress> 10/10 &lt;lists&gt;',
        '<progress value="1" max="1"></progress> 1/0 other',
        "",
    ]
    assert capfd.readouterr() == ("", "")


def test_bar_in_ipython_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    notebook = Notebook(monkeypatch, has_kernel=False)
    with open_progress(True) as report:
        report(1, 2, "lists")
    assert notebook.displays == []
    assert "1/2 lists" in capfd.readouterr().err
