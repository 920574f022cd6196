"""``mosesplug weights`` as a user calls it."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from formats.weights.files import read_dense, read_init_opt, read_sparse, read_weights_txt
from mosesplug.cli.main import main
from tests.results.runs import make_run
from tests.store.toys import Hypothesis

Run = Callable[..., tuple[int, str, str]]

INI = "[feature]\nUnknownWordPenalty\nA name=LM0\nB name=TM0\n[weight]\nTM0= 1 2 # kept\nLM0= 3\n"


@pytest.fixture
def weights(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Run:
    """Calls the command in a directory with files; its exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    Path("a").write_text("LM0= 1\nTM0= 2 -1\n")
    Path("b").write_text("LM0= 1\nTM0= 1 0\n")
    Path("s").write_text("S_a 8\nS_b -4\n")
    Path("txt").write_text("2 4 4 \n")
    Path("moses.ini").write_text(INI)

    def run(*words: object) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as end:
            main(["weights", *map(str, words)])
        said = capsys.readouterr()
        return int(end.value.code or 0), said.out, said.err

    return run


def test_show_a_file(weights: Run) -> None:
    code, out, _ = weights("show", "a+s", "--top", 1)
    assert code == 0
    assert out.splitlines() == [
        "a+s: dense, 3 dense weights of L1 norm 4, 2 sparse ones",
        "feature  weight  share",
        "LM0_0         1  25.0%",
        "TM0_0         2  50.0%",
        "TM0_1        -1  25.0%",
        "",
        "sparse feature  weight",
        "S_a                  8",
        "(1 more: --top 0 shows all)",
    ]
    assert "UnknownWordPenalty0       1  not tuned" in weights("show", "moses.ini")[1]
    found = json.loads(weights("show", "moses.ini", "--json")[1])
    assert found["dense"] == {"LM0_0": 3, "TM0_0": 1, "TM0_1": 2}
    assert found["not_tuned"] == {"UnknownWordPenalty0": 1}
    assert weights("show", "nothing")[0] == 2
    Path("bad").write_text("LM0= 1\nTM0 2\n")
    code, _, error = weights("show", "bad")
    assert (code, error.count("\n")) == (1, 1)
    assert "bad:2: 'TM0 2' is not a dense weight" in error


def test_show_a_run(weights: Run, tmp_path: Path) -> None:
    lists = (
        [Hypothesis(0, b"a", (-1.0, -2.0), (("S_a", 1.0),)), Hypothesis(0, b"b", (-2.0, -2.0))],
        [Hypothesis(0, b"c", (-1.0, -2.0), (("S_a", 1.0), ("S_b", 1.0)))],
    )
    make_run(tmp_path / "work", lists=lists)
    _, out, _ = weights("show", "work")
    assert out.splitlines() == [
        "work: weights of 2 iterations, and those found in iteration 2",
        "feature  iterations       1       2  result",
        "LM0_0    █▁▁         0.5000  0.2500  0.2500",
        "TM0_0    ▁██         0.5000  0.7500  0.7500",
        "",
        "largest of 0 sparse weights that are not 0",
        "",
        "most active of 2 sparse features in 3 hypotheses",
        "sparse feature  iterations  weight  active",
        "S_a             ▄▄▄              0  66.67%",
        "S_b             ▄▄▄              0  33.33%",
    ]
    found = json.loads(weights("show", "work", "--json")[1])
    assert found["iterations"][0] == {"LM0_0": 0.5, "TM0_0": 0.5}
    assert found["active"] == {"S_a": pytest.approx(2 / 3), "S_b": pytest.approx(1 / 3)}
    assert json.loads(weights("show", "work", "--no-use", "--json")[1])["active"] is None
    (tmp_path / "none").mkdir()
    code, _, error = weights("show", "none")
    assert code == 1
    assert "there is no n-best store at none" in error


def test_diff(weights: Run) -> None:
    code, out, _ = weights("diff", "a", "b+s")
    assert code == 0
    lines = out.splitlines()
    assert lines[:3] == [
        "A: a, dense, L1 norm 4",
        "B: b+s, dense, L1 norm 2",
        f"cosine {3 / math.sqrt(6 * 82):.6f}",
    ]
    assert [re.split("  +", line) for line in lines[5:10]] == [
        ["feature", "A", "B", "difference", "change"],
        ["S_a", "-", "8", "+8", "only in B"],
        ["S_b", "-", "-4", "-4", "only in B"],
        ["TM0_0", "2", "1", "-1", "-50.0%"],
        ["TM0_1", "-1", "0", "+1", "+100.0%"],
    ]
    assert lines[-5:] == [
        "1 of 5 features have equal weights",
        "",
        "non-zero weights  A  B  both",
        "dense             3  2     2",
        "sparse            0  2     0",
    ]
    found = json.loads(weights("diff", "a", "txt", "--normalize", "--json")[1])
    assert found["l1_norms"] == [4, 10]
    assert found["features"][0]["feature"] == "TM0_1"
    assert found["features"][0]["difference"] == pytest.approx(0.4 + 0.25)
    assert "1 more" in weights("diff", "a", "b", "--top", 1)[1]
    Path("other.ini").write_text(INI + "UnknownWordPenalty0= 0.5\n")
    _, out, _ = weights("diff", "moses.ini", "other.ini")
    assert out.splitlines()[-5:-3] == [
        "3 of 3 features have equal weights",
        "not tuned, and different: UnknownWordPenalty0 1 0.5",
    ]
    code, _, error = weights("diff", "moses.ini", "txt")
    assert code == 1
    assert "numbers without names, in the decoder's order" in error


