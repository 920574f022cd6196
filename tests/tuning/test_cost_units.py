"""Lengths of source sentences in a run: those of its input, iteration by iteration and online."""

from __future__ import annotations

from typing import Any

import pytest

import mosesplug
from mosesplug.decoders.description import MosesDecoder
from mosesplug.errors import UsageError
from mosesplug.settings.online import OnlineSettings
from mosesplug.tuning import tune

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any


@pytest.mark.parametrize(
    ("algorithm", "settings", "online"),
    [
        ("mira", {"epochs": 1}, None),
        ("margin", {"rounds": 1}, None),
        ("mira", {}, OnlineSettings(decoder="process")),
    ],
)
def test_runs_take_lengths_from_their_input(
    toy: Toy, algorithm: str, settings: dict[str, int], online: OnlineSettings | None
) -> None:
    weights = {}
    for unit in ("sentence", "source"):
        made = {"algorithm": algorithm, "options": {**settings, "cost_unit": unit}}
        more = {"online": online, "maximum_iterations": 1}
        weights[unit] = tune(toy.configuration(unit, optimization=made, **more)).weights
    assert weights["source"].dense != weights["sentence"].dense


def test_lattices_have_no_lengths(toy: Toy) -> None:
    made = {"algorithm": "rm-pa", "options": {"cost_unit": "source"}}
    decoder = MosesDecoder(toy.decoder, (), input_type=2)
    configuration = toy.configuration(decoding={"decoder": decoder}, optimization=made)
    with pytest.raises(UsageError, match="rm-pa: cost_unit=source needs the source sentences"):
        tune(configuration)


def test_optimize_takes_lengths_from_the_input_of_a_run(toy: Toy) -> None:
    """The input must be there, and the file that was decoded."""
    tune(toy.configuration("run", maximum_iterations=1))
    source = toy.directory / "input"
    reading = {
        "store": toy.directory / "run",
        "algorithm": "rm-pa",
        "options": {"cost_unit": "source"},
    }
    by_run = mosesplug.optimize(**reading)
    assert dict(by_run.weights) == dict(mosesplug.optimize(**reading, source=source).weights)
    lines = source.read_text()
    source.write_text(f"{lines}one more\n")
    with pytest.raises(UsageError, match=r"settings.toml: the input of .* has changed since"):
        mosesplug.optimize(**reading)
    source.unlink()
    with pytest.raises(UsageError, match=r"the input of .* is missing. Give .*source"):
        mosesplug.optimize(**reading)
