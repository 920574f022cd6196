"""Schedules of annealing."""

from __future__ import annotations

from typing import Any

import pytest

from mosesplug.errors import UsageError
from mosesplug.optimizers.batch.expected.stages import AnnealingOptions, AnnealingStage


def test_scale_is_raised_to_its_end_and_no_further() -> None:
    assert AnnealingOptions(quench_end=100.0).stages() == (
        AnnealingStage(1.0),
        AnnealingStage(10.0),
        AnnealingStage(100.0),
    )
    stages = AnnealingOptions(scale=0.5, quench_end=7.0, quench_rate=4.0).stages()
    assert stages == (AnnealingStage(0.5), AnnealingStage(2.0), AnnealingStage(7.0))
    tenths = AnnealingOptions(scale=0.01, quench_end=100.0).stages()
    assert len(tenths) == 5


def test_cooling_comes_before_quenching() -> None:
    options = AnnealingOptions(temperature=2.0, temperature_end=0.4, quench_end=10.0)
    assert options.stages() == (
        AnnealingStage(1.0, 2.0),
        AnnealingStage(1.0, 1.0),
        AnnealingStage(1.0, 0.5),
        AnnealingStage(1.0),
        AnnealingStage(10.0),
    )


def test_without_a_schedule_there_is_one_stage() -> None:
    assert AnnealingOptions(scale=3.0, quench_rate=1.0).stages() == (AnnealingStage(3.0),)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"scale": 0.0}, "scale must be above 0"),
        ({"quench_end": 9.0, "quench_rate": 1.0}, "quench_rate must be above 1"),
        ({"temperature": 1.0, "cooling_rate": 1.0}, "cooling_rate between 0 and 1"),
        ({"temperature": 1.0, "cooling_rate": 0.0}, "cooling_rate between 0 and 1"),
        ({"temperature": 1.0, "temperature_end": 0.0}, "temperature_end above 0"),
        ({"temperature": 1.0, "cooling_rate": 0.9999}, "more than 1000 stages"),
        ({"quench_end": 9.0, "quench_rate": 1.0001}, "more than 1000 stages"),
    ],
)
def test_endless_schedules_are_rejected(options: dict[str, Any], why: str) -> None:
    with pytest.raises(UsageError, match=why):
        AnnealingOptions(**options).stages()