def test_average_and_interpolate(weights: Run) -> None:
    assert weights("average", "a", "b", "-o", "mean")[0] == 0
    assert read_dense("mean") == (("LM0", (0.375,)), ("TM0", (0.5, -0.125)))
    assert weights("average", "a", "b", "--no-normalize")[1] == "LM0= 1\nTM0= 1.5 -0.5\n"
    code, out, error = weights("average", "a+s", "b", "--sparse-output", "s2")
    assert (code, out) == (0, "LM0= 0.375\nTM0= 0.5 -0.125\n")
    assert error == "mosesplug: b has no sparse weights: they count as 0\n"
    assert read_sparse("s2") == {"S_a": 1, "S_b": -0.5}
    points = ("--at", 0, "--at", 0.25, "--at", 1.5)
    assert weights("interpolate", "a", "b", *points)[0] == 2
    assert weights("interpolate", "a", "b", *points, "-o", "at{}", "--no-normalize")[0] == 0
    assert read_dense("at0") == read_dense("a")
    assert read_dense("at0.25") == (("LM0", (1,)), ("TM0", (1.75, -0.75)))
    assert read_dense("at1.5") == (("LM0", (1,)), ("TM0", (0.5, 0.5)))
    assert weights("interpolate", "a", "b", "--at", "nan")[0] == 2
    Path("c").write_text("LM0= -2\nTM0= -4 2\n")
    code, out, error = weights("average", "a", "c")
    assert (code, out) == (1, "")
    assert "all weights are 0" in error


def test_normalize_and_convert(weights: Run) -> None:
    code, out, error = weights("normalize", "moses.ini")
    third = repr(1 / 3)
    assert (code, error) == (0, "")
    assert out == INI.replace("1 2 #", f"{1 / 6!r} {third} #").replace("LM0= 3", "LM0= 0.5")
    assert weights("normalize", "a", "--max")[1] == "LM0= 0.5\nTM0= 1 -0.5\n"
    assert weights("normalize", "a", "--max", "--l2")[0] == 2
    code, out, error = weights("convert", "txt", "--to", "dense", "--names-from", "a")
    assert (code, out) == (0, "LM0= 2\nTM0= 4 4\n")
    assert weights("convert", "txt", "--to", "dense")[0] == 2
    assert weights("convert", "txt", "--to", "dense", "--names-from", "moses.ini")[0] == 2
    assert weights("convert", "a", "--to", "best")[0] == 2
    code, out, error = weights("convert", "a", "--to", "weights.txt", "-o", "w")
    assert error == "mosesplug: the order of the numbers is LM0 TM0*2\n"
    assert read_weights_txt("w") == (1, 2, -1)
    weights("convert", "a", "--to", "init.opt", "-o", "i")
    assert read_init_opt("i").maxima == (1, 1, 1)
    assert weights("convert", "a", "--to", "overwrite")[1] == "LM0= 1 TM0= 2 -1\n"
    assert weights("convert", "LM0= 1 TM0= 2 -1", "--to", "dense")[1] == Path("a").read_text()


def test_nothing_is_written_that_is_not_whole(weights: Run) -> None:
    to_ini = ("convert", "a+s", "--to", "moses.ini", "--config", "moses.ini", "-o", "new.ini")
    code, _, error = weights(*to_ini[:-2])
    assert code == 2
    assert "--sparse-output FILE" in error
    assert weights(*to_ini, "--sparse-output", "new.ini")[0] == 2
    assert weights(*to_ini, "--sparse-output", "none/s")[0] == 2
    assert not Path("new.ini").exists()
    assert weights(*to_ini, "--sparse-output", "new.s")[0] == 0
    assert read_sparse("new.s") == read_sparse("s")
    # The written weights equal the given ones.
    _, out, _ = weights("diff", "a+s", "new.ini")
    assert "cosine 1.000000" in out
    assert "5 of 5 features have equal weights" in out


def test_a_run_is_read_without_numba(weights: Run, tmp_path: Path) -> None:
    lists = [[Hypothesis(0, b"a", (-1.0, -2.0), (("S_a", 1.0),))]] * 2
    make_run(tmp_path / "work", lists=lists)
    program = (
        "import sys\nfrom mosesplug.cli.main import main\n"
        "try:\n    main(['weights', 'show', 'work'])\n"
        "finally:\n    assert 'numba' not in sys.modules\n"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (found.returncode, found.stderr) == (0, "")
    assert "100.00%" in found.stdout
    # An encoding without bars has digits.
    environment = {"PYTHONIOENCODING": "ascii"}
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, env=environment
    )
    assert "LM0_0    811 " in found.stdout


def test_importance_is_of_a_run(weights: Run, tmp_path: Path) -> None:
    make_run(tmp_path / "work")
    code, out, _ = weights("show", "work", "--importance")
    assert code == 0
    head, *rows = (line.split() for line in out.splitlines()[1:4])
    assert head[:2] == ["feature", "weight"]
    assert [row[0] for row in rows] == ["LM0_0", "TM0_0"]
    document = json.loads(weights("show", "work:1", "--importance", "--json")[1])
    assert document["weights_are"] == "those of iteration 1"
    assert [each["weight"] for each in document["features"]] == [0.5, 0.5]
    code, _, error = weights("show", "a", "--importance")
    assert code == 2
    assert "give a run or a store, not" in error
