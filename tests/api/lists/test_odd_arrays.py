"""Test what happens to data as notebooks have them: frames, missing values, other types."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosesplug
from mosesplug.errors import MosesplugError
from tests.api.problems import Problem, make_problem

pandas = pytest.importorskip("pandas")


@pytest.fixture
def problem() -> Problem:
    return make_problem()


def learn(problem: Problem, **changes: Any) -> mosesplug.Fit:
    arguments: dict[str, Any] = {
        "features": problem.features,
        "sentence_ids": problem.sentence_ids,
        "hypotheses": problem.hypotheses,
        "references": problem.references,
        "options": {"restarts": 2},
    }
    return mosesplug.optimize(**(arguments | changes))


def test_values_that_are_numbers_of_any_kind(problem: Problem) -> None:
    expected = learn(problem).vector.tolist()
    frame = pandas.DataFrame(problem.features, columns=["F0", "F1", "F2", "F3"])
    masked = np.ma.masked_array(problem.features, mask=False)
    for features in (problem.features.astype(object), frame.convert_dtypes(), masked):
        assert learn(problem, features=features).vector.tolist() == expected


def _mask(problem: Problem) -> Any:
    return np.ma.masked_array(problem.features, mask=problem.features == problem.features[3, 1])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (lambda p: {"features": _mask(p)}, r"features\[3, 1\] \(F1\) is nan: give finite"),
        (lambda p: {"features": [[1.0]] * 7 + [[1.0, 2.0]]}, "features has rows of different"),
        (lambda p: {"features": [[1.0], [None]]}, r"features\[1, 0\] is None: give real numbers"),
        (lambda p: {"features": [[10**400]]}, "features has an integer that is too large"),
        (
            lambda p: {"features": np.array([[1.0], [pandas.NA]])},
            r"features\[1, 0\] is <NA>: give real numbers",
        ),
        (
            lambda p: {"sentence_ids": [None, *map(str, p.sentence_ids[1:])]},
            r"sentence_ids\[0\] is None: give an id",
        ),
        (
            lambda p: {"sentence_ids": p.sentence_ids[:, None]},
            r"sentence_ids has the shape \(96, 1\): give one id for each",
        ),
        (
            lambda p: {"references": pandas.DataFrame({"reference": p.references})},
            "references is a data frame: give its column",
        ),
        (
            lambda p: {"hypotheses": pandas.DataFrame({"text": p.hypotheses})},
            "hypotheses is a data frame: give one of its columns",
        ),
        (
            lambda p: {"hypotheses": ["\ud800", *p.hypotheses[1:]]},
            r"hypotheses\[0\] is not valid Unicode",
        ),
        (
            lambda p: {"references": dict(enumerate([*p.references[:-1], None]))},
            r"references\[11\] is None: give one or several texts",
        ),
        (
            lambda p: {"lists": p.features, "features": None, "sentence_ids": None},
            "lists is an array: give it as features=",
        ),
        (lambda p: {"initial": [1, 2]}, "give one for each of F0, F1, F2, F3"),
        (lambda p: {"options": "restarts=5"}, "options: expected a table of values by name"),
        (lambda p: {"seed": 1.5}, "seed: expected an integer, not 1.5"),
        (lambda p: {"ranges": {"F0": 1}}, r"ranges F0: 1 is not \(lowest, highest\)"),
        (lambda p: {"bounds": {"F0": (2, 1)}}, r"bounds F0:2.0..1.0: no weight is at least 2 and"),
        (lambda p: {"sharding": {"shard": 2}}, "unknown setting shard. Did you mean shards"),
    ],
)
def test_errors_name_argument_and_place(changes: Any, message: str, problem: Problem) -> None:
    with pytest.raises(MosesplugError, match=message):
        learn(problem, **changes(problem))


def test_choosing_from_a_frame_checks_its_columns(problem: Problem) -> None:
    frame = pandas.DataFrame(problem.features, columns=list("abcd"))
    fit = learn(problem, features=frame)
    chosen = fit.choose(problem.features, problem.sentence_ids).tolist()
    assert fit.choose(frame, problem.sentence_ids).tolist() == chosen
    with pytest.raises(mosesplug.UsageError, match=r"column 0 of features is 'd'.* a, b, c, d in"):
        fit.choose(frame[list("dcba")], problem.sentence_ids)


def test_a_fit_shows_error_rates_and_warnings(problem: Problem) -> None:
    fit = learn(problem, features=np.ones((96, 1)), metric="WER", held_out=0.25)
    head, *_, last = repr(fit).splitlines()
    assert fit.held_out is not None
    assert head.startswith(f"mert: WER {1.0 - fit.score:.4f} on ")
    assert f"held-out sentences {1.0 - fit.held_out:.4f}, 0." in head
    assert last.startswith("warning: F0 has the same value")
    assert "<p>warning: F0 has" in fit._repr_html_()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"metrics": []}, "metrics is empty"),
        ({"samples": -1}, "samples is -1"),
        ({"samples": 1.5}, "samples is 1.5: give an integer of at least 0"),
        ({"seed": -1}, "seed is -1: give an integer of at least 0"),
        ({"seed": "x"}, "seed is 'x': give an integer"),
        ({"metrics": [1]}, r"metrics\[0\] is 1: give a name"),
        ({"metrics": 5}, "metrics is a int: give a list"),
        ({"select": "orcale"}, "select is 'orcale': give a rank from 1, or 'oracle'"),
    ],
)
def test_impossible_arguments_of_scores(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(mosesplug.UsageError, match=message):
        mosesplug.score(["a"], ["a"], **arguments)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "samples is 0: give an integer of at least 1"),
        ({"trials": "x"}, "trials is 'x': give an integer of at least 1"),
        ({"seed": -1}, "seed is -1: give an integer of at least 0"),
    ],
)
def test_impossible_arguments_of_comparisons(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(mosesplug.UsageError, match=message):
        mosesplug.compare({"a": ["a"], "b": ["a"]}, ["a"], **arguments)


def test_lists_and_numbers_of_other_types(tmp_path: Path) -> None:
    lists = mosesplug.NBest([0], ["a"], [[1.0]], names=["A"])
    other: Any = [1]
    with pytest.raises(mosesplug.UsageError, match="scale is '1': give a number of at least 0"):
        mosesplug.rerank(lists, {"A": 1.0}, mbr=True, scale="1")  # type: ignore[arg-type]
    with pytest.raises(mosesplug.UsageError, match="lists is a list: give an NBest, a file"):
        mosesplug.rerank(other, {"A": 1.0})
    with pytest.raises(mosesplug.UsageError, match=r"lists is a list: give an NBest$"):
        mosesplug.write_nbest(tmp_path / "lists", other)
    with pytest.raises(mosesplug.UsageError, match="digits is 0: give an integer of at least 1"):
        mosesplug.write_nbest(tmp_path / "lists", lists, digits=0)
    assert not list(tmp_path.iterdir())


def test_weights_of_features_that_no_list_has(tmp_path: Path) -> None:
    lists = mosesplug.NBest([0, 0], ["a", "b"], [[1.0, 0.0], [2.0, 1.0]], names=["LM", "W"])
    weights = {"LM": 1.0, "Wrod": 2.0, "W": -3.0}
    message = "weights, entry 1: there is no feature Wrod; known: LM, W. Correct"
    with pytest.raises(mosesplug.UsageError, match=message):
        mosesplug.rerank(lists, weights)
    mosesplug.write_nbest(tmp_path / "lists", lists)
    with pytest.raises(mosesplug.UsageError, match=message):
        mosesplug.rerank(tmp_path / "lists", weights)
    table = mosesplug.WeightTable.of_mapping(weights)
    table.save(tmp_path / "weights", "dense")
    table.save(tmp_path / "pairs", "equals")
    message = "a weight of Wrod, which is no feature of"
    for more in (table, tmp_path / "weights", tmp_path / "pairs", "LM=1 Wrod=2 W=-3"):
        with pytest.raises(mosesplug.FormatError, match=message):
            mosesplug.rerank(lists, more)
    # A weight of 0 changes nothing. A sparse feature may be missing if the lists have others.
    zero = mosesplug.WeightTable.of_mapping({"LM": 1.0, "Wrod": 0.0, "W": -3.0})
    (tmp_path / "sparse").write_text(
        "0 ||| a ||| LM= 1 W= 0 T_y= 1 ||| 0\n0 ||| b ||| LM= 2 W= 1 ||| 0\n"
    )
    sparse = mosesplug.read_nbest(tmp_path / "sparse")
    unknown = {"LM": 1.0, "W": -3.0, "T_x": 1.0}
    assert mosesplug.rerank(lists, zero).texts == ["a"]
    assert mosesplug.rerank(sparse, unknown).texts == ["a"]
    with pytest.raises(
        mosesplug.UsageError, match=r"entry 2: there is no feature T_x; known: LM, W. C"
    ):
        mosesplug.rerank(lists, unknown)
    added = mosesplug.rerank(lists, weights, add_features={"Wrod": [0.0, 5.0]})
    assert added.texts == ["b"]
    named = mosesplug.NBest([0, 0], ["a", "b"], [[1.0, 0.0], [2.0, 1.0]], names=["TM_1", "TM_2"])
    assert mosesplug.rerank(named, {"TM": (1.0, -3.0)}).texts == ["a"]


def test_merged_lists_have_the_same_features() -> None:
    lists = [
        mosesplug.NBest([0], ["a"], [[1.0, 2.0]], names=names)
        for names in (["LM", "W"], ["LM", "W"], ["TM", "TM"])
    ]
    message = r"lists\[2\] has the features TM\*2, lists\[0\] has LM W: give lists of the same"
    with pytest.raises(mosesplug.DataError, match=message):
        mosesplug.optimize(lists, references=["a"])
    message = r"heldout_lists\[1\] has the features TM\*2, heldout_lists\[0\] has LM W"
    with pytest.raises(mosesplug.DataError, match=message):
        mosesplug.optimize(
            lists[0], references=["a"], heldout_lists=lists[1:], heldout_references=["a"]
        )


def test_weights_are_numbers_of_any_kind() -> None:
    table = mosesplug.WeightTable.of_mapping({"A": np.float32(0.5), "B": np.array([1, 2])})  # type: ignore[dict-item]
    assert dict(table) == {"A": 0.5, "B": (1.0, 2.0)}
    with pytest.raises(mosesplug.UsageError, match="the weight of A is 'x': give numbers"):
        mosesplug.WeightTable.of_mapping({"A": "x"})  # type: ignore[dict-item]
    lists = mosesplug.NBest([0], ["a"], [[1.0]], names=["A"])
    with pytest.raises(mosesplug.UsageError, match=r"add_features\['X'\] must be a value for"):
        mosesplug.rerank(lists, {"A": 1.0, "X": 1.0}, add_features={"X": 1.0})


def test_systems_are_series_of_texts() -> None:
    texts = pandas.Series(["a b", "c"], index=["x", "y"])
    found = mosesplug.compare({"a": texts, "b": texts.tolist()}, texts, "WER", trials=10)
    assert [each.score for each in found] == [0.0, 0.0]
    with pytest.raises(mosesplug.UsageError, match=r"systems\['b'\] has 1 texts, .* must be 2"):
        mosesplug.compare({"a": texts, "b": ["a b"]}, texts)


def test_a_score_function_that_fails_is_named() -> None:
    metric = mosesplug.StatisticsMetric(lambda totals: 1.0 if totals[0] else 0.0, name="F1")
    with pytest.raises(mosesplug.UsageError, match=r"function of F1 failed .*ValueError.*totals\["):
        mosesplug.optimize(
            features=[[1.0], [2.0]], sentence_ids=[0, 0], statistics=[[1, 2], [2, 2]], metric=metric
        )
