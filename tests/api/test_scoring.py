"""Test score, compare and rerank against the command line, from texts and from files."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import mosesplug
from mosesplug.cli.main import main
from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import metric as find_metric
from tests.api.problems import NAMES, make_problem

METRICS = ("BLEU", "CHRF beta:2", "WER")


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Files of three translations: the first and the last hypotheses, and others."""
    monkeypatch.chdir(tmp_path)
    problem = make_problem()
    problem.write(tmp_path)
    for name, place in (("first", 0), ("last", 7), ("third", 2)):
        Path(name).write_text("".join(f"{text}\n" for text in problem.hypotheses[place::8]))
    return tmp_path


def run_command(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    with pytest.raises(SystemExit) as ended:
        main([*map(str, words)])
    assert not ended.value.code
    return capsys.readouterr().out


def read_lines(name: str) -> list[str]:
    return Path(name).read_text().splitlines()


def plain(records: Any) -> Any:
    """Return records as JSON has them: without ids and edits where there are none."""
    values = [asdict(each) for each in records]
    optional = ("ids", "edits")
    text = json.dumps(
        [{key: each[key] for key in each if key not in optional or each[key]} for each in values]
    )
    return json.loads(text.replace("NaN", "null"))


@pytest.mark.usefixtures("directory")
def test_scores_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    options = [word for name in METRICS for word in ("--metric", name)]
    printed = json.loads(
        run_command(capsys, "score", "first", "references", *options, "--json", "--sentences")
    )
    texts, references = read_lines("first"), read_lines("references")
    forms: list[tuple[Any, Any]] = [
        ("first", "references"),
        (Path("first"), [Path("references")]),
        (texts, references),
        ([text.encode() for text in texts], [references]),
    ]
    for hypotheses, reference in forms:
        found = plain(mosesplug.score(hypotheses, reference, METRICS))
        assert found == printed
    wer = find_metric("WER")
    assert (
        mosesplug.score(texts, references, [wer])[0] == mosesplug.score(texts, references, "WER")[0]
    )


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("words", "select"), [((), 1), (("--rank", 3), 3), (("--oracle",), "oracle")]
)
def test_scores_of_lists(
    words: tuple[object, ...], select: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ("score", "lists", "references", "--nbest", *words, "--metric", "BLEU", "--json")
    printed = json.loads(run_command(capsys, *command))
    for lists in ("lists", mosesplug.read_nbest("lists")):
        (found,) = mosesplug.score(lists, "references", "BLEU", select=select)
        assert (found.score, found.interval) == (printed[0]["score"], tuple(printed[0]["interval"]))
    (first,) = mosesplug.score(mosesplug.read_nbest("lists"), "references", "BLEU")
    assert first.score == mosesplug.score("first", "references", "BLEU")[0].score


@pytest.mark.usefixtures("directory")
def test_comparisons_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    command = ("compare", "base=first", "new=last,third", "--refs", "references", "--metric", "WER")
    printed = json.loads(
        run_command(capsys, *command, "--samples", 50, "--trials", 100, "--format", "json")
    )
    forms: list[Any] = [
        {"base": "first", "new": [Path("last"), Path("third")]},
        {"base": read_lines("first"), "new": [read_lines("last"), read_lines("third")]},
        {"base": [read_lines("first")], "new": [Path("last"), read_lines("third")]},
    ]
    for systems in forms:
        found = mosesplug.compare(systems, "references", "WER", samples=50, trials=100)
        assert plain(found) == printed
    assert found.table.columns[:4] == ("metric", "system", "runs", "score")
    assert "base" in repr(found)
    assert ">new" in found._repr_html_()
    assert len(found[1:]) == 1


@pytest.mark.usefixtures("directory")
def test_reranked_lists_are_those_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    values = np.round(np.random.default_rng(1).normal(size=96), 3)
    Path("column").write_text("".join(f"{value}\n" for value in values))
    weights = {"LM0": 0.5, "TM0": (0.1, -0.2), "Words": 0.3, "Length": 2.0}
    mosesplug.WeightTable.of_mapping(weights).save("weights", "dense")
    command = ("rerank", "--nbest", "lists", "--weights", "weights", "--add-feature")
    for words, keywords in (((), {}), (("--mbr", "--scale", 3), {"mbr": True, "scale": 3.0})):
        words = (*command, "Length=column", "--output-nbest", "sorted", *words)
        printed = run_command(capsys, *words).splitlines()
        lists = mosesplug.read_nbest("lists")
        forms: list[tuple[Any, Any, Any]] = [
            ("lists", "weights", "column"),
            (lists, weights, values),
            (lists, [0.5, 0.1, -0.2, 0.3, 2.0], values.tolist()),
            (lists, mosesplug.WeightTable.of_mapping(weights), Path("column")),
        ]
        for source, table, column in forms:
            found = mosesplug.rerank(source, table, add_features={"Length": column}, **keywords)
            assert found.texts == printed
            assert found.sentence_ids.tolist() == list(range(12))
            mosesplug.write_nbest("own", found.lists)
            assert Path("own").read_bytes() == Path("sorted").read_bytes()
        # The lists of the caller stay as they are.
        assert lists.scores.tolist() == mosesplug.read_nbest("lists").scores.tolist()
        assert lists.names == NAMES


def test_empty_lists() -> None:
    lists = mosesplug.NBest([], [], np.zeros((0, 1)))
    found = mosesplug.rerank(lists, [1.0])
    assert (len(found.lists), found.texts) == (0, [])


@pytest.mark.usefixtures("directory")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: mosesplug.score(["a"], ["a", "b"]), "1 translations, but the references have 2"),
        (lambda: mosesplug.score("first", ["a"]), "12 lines, but the references have 1"),
        (lambda: mosesplug.score(["a"], ["a"], "BLUE"), "unknown metric 'BLUE'"),
        (lambda: mosesplug.score(["a"], ["a"], select=1), "requires n-best lists, not a transl"),
        (lambda: mosesplug.score("lists", "references", select=0), "select is 0: give a rank"),
        (lambda: mosesplug.score("a", {0: "a"}), "references must be a file"),
        (lambda: mosesplug.compare({"a": ["a"]}, ["a"]), "give two systems or more"),
        (lambda: mosesplug.compare(["first", "second"], ["a"]), "must be a mapping of names to"),
        (lambda: mosesplug.compare({"a": 1, "b": 2}, ["a"]), r"systems\['a'\] must be a file"),
        (lambda: mosesplug.compare({"a": ["a"], "b": []}, ["a"]), r"systems\['b'\] must be a file"),
        (lambda: mosesplug.compare({"a": ["a"], "b": ["b"]}, ["a"], samples=0), "at least 1"),
        (lambda: mosesplug.rerank("lists", {"LM0": 1}), "weights: no weight of TM0"),
        (lambda: mosesplug.rerank("lists", [1, 2]), "weights: 2 weights, but the lists have 4"),
        (lambda: mosesplug.rerank("lists", {"LM0": "a"}), r"weights\['LM0'\] is 'a'"),
        (
            lambda: mosesplug.rerank("lists", [1] * 5, add_features={"A": [1]}),
            "lists:2: this hypothesis has no value: the array of A has only 1",
        ),
        (
            lambda: mosesplug.rerank("lists", [1] * 5, add_features={"A": [1] * 97}),
            "the array of A:97: a value without a hypothesis: the lists have 96",
        ),
        (
            lambda: mosesplug.rerank("lists", [1] * 5, add_features={"LM0": [1] * 96}),
            "has a feature LM0 already",
        ),
        (
            lambda: mosesplug.rerank("lists", [1] * 5, add_features={"A": [1e39] * 96}),
            r"add_features\['A'\]\[0\] is 1e\+39: too large",
        ),
        (
            lambda: mosesplug.rerank("lists", [1] * 5, add_features={"A b": [1] * 96}),
            "'A b' is not a name without blanks",
        ),
        (lambda: mosesplug.rerank("lists", [1] * 4, scale=-1, mbr=True), "scale is -1"),
    ],
)
def test_errors(call: Any, message: str) -> None:
    with pytest.raises((UsageError, DataError, mosesplug.FormatError), match=message) as caught:
        call()
    assert "\n" not in str(caught.value)
