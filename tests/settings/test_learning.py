"""Test the settings of learning without a decoder."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.errors import UsageError
from mosesplug.options import list_options
from mosesplug.settings.configuration import RunPlan
from mosesplug.settings.learning import LearningSettings, make_learning_settings
from mosesplug.settings.sharding import Sharding

GIVEN = {"nbest": ["lists"], "refs": "refs"}


def test_defaults_learn_once_from_all_sentences() -> None:
    settings = make_learning_settings(GIVEN)
    assert settings.nbest == (Path("lists"),)
    assert settings.references == Path("refs")
    assert (settings.folds, settings.runs, settings.held_out) == (None, None, None)
    assert (settings.select, settings.seed, settings.algorithm) == ("median", 1, "mert")
    assert settings.sharding is None


def test_values_take_the_types_of_their_fields() -> None:
    values = {"graphs": ["one", "two"], "refs": "refs", "active": "LM0,TM0 D0", "shards": 3}
    settings = make_learning_settings({**values, "algorithm": "mira", "option": {"epochs": "3"}})
    assert settings.graphs == (Path("one"), Path("two"))
    assert settings.active == ("LM0", "TM0", "D0")
    assert settings.sharding == Sharding(shards=3)
    assert settings.options == {"epochs": "3"}
    assert settings.input_paths == [Path("one"), Path("two")]


def test_settings_of_a_run_are_declared_once() -> None:
    of_run = {each.name: each for each in list_options(RunPlan)}
    own = {each.name: each for each in list_options(LearningSettings)}
    shared = {"refs", "algorithm", "option", "active", "range", "threads", "shards", "mixing"}
    for name in shared:
        assert own[name].help == of_run[name].help
        assert own[name].panel == of_run[name].panel


@pytest.mark.parametrize(
    ("values", "why"),
    [
        ({"nbest": []}, "nothing to learn from"),
        ({"refs": None}, "no reference is given"),
        ({"refs": None, "metric": "BLUE"}, "unknown metric 'BLUE'"),
        ({"graphs": ["one"]}, "--nbest and --graphs exclude each other"),
        ({"seed": -1}, "--seed must be at least 0"),
        ({"held-out": 1.0}, "--held-out must be less than 1"),
        ({"runs": 1}, "--runs must be at least 2"),
        ({"select": "first", "runs": 2}, "--select must be one of"),
    ],
)
def test_values_that_cannot_be_used(values: dict[str, object], why: str) -> None:
    given = {name: value for name, value in (GIVEN | values).items() if value}
    with pytest.raises(UsageError, match=why):
        make_learning_settings(given)
