"""Sparse weights in ``FILE.sparse`` count wherever weights are read, and missing ones are noted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

import mosesplug
from mosesplug.cli.main import main

Run = Callable[..., tuple[int, str, str]]

LISTS = """0 ||| a b c d e ||| LM0= -1 WT_x~y= 1 ||| -1
0 ||| a b z d ||| LM0= -1 WT_a~b= 1 ||| -1
1 ||| x y z z ||| LM0= -2 WT_a~b= 1 ||| -1
1 ||| x y z w ||| LM0= -2 WT_x~y= 1 ||| -1
"""
BEST = "a b c d e\nx y z w\n"
ROWS = "sentence\trank\tequals\n0\t1\t1\n1\t1\t1\n"
RERANK = ("rerank", "--nbest", "n")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Calls a command in a directory with lists and weights; its exit code, stdout, stderr."""
    monkeypatch.chdir(tmp_path)
    Path("n").write_text(LISTS)
    Path("r").write_text(BEST)
    Path("w").write_text("LM0= 0.5\n")
    Path("w.sparse").write_text("WT_x~y 2\n")
    Path("alone").write_text("LM0= 0.5\n")

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main([*map(str, words)])
        printed = capsys.readouterr()
        return int(end.value.code or 0), printed.out, printed.err

    return call


@pytest.mark.parametrize(
    "named", [("w",), ("alone+w.sparse",), ("alone", "--sparse-weights=w.sparse")]
)
def test_commands_that_score_lists_use_the_companion(named: tuple[str, ...], run: Run) -> None:
    assert run(*RERANK, "--weights", *named)[1] == BEST
    mbr = ("mbr", "--nbest", "n", "--scale", "50", "--list-mbr")
    assert run(*mbr, "--weights", *named)[1] == BEST
    oracle = ("oracle", "n", "--refs", "r", "--rows", "rows", "--method", "sentence")
    assert run(*oracle, "--weights", *named)[0] == 0
    assert Path("rows").read_text() == ROWS


def test_commands_of_weights_use_the_companion(run: Run) -> None:
    assert ["WT_x~y", "2"] in [each.split() for each in run("weights", "show", "w")[1].splitlines()]
    assert "only in B" in run("weights", "diff", "alone", "w")[1]
    assert "WT_x~y: 2.0" in run("weights", "convert", "w", "--to", "yaml")[1]
    assert mosesplug.WeightTable.read("w")["WT_x~y"] == 2.0


def test_table_of_weights_is_read_as_it_was_saved(run: Run) -> None:
    table = mosesplug.WeightTable.of_mapping({"LM0": 0.5}, {"WT_x~y": 2.0})
    table.save("saved")
    assert mosesplug.WeightTable.read("saved") == table


def test_starting_weights_use_the_companion(run: Run) -> None:
    words = ("optimize", "--nbest", "n", "--refs", "r", "--algorithm", "kbmira", "-o", "tuned")
    starts = {}
    for init in ("w", "alone", "alone+w.sparse"):
        code, _, printed = run(*words, "--init", init)
        assert code == 0
        starts[init] = next(line for line in printed.splitlines() if "at the start" in line)
    assert starts["w"] == starts["alone+w.sparse"] == "score at the start  1.000000"
    assert starts["alone"] != starts["w"]


def test_runs_of_the_store_use_the_companion(run: Run) -> None:
    assert run("nbest", "import", "n", "store", "--refs", "r")[0] == 0
    first = run("nbest", "show", "store", "0", "--weights", "w")[1]
    assert first == run("nbest", "show", "store", "0", "--weights", "alone+w.sparse")[1]
    assert first != run("nbest", "show", "store", "0", "--weights", "alone")[1]


def test_sparse_features_without_any_weight_are_a_warning(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    for words in (
        (*RERANK, "--weights", "alone"),
        ("mbr", "--nbest", "n", "--weights", "alone", "--quiet"),
        ("oracle", "n", "--refs", "r", "--weights", "alone", "--quiet"),
    ):
        caplog.clear()
        assert run(*words)[0] == 0
        (message,) = caplog.messages
        assert "alone has no weight of any sparse feature of n (2 sparse features)" in message
        assert "FILE+SPARSE" in message
    caplog.clear()
    for weights in ("w", "LM0=1 WT_a~b=3"):
        assert run(*RERANK, "--weights", weights)[0] == 0
    assert not caplog.messages


def test_algorithm_of_dense_features_names_those_that_it_does_not_tune(run: Run) -> None:
    words = ("optimize", "--nbest", "n", "--refs", "r", "-o", "tuned", "--init", "alone")
    (line,) = (
        each
        for each in run(*words, "--algorithm", "mert")[2].splitlines()
        if "sparse feature" in each
    )
    assert line.startswith("mert tunes dense features only: the weights of 2 sparse features")
    assert "kbmira" in line
    assert "sparse feature" not in run(*words, "--algorithm", "kbmira")[2]
    counted = (*words, "--algorithm", "mert", "--sparse-min-count", "2")
    assert "mert tunes dense features only" in run(*counted)[2]
    active = ("--algorithm", "mert", "--active", "LM0")
    assert "sparse feature" not in run(*words, *active)[2]
