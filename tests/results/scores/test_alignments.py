"""Substitutions, deletions and insertions, and the sentences with the most."""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import pytest

import mosesplug
from mosesplug.cli.main import main
from mosesplug.results.scores.alignments import align
from tests.metrics.edits import edits_of_jiwer

REFERENCES = ["the cat sat on the mat", "yes it is", ""]
HYPOTHESES = ["the big cat sat at mat", "yes it is", "noise"]


def test_alignments_are_those_of_jiwer() -> None:
    rng = random.Random(1)
    for _ in range(300):
        reference, hypothesis = (rng.choices("abc", k=rng.randrange(9)) for _ in range(2))
        pairs = align(reference, hypothesis)
        assert [one for one, _ in pairs if one] == reference
        assert [other for _, other in pairs if other] == hypothesis
        kinds = [
            sum(one == other for one, other in pairs),
            sum(bool(one and other and one != other) for one, other in pairs),
            sum(not other for _, other in pairs),
            sum(not one for one, _ in pairs),
        ]
        assert kinds == edits_of_jiwer(reference, hypothesis)


def test_edits_add_up_to_the_rates() -> None:
    metrics = ["WER", "MER", "CER", "CHRF", "WER normalize:lower+punct"]
    upper = [line.upper() for line in HYPOTHESES]
    for texts in (HYPOTHESES, upper):
        for found in mosesplug.score(texts, [REFERENCES], metrics, errors=2, samples=0):
            if found.metric == "CHRF":
                assert found.edits is None
                continue
            edits = found.edits
            assert edits is not None
            errors = edits.substitutions + edits.deletions + edits.insertions
            length = errors + edits.correct
            if found.metric != "MER":
                length -= edits.insertions
            assert found.score == pytest.approx(errors / length)
            assert len(edits.examples) == 2
            assert np.all(np.diff([each.errors for each in edits.examples]) <= 0)
    assert mosesplug.score(HYPOTHESES, [REFERENCES], "WER", samples=0)[0].edits is None


def test_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in (("hyp", HYPOTHESES), ("ref", REFERENCES)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    words = ["score", "hyp", "ref", "--metric", "WER", "--samples", "0", "--errors", "1"]
    with pytest.raises(SystemExit):
        main(words)
    lines = capsys.readouterr().out.splitlines()
    assert lines[3].split() == ["metric", "correct", "substitutions", "deletions", "insertions"]
    assert lines[4].split() == ["WER", "7", "1", "1", "2"]
    assert lines[6:] == [
        "WER, sentence 0: 3 errors",
        "REF the *   cat sat on the mat",
        "HYP the big cat sat at *   mat",
        "        I           S  D",
    ]
    with pytest.raises(SystemExit):
        main([*words, "--json"])
    (record,) = json.loads(capsys.readouterr().out)
    assert record["edits"]["examples"][0]["pairs"][1] == ["", "big"]
    with pytest.raises(SystemExit) as end:
        main(["score", "hyp", "ref", "--nbest", "--errors", "1"])
    assert end.value.code == 2


def test_compared_systems(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for name, lines in (("a", HYPOTHESES), ("b", REFERENCES), ("ref", REFERENCES)):
        Path(name).write_text("".join(f"{line}\n" for line in lines))
    words = ["compare", "A=a", "B=b", "--refs", "ref", "--metric", "WER", "--errors", "1"]
    words += ["--samples", "2", "--trials", "2"]
    with pytest.raises(SystemExit):
        main(words)
    shown = capsys.readouterr().out
    assert "WER     A             7              1          1           2" in shown
    assert "WER of A, sentence 0: 3 errors\nREF the *   cat sat" in shown
    assert "WER of B" not in shown
    with pytest.raises(SystemExit):
        main([*words, "--json"])
    first, second = json.loads(capsys.readouterr().out)
    assert first["edits"]["deletions"] == 1
    assert second["edits"]["correct"] == 9
