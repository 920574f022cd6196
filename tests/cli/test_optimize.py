"""``mosesplug optimize`` as a user runs it."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from formats.weights import read_dense, read_sparse
from mosesplug.cli.main import main


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    """A tiny tuning problem: feature B knows the right translation, feature A the wrong one."""
    references, lines = [], []
    for sentence in range(8):
        words = [f"w{sentence}{k}" for k in range(6)]
        references.append(" ".join(words))
        for wrong in range(4):
            hypothesis = words[: 6 - wrong] + ["x"] * wrong
            lines.append(
                f"{sentence} ||| {' '.join(hypothesis)} ||| A= {wrong} {wrong / 2} B= {-wrong} "
                f"S_w{wrong}= 1 ||| {wrong}"
            )
    (tmp_path / "refs").write_text("\n".join(references) + "\n")
    (tmp_path / "lists").write_text("\n".join(lines) + "\n")
    with gzip.open(tmp_path / "again.gz", "wt") as again:
        again.write("\n".join(lines) + "\n")
    (tmp_path / "init.dense").write_text("A= 1 1\nB= 0.5\n")
    return tmp_path


def run(*words: object) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["optimize", *map(str, words)])
    return int(ended.value.code or 0)


def test_prints_scores_and_writes_weights(lists: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = lists / "tuned"
    code = run(
        *("--nbest", lists / "lists", lists / "again.gz", "--refs", lists / "refs"),
        *("--init", lists / "init.dense", "--restarts", "3", "-o", output),
    )
    said = capsys.readouterr().err
    assert code == 0
    assert "32 distinct hypotheses of 64, 7 features" in said
    assert "score at the start  0." in said
    assert "score at the end    1.000000" in said
    assert "BLEU|nrefs:1|case:mixed|" in said
    groups = dict(read_dense(output))
    assert np.abs(np.concatenate(list(groups.values()))).sum() == pytest.approx(1.0)
    assert not Path(f"{output}.sparse").exists()


def test_active_sparse_features_go_to_their_own_file(lists: Path) -> None:
    output = lists / "tuned"
    code = run(
        *("--nbest", lists / "lists", "--refs", lists / "refs", "--init", lists / "init.dense"),
        *("--active", "S_w0,S_w3", "-o", output, "--quiet"),
    )
    assert code == 0
    assert dict(read_dense(output)) == {"A": (1.0, 1.0), "B": (0.5,)}
    assert read_sparse(Path(f"{output}.sparse"))["S_w0"] > 0.0


def test_same_seed_same_weights(lists: Path, capsys: pytest.CaptureFixture[str]) -> None:
    printed = []
    for threads in (1, 2):
        run("--nbest", lists / "lists", "--refs", lists / "refs", "--threads", threads, "--quiet")
        printed.append(capsys.readouterr())
    assert printed[0].out == printed[1].out
    assert printed[0].out.startswith("A= ")
    assert not printed[0].err


def test_starts_from_init_opt_and_from_moses_ini(
    lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (lists / "init.opt").write_text("1 1 0.5\n0 0 0\n1 1 1\n")
    (lists / "moses.ini").write_text("[feature]\nX name=A\n[weight]\nA= 1 1\nB= 0.5\n")
    for init in ("init.opt", "moses.ini"):
        words = ("--nbest", lists / "lists", "--refs", lists / "refs", "--init", lists / init)
        assert run(*words) == 0
        said = capsys.readouterr()
        assert "score at the end    1.000000" in said.err


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["--refs", "refs"], 2, "use --nbest"),
        (["--nbest", "lists"], 2, "use --refs"),
        (["--nbest", "lists", "--refs", "refs", "--algorithm", "nothing"], 2, "known: "),
        (["--nbest", "lists", "--refs", "refs", "--active", "C"], 2, "no feature C"),
        (["--nbest", "lists", "--refs", "refs", "--restarts", "-1"], 2, "at least 0"),
        (["--nbest", "lists", "--refs", "refs", "--method", "magic"], 2, "powell"),
        (["--nbest", "lists", "--refs", "refs", "--range", "A:1..0"], 2, "no interval"),
        (["--nbest", "lists", "--refs", "refs", "--init", "short"], 1, "no weight of B"),
        (["--nbest", "nowhere", "--refs", "refs"], 1, "nowhere"),
        (["--nbest", "refs", "--refs", "refs"], 1, "refs:1: "),
        (["--nbest", "lists", "--refs", "nowhere"], 1, "nowhere"),
    ],
)
def test_says_what_is_wrong_in_one_line(
    lists: Path,
    words: list[str],
    code: int,
    message: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (lists / "short").write_text("A= 1 1\n")
    monkeypatch.chdir(lists)
    assert run(*words, "-o", "tuned") == code
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1
    assert not Path("tuned").exists()
