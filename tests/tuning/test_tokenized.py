"""Runs whose metric tokenizes: decoder output and references are taken apart as by sacrebleu."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

from mosesplug.cli.main import main
from mosesplug.events import Note
from mosesplug.metrics import metric
from mosesplug.tuning import tune

pytestmark = pytest.mark.usefixtures("decoder_in_process")


def attach_points(directory: Path) -> list[str]:
    """Write the first reference again, with a point that is attached to the last word."""
    lines = [f"{line}." for line in (directory / "reference0").read_text().splitlines()]
    (directory / "reference").write_text("".join(f"{line}\n" for line in lines))
    return lines


def first_best(path: Path) -> list[str]:
    """Return the first hypothesis of each sentence."""
    found: dict[str, str] = {}
    for line in gzip.decompress(path.read_bytes()).decode().splitlines():
        sentence, text = line.split(" ||| ")[:2]
        found.setdefault(sentence, text)
    return list(found.values())


def test_tune_by_tokenized_bleu(toy: Any, log: Any) -> None:
    """Scores are sacrebleu's, also in a resumed run."""
    lines = attach_points(toy.directory)
    bleu = metric("BLEU", "tokenize:13a")
    tune(toy.configuration(metric=bleu, maximum_iterations=1), log)
    result = tune(toy.configuration(metric=bleu, maximum_iterations=2, existing="continue"), log)
    assert len(result.iterations) == 2
    for number, iteration in enumerate(result.iterations, 1):
        hypotheses = first_best(toy.directory / "work" / f"run{number}.best15.out.gz")
        theirs = sacrebleu.corpus_bleu(hypotheses, [lines], tokenize="13a", smooth_method="none")
        assert 100 * iteration.first_best_score == pytest.approx(theirs.score, rel=1e-9)


@pytest.mark.parametrize(("tokenizer", "warned"), [("none", True), ("13a", False)])
def test_warning_signs_are_those_of_tokenized_text(
    toy: Any, log: Any, tokenizer: str, warned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Words that all end in a point are words of the lists only if they are tokenized."""
    monkeypatch.setattr("mosesplug.tuning.text_signs.side._FEW_TOKENS", 10)
    lines = (toy.directory / "reference0").read_text().splitlines()
    text = "".join(". ".join(line.split()) + ".\n" for line in lines)
    (toy.directory / "reference").write_text(text)
    tune(
        toy.configuration(metric=metric("BLEU", f"tokenize:{tokenizer}"), maximum_iterations=1), log
    )
    signs = [note for note in log.of(Note) if note.is_warning]
    assert any("and 0% in the references" in note.text for note in signs) == warned


def test_optimize_stored_lists_by_another_tokenizer(
    toy: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The store keeps statistics of each tokenizer apart."""
    tune(toy.configuration(maximum_iterations=1))
    attach_points(toy.directory)
    words = ["optimize", "--from", toy.directory / "work", "--refs", toy.directory / "reference"]
    for tokenizer in ("13a", "char", "13a"):
        output = ["-o", tmp_path / "tuned", "--metric-settings", f"tokenize:{tokenizer}"]
        with pytest.raises(SystemExit) as end:
            main([*map(str, words), *map(str, output), "--seed", "1", "--restarts", "1"])
        assert not end.value.code
        assert f"|tok:{tokenizer}|" in capsys.readouterr().err
