"""A run can be repeated from the settings file that it left, whatever settings it had."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from mosesplug.errors import UsageError
from mosesplug.optimizers import algorithms
from mosesplug.options import Opt, list_options
from mosesplug.settings.build import collect_values, make_plan
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.toml import read_settings, write_settings
from tests.tuning.conftest import make_toy

Values = dict[str, Any]


def sample(setting: Opt, directory: Path) -> list[Any]:
    """Return values of a setting, at least one that is not its default."""
    samples: Values = {
        "heldout": [f"{directory}/input"],
        "heldout-refs": [f"{directory}/reference"],
        "heldout-decoder": [f"forest:{directory}/graphs"],
        "decoder": ["ask", f"forest:{directory}/graphs"],
        "decode-command": [f"{directory}/decoder {{input}} {{weights}} {{nbest}}"],
        "metric": ["TER", "BLEU,TER"],
        "metric-settings": ["case:false"],
        "range": [["LM0:0..1"]],
        "scheduler": ["tcp://host:1"],
        "algorithm": sorted(algorithms()),
    }
    if setting.name in samples:
        return list(samples[setting.name])
    match setting.kind:
        case "flag":
            return [True]
        case "choice":
            return list(setting.choices)
        case "integer":
            return [max(2, int(setting.minimum or 0))]
        case "real":
            return [0.5]
        case "texts":
            return [["LM0"]]
        case "path":
            return [f"{directory}/input"]
        case "table":
            return [{}]
        case _:
            return ["x"]


def list_contexts(directory: Path) -> Iterator[Values]:
    """Yield settings that others require."""
    heldout = {"heldout": f"{directory}/input", "heldout-refs": f"{directory}/reference"}
    yield {}
    yield {"online": True, "algorithm": "adagrad"} | heldout
    yield {"online": True, "algorithm": "adagrad", "shards": 2, "async": True}
    yield {"algorithm": "arow", "shards": 2, "workers": "processes"}
    yield {"algorithm": "adagrad", "shards": 2, "mixing": "select", "keep": 3}
    yield {"forest": True, "runs": 2} | heldout
    yield {"decoder": "ask", "shards": 2}


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    make_toy(tmp_path, sentences=2)
    (tmp_path / "graphs").mkdir()
    return tmp_path


def find_difference(values: Values, file: Path) -> str | None:
    """Return what is wrong with the file of such a run; None if nothing is, or no run is made."""
    try:
        plan = make_plan(values)
    except UsageError:
        return None
    several = {"runs": plan.repeats.runs, "choice": plan.select_run} if plan.repeats.runs else {}
    left = collect_values(plan.configuration, 5, **several)
    write_settings(file, left)
    try:
        again = make_plan(read_settings(file))
    except UsageError as error:
        return str(error)
    if collect_values(again.configuration, 5, **several) != left:
        return "other settings"
    return None


def test_every_pair_of_settings_is_read_as_it_was_written(
    directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(directory)
    base = {
        "input": str(directory / "input"),
        "refs": str(directory / "reference"),
        "decoder": str(directory / "decoder"),
        "config": str(directory / "moses.ini"),
        "working-dir": str(directory / "w"),
    }
    single = [
        {each.name: value}
        for each in list_options(RunPlan)
        if each.name not in base or each.name == "decoder"
        for value in sample(each, directory)
    ]
    file = directory / "settings.toml"
    faults = {}
    for number, context in enumerate(list_contexts(directory)):
        # All pairs would take a minute; each context takes other ones.
        pairs = [one | other for one, other in combinations(single, 2)][number::61]
        for values in single + pairs:
            every = base | context | values
            if "decode-command" in values:
                del every["decoder"]
            if (fault := find_difference(every, file)) is not None:
                faults[str(context | values)] = fault
    assert not faults
