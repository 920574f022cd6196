"""Test how progress is reported."""

from __future__ import annotations

import pytest

from mosesplug.api.arguments import open_progress
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
