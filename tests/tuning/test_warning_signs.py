"""Test the signs that a run goes wrong: detection, single reports, --strict."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest

from mosesplug.errors import DataError
from mosesplug.events import Note
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Problem, algorithm, algorithms
from mosesplug.optimizers.problem import no_progress
from mosesplug.tuning import tune
from mosesplug.tuning.warning_signs import (
    WarningSign,
    find_list_signs,
    find_score_signs,
    find_weight_signs,
)
from tests.optimizers.problems import planted, tuning_set

pytestmark = pytest.mark.usefixtures("decoder_in_process")

# What tools have written into moses.ini without a word.
TINY = (1, 1.99e-39, 1.6e-39, 1.64e-39, 2.05e-39, 2.16e-39, 2.89e-39, 3.75e-39, 2.59e-39)
ALL_BUT_ONE = (*[0.0] * 8, -0.0, 0.0, -0.0, 1.0, *[0.0] * 5)
ZEROS = (0.0,) * 17


def names(found: Sequence[WarningSign]) -> list[str]:
    return [each.name for each in found]


def of_weights(values: Sequence[float]) -> list[WarningSign]:
    return find_weight_signs(np.array(values), [f"F{n}" for n in range(len(values))])


@pytest.mark.parametrize("values", [TINY, ALL_BUT_ONE])
def test_a_dominating_weight_is_reported(values: tuple[float, ...]) -> None:
    (found,) = of_weights(values)
    assert (found.name, found.is_fatal) == ("one weight", False)
    assert f"F{int(np.argmax(values))} " in found.message


@pytest.mark.parametrize(
    "values", [ZEROS, TINY[1:], (0.1, np.nan, 0.2), (0.1, -np.inf)], ids=["0", "tiny", "nan", "inf"]
)
def test_weights_that_are_not_finite_are_fatal(values: tuple[float, ...]) -> None:
    (found,) = of_weights(values)
    assert found.is_fatal


def test_sound_weights_are_passed_over() -> None:
    assert not of_weights((0.3, -0.5, 0.2, 0.0))
    assert not of_weights((0.998, 0.002))
    assert not of_weights((1.0,))  # a system of one feature
    assert not of_weights((3e5, -7e5))


def test_sparse_weights_alone_are_no_sign() -> None:
    found = find_weight_signs(np.array([0.0, 0.0, 0.4]), ("A", "B", "s"), n_dense=2)
    assert names(found) == ["no weights"]


def test_scores() -> None:
    assert not find_score_signs([], "BLEU", 0.05)
    assert not find_score_signs([0.3, 0.26, 0.31], "BLEU", 0.05)
    assert names(find_score_signs([0.3, 0.24], "BLEU", 0.05)) == ["worse"]
    assert not find_score_signs([0.3, 0.24], "BLEU", 0.07)
    assert names(find_score_signs([0.0], "BLEU", 0.05)) == ["no score"]


def test_error_rates_are_shown_as_rates() -> None:
    (sign,) = find_score_signs([0.7, 0.62], "WER|nrefs:1", 0.05)
    assert "iteration 2 scores 0.3800, which is more than 0.05 above the 0.3000" in sign.message
    (sign,) = find_score_signs([0.0], "WER|nrefs:1", 0.05)
    assert sign.message.startswith("the error rate of the first translations is 1: they share")


def test_remedies_are_those_of_the_algorithm() -> None:
    for each in algorithms().values():
        options = [option.name for option in fields(each.options)]
        (sign,) = find_score_signs([0.3, 0.24], "BLEU", 0.05, options)
        assert ("learning rate" in sign.message) == ("rate" in options)
        for name in re.findall(r"--option (\w+)=", sign.message):
            assert name in options
    (sign,) = find_score_signs([0.3, 0.24], "BLEU", 0.05, ["restarts", "l2"])
    assert "become worse: a larger penalty (--option l2=X), longer lists or another" in sign.message


def with_constant(constant: float) -> Problem:
    """A planted problem whose third feature differs between sentences, but not within one."""
    problem, _ = planted(3, n_sentences=20, n_hyps=6)
    dense = problem.tuning_set.dense.copy()
    dense[:, 2] = constant * (1 + np.repeat(np.arange(20), 6))
    return replace(problem, tuning_set=replace(problem.tuning_set, dense=dense))


@pytest.mark.parametrize("constant", [0.0, -100.0])
def test_a_constant_feature_is_reported(constant: float) -> None:
    (found,) = find_list_signs(with_constant(constant).tuning_set)
    assert found.name == "constant feature"
    assert found.message.startswith("F2 has ")
    assert found.message.endswith("Remove the feature, or set tuneable=false in moses.ini")
    assert not find_list_signs(planted(3)[0].tuning_set)


def test_values_of_one_feature_are_numbered() -> None:
    made = with_constant(0.0).tuning_set
    (found,) = find_list_signs(replace(made, space=FeatureSpace((("LM", 1), ("TM", 4)))))
    assert found.message.startswith("TM_1 has ")


def test_a_feature_that_never_varies_does_not_take_all_weight() -> None:
    """The report of weights 1 and 1e-39: nothing bounds a step along such a feature."""
    problem = with_constant(-100.0)
    tuner = algorithm("mert")
    start = np.full(5, 0.2)
    found = tuner.optimize(problem, start, np.random.default_rng(1), tuner.options(), no_progress)
    assert not find_weight_signs(found.weights, problem.tuning_set.space.names)


def test_lists_without_diversity() -> None:
    made = tuning_set([1, 1, 3, 0], np.arange(10).reshape(5, 2), np.zeros(5))
    assert names(find_list_signs(made)) == ["no diversity"]
    assert not find_list_signs(tuning_set([1, 2, 3], np.arange(12).reshape(6, 2), np.zeros(6)))
    assert not find_list_signs(tuning_set([0, 0], np.zeros((0, 2)), np.zeros(0)))


def turn_reference(toy: Any) -> None:
    """Another reference than the input: that of the toy system is the input."""
    lines = (toy.directory / "input").read_text().splitlines()
    turned = "".join(f"so {line}\n" for line in lines)
    (toy.directory / "reference").write_text(turned)


def warnings_of(log: Any) -> list[str]:
    return [note.text for note in log.of(Note) if note.is_warning]


def test_a_sound_run_has_no_warning(toy: Any, log: Any) -> None:
    turn_reference(toy)
    tune(toy.configuration(maximum_iterations=2, strict=True), log)
    assert not warnings_of(log)
    summary = json.loads((toy.directory / "work/summary.json").read_text())
    assert summary["warnings"] == []


def test_a_warning_is_reported_once_and_summarized(toy: Any, log: Any) -> None:
    words = (toy.directory / "input").read_text()
    (toy.directory / "reference").write_text(words.upper())
    result = tune(toy.configuration(maximum_iterations=2), log)
    told = warnings_of(log)
    assert any("score of the first translations is 0" in text for text in told)
    assert len(told) == len(set(told))
    assert sorted(result.warnings) == sorted(told)
    summary = json.loads((toy.directory / "work/summary.json").read_text())
    assert summary["warnings"] == list(result.warnings)


def test_strict_rejects_before_anything_is_decoded(toy: Any, log: Any) -> None:
    shutil.copy(toy.directory / "input", toy.directory / "reference")
    with pytest.raises(DataError, match=r"--strict: .* those of the input"):
        tune(toy.configuration(strict=True), log)
    assert not list((toy.directory / "work").glob("run1.*"))


def test_strict_writes_no_result_of_one_weight(
    toy: Any, log: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn_reference(toy)
    monkeypatch.setattr("mosesplug.tuning.warning_signs.ALMOST_ALL", 0.01)
    with pytest.raises(DataError, match=r"--strict: the weight of .* iteration 1 are kept"):
        tune(toy.configuration(maximum_iterations=1, strict=True), log)
    assert not (toy.directory / "work/moses.ini").exists()
    tune(toy.configuration(maximum_iterations=1, existing="continue"), log)
    assert len(warnings_of(log)) == 1
    assert (toy.directory / "work/moses.ini").exists()
