"""``score`` and ``compare`` by a command that keeps running."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from mosesplug.cli.main import main

SCORER = Path(__file__).parents[2] / "decoders" / "stand_in_scorer.py"
COMMAND = [
    *("--score-command", f"SHARE={sys.executable} -IS {SCORER} log"),
    *("--score-cache", "scores"),
]
TEXTS = {
    "base": ["the house", "it is", "a b"],
    "new": ["the house is", "it is red", "b"],
    "refs": ["the house is small", "it was red", "b c"],
    "source": ["das haus", "es ist", "x"],
}
SHARES = {"base": [1.0, 0.5, 0.5], "new": [1.0, 2 / 3, 1.0]}


@pytest.fixture(autouse=True)
def texts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in TEXTS.items():
        Path(name).write_text("".join(f"{line}\n" for line in lines))


def call(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[Any, str]:
    with pytest.raises(SystemExit) as ended:
        main([*words])
    out, err = capsys.readouterr()
    return json.loads(out) if not ended.value.code else ended.value.code, err


def test_score(capsys: pytest.CaptureFixture[str]) -> None:
    options = [*COMMAND, "--source", "source", "--json", "--sentences", "--samples", "0"]
    scores, _ = call(capsys, "score", "base", "refs", *options)
    assert [score["metric"] for score in scores] == ["BLEU", "TER-SACREBLEU", "CHRF", "SHARE"]
    assert scores[-1]["sentences"] == SHARES["base"]
    assert scores[-1]["score"] == pytest.approx(2 / 3)
    assert Path("log").read_text().splitlines()[1] == "1\tes ist\tit is"
    (joined,), _ = call(capsys, "score", "base", "refs", "--metric", "SHARE:0.5+BLEU:0.5", *options)
    assert joined["score"] == pytest.approx((2 / 3 + scores[0]["score"]) / 2)
    assert len(Path("log").read_text().splitlines()) == 3
    (bare,), _ = call(capsys, "score", "base", *COMMAND, "--json", "--sentences", "--samples", "0")
    assert bare["sentences"] == [2.0, 2.0, 2.0]


def test_compare(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", "base", "new", "--refs", "refs", "--metric", "SHARE", *COMMAND]
    few = ["--trials", "50", "--samples", "50", "--json", "--quiet"]
    document, _ = call(capsys, *words, *few)
    systems = document["scores"] if isinstance(document, dict) else document
    for row in systems:
        assert row["score"] == pytest.approx(sum(SHARES[row["system"]]) / 3)


def test_usage(capsys: pytest.CaptureFixture[str]) -> None:
    for words, message in (
        (["score", "base", "refs", "--source", "source"], "--source requires --score-command"),
        (["compare", "base", "new", "--refs", "refs", "--source", "source"], "--source requires"),
        (["compare", "base", "new", *COMMAND, "--analysis"], "--analysis and --html need --refs"),
        (
            ["compare", "base", "new", *COMMAND, "--scores", "SHARE=base,new"],
            "both --scores and --score-command name SHARE",
        ),
        (["score", "base", *COMMAND, "--scores", "X=base"], "exclude each other"),
        (["score", "base", "refs", *COMMAND, "--metric", "BLEU"], "SHARE would not be used"),
        (
            ["compare", "base", "new", "--refs", "refs", *COMMAND, "--metric", "CHRF beta:2"],
            "SHARE would not be used: name it in --metric, too, as in --metric BLEU:0.5+SHARE:0.5",
        ),
    ):
        code, err = call(capsys, *words)
        assert code == 2
        assert message in err
