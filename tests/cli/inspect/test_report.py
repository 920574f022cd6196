"""``mosesplug report`` as a user calls it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from mosesplug.cli.main import main
from tests.results.runs import REFERENCE, make_run

pytest.importorskip("matplotlib")

SCORER = Path(__file__).parents[2] / "decoders" / "stand_in_scorer.py"


def run(*words: object) -> int:
    """The exit code of ``mosesplug report``."""
    with pytest.raises(SystemExit) as end:
        main(["report", *map(str, words)])
    return int(end.value.code or 0)


@pytest.mark.usefixtures("figures_without_svg")
def test_page_and_picture(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = make_run(tmp_path / "work")
    monkeypatch.chdir(tmp_path)
    assert run(work) == 0
    assert capsys.readouterr().out == "report.html\n"
    assert Path("report.html").read_text().startswith("<!DOCTYPE html>")
    assert run(work, "--png", "scores", "--dpi", 60, "--quiet") == 0
    assert capsys.readouterr().out == ""
    assert Path("scores.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.usefixtures("figures_without_svg")
def test_a_sum_has_a_part_of_a_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    work = make_run(tmp_path / "work")
    monkeypatch.chdir(tmp_path)
    Path("refs").write_bytes(b"".join(line + b"\n" for line in REFERENCE))
    command = f"SHARE={sys.executable} -IS {SCORER} log"
    words = ["--score-command", command, "--score-cache", "scores", "--refs", "refs", "--quiet"]
    assert run(work, *words, "--report-metric", "SHARE:0.5+CHRF:0.5 beta:3") == 0
    assert "<th class=n>SHARE,CHRF</th>" in Path("report.html").read_text()


def test_invalid_reports_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    work = make_run(tmp_path / "work")
    monkeypatch.chdir(tmp_path)
    assert run(work, "--png", "curves") == 2
    assert "there is no figure 'curves'" in capsys.readouterr().err
    assert run(work, "--png", "lattice") == 2
    assert "--forest" in capsys.readouterr().err
    assert run(tmp_path) == 1
    assert "there is no n-best store" in capsys.readouterr().err
    assert run(work, "--refs", tmp_path / "none") == 2
    assert not list(tmp_path.glob("*.png"))
    monkeypatch.setattr("mosesplug.results.report.figures.has_matplotlib", lambda: False)
    assert run(work) == 2
    assert "mosesplug[report]" in capsys.readouterr().err
