"""Kernels compiled in advance are those that commands use."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import mosesplug
from mosesplug.api import warming
from mosesplug.cli.main import main

COMMAND = "from mosesplug.cli.main import main; main()"


def test_a_second_process_compiles_nothing() -> None:
    mosesplug.warm_up(["score"])
    command = [sys.executable, "-c", COMMAND, "warm-up", "--for", "score", "--json"]
    (done,) = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    assert (done["task"], done["kernels"]) == ("score", 0)


def test_optimizers_run_as_asked(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    tasks = {name: lambda _, names: asked.append(tuple(names)) for name in warming.TASKS}
    monkeypatch.setattr(warming, "TASKS", tasks)
    with pytest.raises(SystemExit) as ended:
        main(["warm-up", "--algorithm", "pro"])
    assert not ended.value.code
    assert asked == [("pro",)] * 3
    assert [line.split(":")[0] for line in capsys.readouterr().out.splitlines()] == list(tasks)


@pytest.mark.parametrize(
    ("tasks", "algorithms"), [(["dance"], ["mert"]), (["optimize"], ["nothing"])]
)
def test_unknown_names(tasks: list[str], algorithms: list[str]) -> None:
    with pytest.raises(mosesplug.UsageError, match=f"{tasks[0]}|nothing"):
        mosesplug.warm_up(tasks, algorithms)
