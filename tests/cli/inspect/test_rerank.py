"""``mosesplug rerank`` as a user calls it, on lists as Marian writes them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from formats.nbest.files import read_nbest
from mosesplug.cli.main import main

Run = Callable[..., tuple[int, str, str]]

# As Marian's --n-best writes them.
LIST = """0 ||| the house ||| F0= -1.5 ||| -0.5
0 ||| a house ||| F0= -2 ||| -0.7
0 ||| the house is ||| F0= -2.5 ||| -0.6
2 ||| she went ||| F0= -1 ||| -0.3
2 ||| she left ||| F0= -1.25 ||| -0.4
"""
FORMAT = "list: format marian (id ||| text [||| alignment] ||| F0= -3 ||| score)\n"
COLUMN = "-3\n-1\n-9\n-2\n-1e0\n"


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls the command in a directory with the lists; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    Path("list").write_text(LIST)
    Path("column").write_text(COLUMN)
    Path("weights").write_text("F0= 1\nLM= 0.5\n")
    Path("alone").write_text("F0= 1\n")

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["rerank", "--nbest", "list", *map(str, words)])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err.removeprefix(FORMAT)

    return call


def test_by_weights_alone_and_with_a_feature(run: Run) -> None:
    assert run("--weights", "alone") == (0, "the house\n\nshe went\n", "")
    words = ("--weights", "weights", "--add-feature", "LM=column")
    assert run(*words) == (0, "a house\n\nshe left\n", "")
    assert run(*words, "-o", "best") == (0, "", "")
    assert Path("best").read_text() == "a house\n\nshe left\n"


@pytest.mark.parametrize(
    "text", ["F0= 1\nLM= 2\n", '{"dense": {"F0": 1, "LM": 2}}', "F0: 1\nLM: 2\n", "F0=1 LM=2\n"]
)
def test_a_weight_of_a_feature_that_the_list_lacks(run: Run, text: str) -> None:
    Path("weights").write_text(text)
    code, out, err = run("--weights", "weights")
    assert (code, out) == (1, "")
    assert err.startswith("mosesplug: weights: a weight of LM, which is no feature of list. Its ")
    Path("weights").write_text(text.replace("2", "0"))
    assert run("--weights", "weights") == (0, "the house\n\nshe went\n", "")


def test_a_weight_for_a_list_without_features(run: Run) -> None:
    Path("list").write_text("0 ||| a house ||| ||| -1\n")
    code, out, err = run("--weights", "alone")
    assert (code, out) == (1, "")
    assert "which is no feature of list. It has no dense features. " in err


def test_scores_of_words_need_the_option_that_the_weights_had(run: Run) -> None:
    Path("list").write_text(
        "0 ||| a b ||| WordScores= -1 -2 ||| F0= -3 ||| -1\n"
        "0 ||| a ||| WordScores= -2 ||| F0= -2 ||| -2\n"
    )
    Path("weights").write_text("F0= -1\nWordScores= 2\n")
    assert run("--weights", "weights")[0] == 1
    assert run("--weights", "weights", "--word-scores", "sum")[:2] == (0, "a\n")


def test_a_list_without_texts_needs_a_file_for_the_list(run: Run) -> None:
    Path("list").write_text('{"id": "u", "lm": -2}\n{"id": "u", "lm": -1}\n')
    Path("weights").write_text("lm= 1\n")
    code, out, err = run("--weights", "weights")
    assert (code, out) == (1, "")
    assert (
        "list: the list has no texts to print: no key or column is named hyp, hypothesis, " in err
    )
    assert run("--weights", "weights", "--output-nbest", "sorted")[0] == 0


def test_the_format_is_printed(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    for words, shown in (((), FORMAT), (("--format", "marian"), "")):
        with pytest.raises(SystemExit):
            main(["rerank", "--nbest", "list", "--weights", "alone", *words])
        assert capsys.readouterr().err == shown


def test_sorted_lists(run: Run) -> None:
    run("--weights", "weights", "--add-feature", "LM=column", "--output-nbest", "sorted.gz")
    found = read_nbest("sorted.gz")
    assert found.groups == (("F0", 1), ("LM", 1))
    assert [found.text(row) for row in range(3)] == [b"a house", b"the house", b"the house is"]
    assert found.scores.tolist() == [-2.5, -3.0, -7.0, -1.75, -2.0]
    assert found.dense[:, 1].tolist() == [-1.0, -3.0, -9.0, -1.0, -2.0]


def test_least_risk(run: Run) -> None:
    # With all alike, "the house" shares most with the others.
    words: tuple[object, ...] = ("--weights", "alone", "--mbr", "--scale", 0)
    assert run(*words) == (0, "the house\n\nshe went\n", "")
    # With a sharp posterior it is the model's best.
    words = ("--weights", "weights", "--add-feature", "LM=column", "--mbr", "--scale", 100)
    assert run(*words) == (0, "a house\n\nshe left\n", "")


def test_lists_in_blocks(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "formats.nbest.files.read_nbest_blocks.__kwdefaults__", {"names": None, "block_bytes": 1}
    )
    words = ("--weights", "weights", "--add-feature", "LM=column")
    assert run(*words) == (0, "a house\n\nshe left\n", "")


@pytest.mark.parametrize(
    ("change", "words", "code", "said"),
    [
        (
            {"column": "1\n2\n"},
            ("LM=column",),
            1,
            "list:3: this hypothesis has no value: column has only 2",
        ),
        ({"column": COLUMN + "4\n"}, ("LM=column",), 1, "column:6: a value without a hypothesis"),
        ({"column": "1\nx\n"}, ("LM=column",), 1, "column:2: 'x' is not a finite number"),
        ({"column": "1\n1e39\n"}, ("LM=column",), 1, "column:2: 1e+39 is too large for a feature"),
        ({}, ("LM",), 2, "give NAME=FILE"),
        ({}, ("L M=column",), 2, "with a name without blanks"),
        ({}, ("L_M=column",), 1, "weights: no weight of L_M, a feature of the lists"),
        ({}, ("Other=column",), 1, "Other"),
        ({}, ("F0=column",), 2, "has a feature F0 already"),
        ({}, ("LM=column", "LM=column"), 2, "has a feature LM already"),
        ({}, ("LM=none",), 2, "none"),
    ],
)
def test_invalid_features_are_rejected(
    change: dict[str, str], words: tuple[str, ...], code: int, said: str, run: Run
) -> None:
    for name, text in change.items():
        Path(name).write_text(text)
    added = [word for each in words for word in ("--add-feature", each)]
    found, out, error = run("--weights", "weights", *added, "-o", "best")
    assert (found, out) == (code, "")
    assert said in error
    assert not Path("best").exists()
