"""``mosesplug bench-optimizers`` as a user calls it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from mosesplug.cli.main import main
from tests.results.runs import REFERENCE, make_run

Run = Callable[..., tuple[int, str, str]]

FEW = ("--algorithms", "kbmira,pso", "--option", "particles=4", "--option", "moves=3")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Calls the command beside a run; its exit code, stdout and stderr."""
    make_run(tmp_path / "work")
    (tmp_path / "ref").write_bytes(b"\n".join(REFERENCE) + b"\n")
    monkeypatch.chdir(tmp_path)

    def call(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["bench-optimizers", *map(str, words)])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return call


def test_a_table_of_a_store(run: Run) -> None:
    code, out, err = run("work", *FEW, "--seeds", "2", "--quiet")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].startswith("3 sentences, 6 distinct hypotheses of 9, 2 features; seeds 1 to 2")
    assert lines[1].startswith("BLEU|nrefs:1|")
    assert lines[3].split() == ["algorithm", "score", "CPU", "s", "active"]
    assert re.fullmatch(r"\(start\) +0\.\d{4}", lines[4])
    for name, line in zip(("kbmira", "pso"), lines[5:], strict=True):
        assert re.fullmatch(name + r" +\d\.\d{4} ± \d\.\d{4} +\d+\.\d +\d", line)


def test_gaps_to_the_optimum(run: Run) -> None:
    words = ("work", "--algorithms", "mert,kbmira", "--seeds", "2", "--optimum")
    code, out, _ = run(*words, "--json")
    assert code == 0
    document = json.loads(out)
    best = document["optimum"]["score"]["mean"]
    for result in document["algorithms"]:
        gaps = [best - score for score in result["score"]["values"]]
        assert result["gap"]["values"] == pytest.approx(gaps)
        assert min(gaps) >= 0.0
    code, out, _ = run(*words, "--quiet")
    lines = out.splitlines()
    assert lines[3].split() == ["algorithm", "score", "CPU", "s", "active", "gap"]
    assert lines[5].split()[:2] == ["(optimum)", f"{best:.4f}"]
    assert re.fullmatch(r"mert .* 0\.\d{4} ± 0\.\d{4}", lines[6])


def test_a_refusal_takes_the_place_of_figures(run: Run) -> None:
    words = ("--metric", "TER", "--refs", "ref", "--format", "markdown", "--held-out", "0.3")
    code, out, _ = run("work", *FEW, "--seeds", "1", *words, "--option", "inertia=2")
    assert code == 0
    table = [line.strip("| ").split(" | ") for line in out.splitlines() if line.startswith("|")]
    assert table[0] == ["algorithm", "score", "held out", "CPU s", "active"]
    assert [row[0] for row in table[2:]] == ["(start)", "kbmira", "pso"]
    assert table[4][1] == "refused: inertia must be below 1, not 2"
    assert "held out: 1 of the sentences" in out


def test_error_rates_are_rates(run: Run) -> None:
    words = ("work", *FEW, "--metric", "WER", "--refs", "ref", "--seeds", "2", "--held-out", "0.3")
    found = json.loads(run(*words, "--json")[1])
    rows = [
        found["start"],
        *({n: each[n]["mean"] for n in found["start"]} for each in found["algorithms"]),
    ]
    lines = run(*words, "--quiet")[1].splitlines()
    assert lines[1].endswith("(an error rate: less is better)")
    assert len(lines) == 8
    for line, row in zip(lines[5:], rows, strict=True):
        shown = re.findall(r"(?<!± )\b\d\.\d{4}", line)
        assert shown == [f"{1.0 - score:.4f}" for score in row.values()]


def test_json_has_every_seed(run: Run) -> None:
    code, out, _ = run("work", *FEW, "--seeds", "2", "--json", "--held-out", "0.3")
    assert code == 0
    document = json.loads(out)
    assert (document["sentences"], document["held_out_sentences"]) == (3, 1)
    assert [each["algorithm"] for each in document["algorithms"]] == ["kbmira", "pso"]
    for each in document["algorithms"]:
        for name in ("score", "held_out", "cpu_seconds", "active"):
            assert len(each[name]["values"]) == 2


def test_calls_that_are_at_fault(run: Run) -> None:
    for words, said in (
        (("ref",), "--refs"),
        (("work", "--algorithms", "best"), "'best'"),
        (("work", "--option", "particles"), "NAME=VALUE"),
        (("work", "--algorithms", "pso", "--option", "epochs=3"), "epochs"),
        (("work", "--json", "--format", "markdown"), "--json"),
        (("work", "--held-out", "1.5"), "1.5"),
    ):
        code, _, err = run(*words)
        assert (code, said in err) == (2, True), (words, err)


def test_as_runs_do(run: Run) -> None:
    words = ("work", "--algorithms", "adagrad,kbmira", "--seeds", "1", "--quiet")
    code, out, _ = run(*words, "--in-turn", "--folds", "3")
    assert code == 0
    assert "decodings in turn" in out
    assert "held out: 3 folds, each scored with weights from the others" in out
    assert len(out.splitlines()[-1].split()) == 5
    code, _, err = run(*words, "--in-turn", "--iterations", "1")
    assert (code, "--in-turn requires" in err) == (2, True)


def test_learned_bins_exclude_decodings_in_turn(run: Run) -> None:
    """Their bounds would differ from decoding to decoding, and so would the features."""
    lines = [f"0 ||| {text} ||| F0= {k} ||| 0\n" for k, text in enumerate(("a b", "a", "b"))]
    Path("list").write_text("".join(lines))
    Path("one").write_text("a b\n")
    words = ("list", "list", "--refs", "one", "--in-turn", "--algorithms", "kbmira", "--seeds", "1")
    code, _, error = run(*words, "--derive", "b=bin(F0, 2)")
    assert code == 2
    assert "--in-turn cannot be used with bins whose bounds are learned" in error
    assert run(*words, "--derive", "b=bin(F0, [0.5])")[0] == 0
