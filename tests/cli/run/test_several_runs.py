"""``mosesplug tune --runs`` as a user calls it."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.cli.main import main
from mosesplug.cli.run.running import list_runs
from mosesplug.errors import UsageError
from mosesplug.options import list_options
from mosesplug.results.render.tables import format_blocks
from mosesplug.settings.build import choose_among_runs
from mosesplug.settings.checks import check_settings
from mosesplug.settings.configuration import RunPlan
from mosesplug.tuning.repeats.result import SeveralResult
from mosesplug.tuning.repeats.scores import FinishedRun, measure_spread
from mosesplug.tuning.weights import Weights


def _format_runs(result: SeveralResult) -> str:
    return format_blocks(list_runs(result))


def choices(*given: object) -> tuple[str | None, str | None]:
    names = ("runs", "select", "select-run")
    values = {name: value for name, value in zip(names, given, strict=True) if value is not None}
    check_settings(list_options(RunPlan), values)
    return choose_among_runs(values)


def test_select_chooses_among_several_runs() -> None:
    assert choices(None, "last", None) == (None, "last")
    assert choices(3, "median", "last") == ("median", "last")
    assert choices(3, None, None) == (None, None)
    for given, said in (
        ((None, None, "last"), "--select-run requires --runs"),
        ((None, "median", None), "--select median requires --runs N"),
        ((2, "last", None), "Use --select-run last to choose"),
        ((2, None, "median"), "--select-run must be one of best-dev, last"),
    ):
        with pytest.raises(UsageError, match=said):
            choices(*given)


def test_the_table_of_all_runs() -> None:
    def run(number: int, dev: float, heldout: float | None) -> FinishedRun:
        return FinishedRun(
            number, Path("d"), number + 4, 7, "", ("LM0",), Weights((1.0,)), dev, "decoded",
            heldout, "BLEU", "BLEU|x", {},
        )  # fmt: skip

    runs = (run(1, 0.31, 0.2), run(2, 0.29, 0.3))
    result = SeveralResult(
        runs,
        "median",
        runs[0],
        "heldout",
        runs[0].weights,
        measure_spread([0.31, 0.29]),
        measure_spread([0.2, 0.3]),
    )
    assert _format_runs(result) == (
        "run  seed  iterations    BLEU  held out\n"
        "  1     5           7  0.3100    0.2000\n"
        "  2     6           7  0.2900    0.3000\n"
        "\n"
        "          runs    mean   s_opt     min  median     max\n"
        "dev          2  0.3000  0.0141  0.2900  0.3000  0.3100\n"
        "held out     2  0.2500  0.0707  0.2000  0.2500  0.3000\n"
        "\n"
        "weights: those of run 1, the median on the held-out text\n"
        "signature: BLEU|x\n"
    )
    alone = (run(1, 0.31, None), run(2, 0.29, None))
    mean = SeveralResult(
        alone, "average", None, None, alone[0].weights, measure_spread([0.3]), None
    )
    assert "held out" not in _format_runs(mean)
    assert "the mean of those of 2 runs, not scored" in _format_runs(mean)


def test_runs_of_a_toy_system(
    toy_files: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    work = tmp_path / "work"
    command = [
        "tune",
        *toy_files,
        "--working-dir",
        str(work),
        "--nbest",
        "5",
        "--algorithm",
        "mert",
    ]
    command += ["--max-iterations", "1", "--option", "restarts=1"]

    def called(*words: str) -> int:
        with pytest.raises(SystemExit) as ended:
            main([*command, *words])
        return int(ended.value.code or 0)

    assert called("--runs", "2", "--seed", "3", "--select-run", "best-dev") == 0
    said = capsys.readouterr()
    assert "run 2 of 2, seed 4" in said.err
    assert "\ndev     2  0.4102  0.0000" in said.out
    assert "weights: those of run 1, the median on the tuning set" in said.out
    assert "warning: runs 1, 2 of 2 end with the starting weights" in said.err
    assert called("--continue") == 2
    assert "continue them with --runs 2 --continue" in capsys.readouterr().err
    assert called("--runs", "2", "--last", "--select-run", "last") == 2
    assert "--last and --select-run exclude each other" in capsys.readouterr().err
