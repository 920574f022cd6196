"""Test the explanation of settings on the command line."""

from __future__ import annotations

import pytest

from mosesplug.cli.main import main


def explain(name: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["settings", name])
    return int(ended.value.code or 0)


def test_settings_of_a_run_and_of_optimize_are_explained(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert explain("held-out") == 0
    said = capsys.readouterr().out
    assert said.startswith("In `mosesplug optimize`:\n\n### held-out\n")
    assert "- Excludes: heldout-nbest, folds" in said
    assert explain("runs") == 0
    said = capsys.readouterr().out
    assert said.startswith("### runs\n")
    assert "In `mosesplug optimize`:\n\n### runs\n" in said
    assert explain("mixing") == 0
    assert "In `mosesplug optimize`" not in capsys.readouterr().out


def test_unknown_setting_has_a_suggestion(capsys: pytest.CaptureFixture[str]) -> None:
    assert explain("fold") == 2
    assert "unknown setting fold. Did you mean folds?" in capsys.readouterr().err
