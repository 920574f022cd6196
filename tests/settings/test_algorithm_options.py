"""Options of algorithms from texts."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_type_hints

import pytest

from mosesplug.errors import UsageError
from mosesplug.optimizers import Algorithm, algorithms
from mosesplug.options import Opt, options_by_field
from mosesplug.settings.algorithm_options import (
    add_tune_options,
    describe_options,
    find_idle_options,
    make_options,
)


@dataclass(frozen=True)
class Options:
    rounds: Annotated[int, Opt("Rounds", minimum=1)] = 3
    rate: Annotated[float, Opt("Rate")] = 0.5
    kind: Annotated[Literal["one", "two"], Opt("Kind")] = "one"
    shuffle: Annotated[bool, Opt("Shuffle")] = True
    label: Annotated[str, Opt("Label")] = "x"


def fake() -> Algorithm:
    def optimize(*arguments: Any) -> Any:
        raise AssertionError(arguments)

    return Algorithm("fake", "", "", "", Options, optimize)


def test_values_take_the_fields_types() -> None:
    given = {"rounds": "7", "rate": "1e-3", "kind": "two", "shuffle": "no", "label": 5}
    assert make_options(fake(), given) == Options(7, 1e-3, "two", False, "5")
    assert make_options(fake(), {}) == Options()
    assert make_options(fake(), {"rounds": 2}) == Options(2)


@pytest.mark.parametrize(
    "name",
    [
        *("rm-pa", "rm-cp", "adagrad", "rampion", "pro", "pro+mert"),
        *("oro", "o-oro", "oro-softmax", "o-oro-softmax", "rank-mira"),
    ],
)
def test_paper_variants_set_what_the_manual_says(name: str) -> None:
    page = Path(__file__).parents[2] / "docs" / "algorithms" / "papers.md"
    (section,) = (
        part
        for part in page.read_text().split("\n## ")
        if name.removesuffix("+mert") in part.partition("\n")[0].split(", ")
    )
    rows = dict(re.findall(r"^\| `(\w+)` \| (\S+) \|", section, re.MULTILINE))
    row = algorithms()[name]
    known = options_by_field(row.options)
    given = {option: value for option, value in rows.items() if option in known}
    assert make_options(row, {"variant": "paper"}) == make_options(
        row, {**given, "variant": "paper"}
    )
    assert make_options(row, given) == replace(
        make_options(row, {"variant": "paper"}), variant="mosesplug"
    )
    assert set(known["variant"].presets["paper"]) == set(rows)


def test_tune_adds_its_own_defaults_under_their_condition() -> None:
    assert add_tune_options(fake(), {"rounds": 2}) == {"rounds": 2}
    always = replace(fake(), tune_options={"rounds": 5})
    assert add_tune_options(always, {"rate": 1}) == {"rounds": 5, "rate": 1}
    assert add_tune_options(always, {"rounds": 2}) == {"rounds": 2}
    once = replace(always, tune_options_with="kind=one")
    assert add_tune_options(once, {}) == {"rounds": 5}
    assert add_tune_options(once, {"kind": "one"}) == {"rounds": 5, "kind": "one"}
    assert add_tune_options(once, {"kind": "two"}) == {"kind": "two"}


def test_descriptions_have_both_defaults() -> None:
    described = {each["name"]: each for each in describe_options(algorithms()["mert"])}
    assert (described["restarts"]["default"], described["restarts"]["tune_default"]) == (20, 0)
    assert described["polish"]["default"] == described["polish"]["tune_default"]


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("speed", "1", "unknown option 'speed' of fake. See mosesplug algorithms fake."),
        ("restarts", "1", "It is one of mert, .*nelder-mead.*: choose by --algorithm"),
        ("round", "1", r"Did you mean rounds\?"),
        ("rounds", "x", "must be an integer"),
        ("rounds", "0", "at least 1"),
        ("rounds", "1" + 20 * "0", "at most 1000000"),
        ("rate", "x", "a number"),
        ("rate", "nan", "must be finite"),
        ("rate", "inf", "must be finite"),
        ("rate", "-1e400", "must be finite"),
        ("kind", "three", "one of one, two"),
        ("shuffle", "perhaps", "true or false"),
    ],
)
def test_rejected_values(name: str, value: str, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        make_options(fake(), {name: value})


def test_defaults_of_registered_algorithms_are_accepted() -> None:
    for algorithm in algorithms().values():
        defaults = algorithm.options()
        assert make_options(algorithm, vars(defaults)) == defaults
        spelled = {name.replace("_", "-"): str(value) for name, value in vars(defaults).items()}
        assert make_options(algorithm, spelled) == defaults


@pytest.mark.parametrize(
    ("name", "given", "idle"),
    [
        ("pro", {"perceptron-epochs": 3}, ["perceptron_epochs"]),
        ("pro", {"perceptron_epochs": 3, "classifier": "perceptron"}, []),
        (
            "risk",
            {"temperature_end": 0.1, "cooling_rate": 0.2},
            ["temperature_end", "cooling_rate"],
        ),
        ("risk", {"temperature_end": 0.1, "temperature": 1.0}, []),
        ("xbleu", {"quench_rate": 2.0}, ["quench_rate"]),
        ("xbleu", {"quench_rate": 2.0, "quench_end": 4.0}, []),
        ("o-oro", {"renormalize": False, "exact_dual": True}, ["renormalize"]),
        ("o-oro", {"renormalize": False}, []),
    ],
)
def test_options_without_effect_are_reported(
    name: str, given: dict[str, Any], idle: list[str]
) -> None:
    algorithm = algorithms()[name]
    said = find_idle_options(algorithm.bind(make_options(algorithm, given)), given)
    assert [each.split()[1] for each in said] == idle
    assert all(f"of {name} has no effect without " in each for each in said)


def test_conditions_of_options_are_such_that_can_hold_and_fail() -> None:
    """Each names options and values that there are, and its own option is not among them."""
    conditions = 0
    for algorithm in algorithms().values():
        types = get_type_hints(algorithm.options)
        for option, setting in options_by_field(algorithm.options).items():
            condition = setting.only_with
            if condition is None:
                continue
            conditions += 1
            name, values = re.split("[=>]", condition)
            assert name in types, condition
            assert name != option
            if "=" in condition:
                known = {"true", "false"} if types[name] is bool else set(get_args(types[name]))
                assert set(values.split("|")) < known, condition
            else:
                assert types[name] is float
                assert values in types or float(values) == 0.0
    assert conditions > 20
