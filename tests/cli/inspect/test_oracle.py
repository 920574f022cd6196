"""``mosesplug oracle`` as a user calls it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.cli.main import main
from tests.results.runs import REFERENCE, make_run

Run = Callable[..., tuple[int, str, str]]

LISTS = """0 ||| the house is red old ||| LM0= -1 TM0= -2 ||| -3
0 ||| the red house is old ||| LM0= -2 TM0= -2 ||| -4
1 ||| she sees a dog ||| LM0= -1 TM0= -1 ||| -2
1 ||| she sees one dog ||| LM0= -3 TM0= 0 ||| -3
1 ||| she sees a small dog today ||| LM0= -4 TM0= 0 ||| -4
"""


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls ``mosesplug oracle`` beside lists and references; exit code, stdout, stderr."""
    (tmp_path / "list").write_text(LISTS)
    (tmp_path / "ref").write_bytes(b"\n".join(REFERENCE) + b"\n")
    (tmp_path / "weights").write_text("LM0= 1\nTM0= 5\n")
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["oracle", *map(str, words)])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


def test_scores_methods_and_sizes(run: Run, tmp_path: Path) -> None:
    words = ("--top", "1,2,all", "-o", "best", "--rows", "rows")
    code, out, _ = run("list", "--refs", "ref", *words)
    assert code == 0
    lines = out.splitlines()
    assert lines[0] == "2 sentences, 5 distinct hypotheses"
    assert lines[1].startswith("BLEU|nrefs:1|")
    table = [line.split() for line in lines[3:]]
    assert table[0] == ["oracle", "first", "1", "first", "2", "all"]
    assert table[1][:2] == ["(first", "best)"]
    rows = {line[0]: [float(cell) for cell in line[1:]] for line in table[2:]}
    assert list(rows) == ["sentence", "greedy"]
    for scores in rows.values():
        assert float(table[1][2]) == scores[0] < scores[1] < scores[2] == 1.0
    assert Path("best").read_text() == "the red house is old\nshe sees a small dog today\n\n"
    assert Path("rows").read_text() == "sentence\trank\tequals\n0\t2\t1\n1\t3\t1\n"


def test_weights_rank_and_json_has_it_all(run: Run) -> None:
    given = ("list", "--refs", "ref", "--weights", "weights", "--top", "1", "--json")
    code, out, _ = run(*given, "--method", "all", "--restarts", "2", "--rows", "rows")
    assert code == 0
    document = json.loads(out)
    # At these weights the second hypothesis of the second sentence is its first.
    assert Path("rows").read_text() == "sentence\trank\tequals\n0\t1\t1\n1\t1\t1\n"
    assert document["sentences"] == 2
    assert document["hypotheses"] == 5
    methods = {each["method"]: each for each in document["oracles"]}
    assert list(methods) == ["sentence", "greedy", "batch", "pseudo-corpus", "background"]
    assert {each["score"] for each in methods.values()} == {document["first"]}
    assert len(methods["greedy"]["scores"]) == 2
    assert document["settings"]["restarts"] == 2


def test_a_store_has_its_metric_and_its_weights(run: Run, tmp_path: Path) -> None:
    make_run(tmp_path / "work")
    code, out, _ = run("work", "-o", "best", "--method", "greedy")
    assert code == 0
    assert "1.0000" in out
    assert Path("best").read_bytes() == b"\n".join(REFERENCE) + b"\n"
    code, _, err = run("work", "--metric", "TER")
    assert (code, "--refs" in err) == (2, True)
    code, out, _ = run("work", "--metric", "TER", "--refs", "ref")
    assert code == 0
    assert "TER|" in out


def test_unused_settings_are_reported(run: Run) -> None:
    given = ("--decay", "0.5", "--smoothing", "nakov", "--restarts", "2")
    code, _, err = run("list", "--refs", "ref", "--method", "batch,greedy", *given)
    assert code == 0
    assert "--decay has no effect without --method background" in err
    assert "--smoothing has no effect without --method sentence" in err
    assert "--restarts" not in err
    assert "warning" not in run("list", "--refs", "ref", "--method", "all", *given)[2]
    assert run("list", "--refs", "ref", "--method", "batch", "--quiet", *given)[::2] == (0, "")


def test_calls_that_are_at_fault(run: Run) -> None:
    for words, said in (
        (("list",), "--refs"),
        (("list", "--refs", "ref", "--method", "best"), "'best'"),
        (("list", "--refs", "ref", "--top", "1,0"), "'0'"),
        (("list", "--refs", "ref", "--sparse-weights", "weights"), "--weights"),
    ):
        code, _, err = run(*words)
        assert (code, said in err) == (2, True), err
    code, _, err = run("nothing", "--refs", "ref")
    assert (code, "nothing" in err) == (2, True)


def test_error_rates_are_rates(run: Run) -> None:
    code, out, _ = run("list", "--refs", "ref", "--metric", "WER")
    assert code == 0
    lines = out.splitlines()
    assert lines[1].endswith("(an error rate: less is better)")
    assert {line.split()[-1] for line in lines[5:]} == {"0.0000"}
    assert 0.0 < float(lines[4].split()[-1]) < 0.5
