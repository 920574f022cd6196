"""Scores on sacrebleu's scale."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from mosesplug.cli.main import main

HYPOTHESES = ["the old cat sat on the mat today", "a dog barked at us all night long"]
REFERENCES = ["the old cat sat on a mat today", "the dog barked at us all night long"]


@pytest.mark.parametrize("command", ["score", "compare"])
def test_percent_is_the_scale_of_sacrebleu(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    Path("comet").write_text("0.5\n0.7\n")
    words = {
        "score": ["score", "hyp", "ref", "--scores", "COMET=comet"],
        "compare": ["compare", "hyp", "ref", "--refs", "ref", "--scores", "COMET=comet,comet"],
    }[command]
    plain, percent = (run(capsys, *words, *more) for more in ((), ("--percent",)))
    metrics = {
        "BLEU": sacrebleu.BLEU(tokenize="none", smooth_method="none"),
        "TER-SACREBLEU": sacrebleu.TER(case_sensitive=True),
        "CHRF": sacrebleu.CHRF(),
    }
    for before, after in zip(plain, percent, strict=True):
        name = before["metric"]
        if name == "COMET":
            assert before == after
            continue
        assert after["score"] == pytest.approx(100 * before["score"])
        assert after["interval"] == pytest.approx([100 * end for end in before["interval"]])
        theirs = metrics[name].corpus_score(HYPOTHESES, [REFERENCES]).score
        if before.get("system") != "ref":
            assert after["score"] == pytest.approx(theirs)
        if before.get("difference") is not None:
            assert after["difference"] == pytest.approx(100 * before["difference"])
            assert after["p_randomization"] == before["p_randomization"]


def run(capsys: Any, *words: str) -> list[dict[str, Any]]:
    with pytest.raises(SystemExit) as end:
        main([*words, "--samples", "10", "--json"])
    assert not end.value.code
    found: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return found
