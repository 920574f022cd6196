"""The table of the comparison of tuning programs, and its command lines."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.benchmarks.truth.protocol import Result, TestSet, read_results, run_system
from tests.benchmarks.truth.systems import Task, list_systems, tune_system
from tests.benchmarks.truth.table import format_table


@pytest.fixture
def judged(tmp_path: Path) -> list[TestSet]:
    reference = tmp_path / "news.en"
    reference.write_text("the house is small\nwe see the old town\n" * 10)
    return [TestSet("news", tmp_path / "news.de", reference)]


def keep(out: Path, result: Result, translation: str) -> None:
    directory = out / f"{result.system}.{result.seed}"
    directory.mkdir()
    (directory / "news.out").write_text(translation)
    (directory / "result.json").write_text(json.dumps(asdict(result)))


def test_table_shows_means_deviations_and_tests(tmp_path: Path, judged: list[TestSet]) -> None:
    same, better = "a house is small\nwe see a old town\n" * 10, judged[0].reference.read_text()
    keep(tmp_path, Result("moses-mert", 1, 100.0, 180.0, 7, {"news": 40.0}), same)
    keep(tmp_path, Result("moses-mert", 2, 120.0, 220.0, 9, {"news": 42.0}), same)
    keep(tmp_path, Result("mert", 1, 50.0, 60.0, 5, {"news": 43.0}), better)
    table = format_table(read_results(tmp_path), list(list_systems()), judged, tmp_path)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()]
    assert rows[2][:4] == ["moses-mert", "2", "41.00 ± 1.41", "41.00 ± 1.41"]
    assert rows[2][5:] == ["110", "200", "8.0"]
    assert rows[3][:4] == ["mert", "1", "43.00", "43.00"]
    assert float(rows[3][4]) < 0.05


def test_every_command_names_the_task(tmp_path: Path) -> None:
    task = Task(*(tmp_path / name for name in "abcde"), flags="-s 100", threads=3)
    for system in list_systems().values():
        command = system.command(task, 5, tmp_path / "work")
        if system.name != "untuned":
            assert {str(tmp_path / "a"), str(tmp_path / "work")} <= set(command)
            assert "-threads 3 -s 100" in command
            assert any("5" in word for word in command)


def test_finished_runs_are_not_repeated(tmp_path: Path, judged: list[TestSet]) -> None:
    result = Result("own", 1, 100.0, 180.0, 7, {"news": 40.0})
    keep(tmp_path, result, "")
    task = Task(*(tmp_path / name for name in "abcde"), flags="", threads=1)
    one, other = (tune_system("own", "--algorithm", name) for name in ("mert", "pro"))
    words = one.command(task, 1, tmp_path / "own.1" / "work")
    (tmp_path / "own.1" / "command.txt").write_text(" ".join(words) + "\n")
    assert run_system(one, 1, task, judged, tmp_path) == result
    with pytest.raises(SystemExit, match=r"own.1/command.txt: another command"):
        run_system(other, 1, task, judged, tmp_path)
