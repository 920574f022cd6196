"""A toy system, and experiments on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.experiments.file import read_experiment
from mosesplug.experiments.planning import ExperimentPlan, plan_experiment
from tests.tuning.conftest import (  # noqa: F401
    _no_compiling_ahead,
    decoder_in_process,
    make_toy,
)

HEAD = """
baseline = "kbmira"
directory = "results"
seeds = 2
trials = 100
[paths]
decoder = "./decoder"
[settings]
decoder = "{decoder}"
nbest = 15
max-iterations = 2
[features.dense]
config = "moses.ini"
[tuning.small]
input = "input"
refs = "reference"
sentences = 6
[tests.whole]
input = "input"
refs = "reference"
"""
"""An experiment without systems, in the directory of a toy system."""

KBMIRA = "[systems.kbmira]\noption = { epochs = 2 }\n"


@pytest.fixture
def toy_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A toy system of 12 sentences in the current directory."""
    make_toy(tmp_path)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def plan(toy_directory: Path) -> Callable[..., ExperimentPlan]:
    """Plans an experiment that is given as text."""

    def make(text: str, **more: object) -> ExperimentPlan:
        path = toy_directory / "toy.toml"
        path.write_text(text)
        return plan_experiment(read_experiment(Path("toy.toml"), **more))  # type: ignore[arg-type]

    return make
