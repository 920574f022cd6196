"""Options of algorithms from texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

import pytest

from mosesplug.errors import UsageError
from mosesplug.optimizers import Algorithm, algorithms
from mosesplug.tuning.algorithm_options import algorithm_options


@dataclass(frozen=True)
class Options:
    rounds: int = field(default=3, metadata={"minimum": 1})
    rate: float = 0.5
    kind: Literal["one", "two"] = "one"
    shuffle: bool = True
    label: str = "x"


def fake() -> Algorithm:
    def optimize(*arguments: Any) -> Any:
        raise AssertionError(arguments)

    return Algorithm("fake", "", "", Options, optimize)


def test_values_take_the_fields_types() -> None:
    given = {"rounds": "7", "rate": "1e-3", "kind": "two", "shuffle": "no", "label": 5}
    assert algorithm_options(fake(), given) == Options(7, 1e-3, "two", False, "5")
    assert algorithm_options(fake(), {}) == Options()
    assert algorithm_options(fake(), {"rounds": 2}) == Options(2)


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("speed", "1", "has no option speed; it has kind, label, rate, rounds, shuffle"),
        ("rounds", "x", "a whole number"),
        ("rounds", "0", "at least 1"),
        ("rounds", "1" + 20 * "0", "at most 2147483647"),
        ("rate", "x", "a number"),
        ("rate", "nan", "a finite number"),
        ("rate", "inf", "a finite number"),
        ("rate", "-1e400", "a finite number"),
        ("kind", "three", "one of one, two"),
        ("shuffle", "perhaps", "true or false"),
    ],
)
def test_refused_values(name: str, value: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        algorithm_options(fake(), {name: value})


def test_defaults_of_registered_algorithms_are_accepted() -> None:
    for algorithm in algorithms().values():
        defaults = algorithm.options()
        assert algorithm_options(algorithm, vars(defaults)) == defaults
        spelled = {name.replace("_", "-"): str(value) for name, value in vars(defaults).items()}
        assert algorithm_options(algorithm, spelled) == defaults
