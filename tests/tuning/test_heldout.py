"""Held-out text: scored as a person would score it, and the choice of weights by it."""

from __future__ import annotations

import json
import subprocess
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

from formats.errors import FormatError
from formats.moses_ini import read_moses_ini
from mosesplug.tuning import tune
from mosesplug.tuning.configuration import HeldOut
from mosesplug.tuning.events import Judged
from mosesplug.tuning.heldout import best_of, since_best
from mosesplug.tuning.records import Evaluation
from mosesplug.tuning.weights import Weights

Toy = Any
Log = Any


def held_out(toy: Toy, **more: Any) -> HeldOut:
    """Five sentences that the tuning set has not in that order."""
    for name in ("input", "reference0", "reference1"):
        lines = (toy.directory / name).read_bytes().splitlines(keepends=True)
        other = name.replace("input", "other").replace("reference", "other-reference")
        (toy.directory / other).write_bytes(b"".join(lines[7:2:-1]))
    return HeldOut(toy.directory / "other", toy.directory / "other-reference", **more)


def bleu(toy: Toy, config: Path) -> float:
    """Translate with a configuration, and let sacrebleu score it."""
    lists = toy.directory / "by-hand"
    command = [toy.decoder, "-config", config, "-input-file", toy.directory / "other"]
    done = subprocess.run(
        [*map(str, command), "-n-best-list", str(lists), "1"], capture_output=True, check=True
    )
    references = [(toy.directory / f"other-reference{i}").read_text().splitlines() for i in (0, 1)]
    hypotheses = done.stdout.decode().splitlines()
    score = sacrebleu.corpus_bleu(hypotheses, references, tokenize="none", smooth_method="none")
    return float(score.score) / 100


def test_scores_are_those_of_the_weights_that_were_found(toy: Toy, log: Log) -> None:
    result = tune(toy.configuration(held_out=held_out(toy), select="last", minimum_change=0.0), log)
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    assert len(scores) == 3
    work = toy.directory / "work"
    for number in (1, 2):
        assert scores[number - 1] == pytest.approx(bleu(toy, work / f"run{number + 1}.moses.ini"))
    assert scores[2] == pytest.approx(bleu(toy, work / "moses.ini"))
    assert [event.score for event in log.of(Judged)] == scores
    summary = json.loads((work / "summary.json").read_text())
    assert [i["heldout"][0]["score"] for i in summary["iterations"]] == scores


def test_the_best_there_win(toy: Toy) -> None:
    result = tune(toy.configuration(held_out=held_out(toy), minimum_change=0.0))
    assert result.selected == "best-heldout"
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    assert result.score == max(scores)
    assert bleu(toy, toy.directory / "work" / "moses.ini") == pytest.approx(max(scores))


def test_average_of_the_iterations(toy: Toy) -> None:
    result = tune(toy.configuration(select="average", minimum_change=0.0))
    vectors = [np.array(i.weights.dense) for i in result.iterations[1:]]
    last = tune(toy.configuration("last", select="last", minimum_change=0.0)).weights.dense
    vectors = [v / np.abs(v).sum() for v in (*vectors, np.array(last))]
    assert result.weights.dense == pytest.approx(np.mean(vectors, axis=0))
    tuned = read_moses_ini(toy.directory / "work" / "moses.ini").weights
    assert tuned["LM0"][0] == pytest.approx(result.weights.dense[1])


def test_patience_ends_the_run(toy: Toy) -> None:
    given = held_out(toy, patience=1)
    result = tune(toy.configuration(held_out=given, minimum_change=0.0, maximum_iterations=9))
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    assert len(scores) < 9
    assert "no better" in result.reason
    assert scores[-1] <= max(scores[:-1])
    assert all(b > a for a, b in pairwise(scores[:-1]))


def test_input_and_references_must_agree(toy: Toy) -> None:
    given = held_out(toy)
    (toy.directory / "other").write_text("ein hund\n")
    with pytest.raises(FormatError, match="other has 1"):
        tune(toy.configuration(held_out=given))


def test_the_first_of_equals_is_the_best() -> None:
    weights = Weights((1.0,))
    points = [Evaluation(n, score, weights) for n, score in enumerate((0.2, 0.4, 0.4, 0.3))]
    assert best_of(points) is points[1]
    assert since_best(points) == 2
    assert best_of([]) is None
    assert since_best([]) == 0
    assert Evaluation.of_record(points[0].as_record()) == points[0]
    assert Evaluation.of_record(Evaluation(3, 0.1).as_record()) == Evaluation(3, 0.1)
