"""Held-out text: scored as a person would score it, and the choice of weights by it."""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import sacrebleu

from formats.errors import FormatError
from formats.moses.ini import read_moses_ini
from mosesplug.api.run import open_run
from mosesplug.cli.run.progress import list_iterations
from mosesplug.decoders.description import DecodedGraphs
from mosesplug.errors import DataError, StoreMismatch, UsageError
from mosesplug.events import HeldOutScored, Note
from mosesplug.results.render.tables import format_blocks
from mosesplug.settings.online import HeldOutSet, Monitor, parse_monitors
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.heldout import count_since_best, find_best
from mosesplug.tuning.weights import Weights
from mosesplug.tuning.workdir.records import Evaluation
from mosesplug.tuning.workdir.summary import Result

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any


def held_out(toy: Toy, **more: Any) -> HeldOutSet:
    """Five sentences that the tuning set has not in that order."""
    for name in ("input", "reference0", "reference1"):
        lines = (toy.directory / name).read_bytes().splitlines(keepends=True)
        other = name.replace("input", "other").replace("reference", "other-reference")
        (toy.directory / other).write_bytes(b"".join(lines[7:2:-1]))
    return HeldOutSet(toy.directory / "other", toy.directory / "other-reference", **more)


def translation(toy: Toy, config: Path, source: Path | None = None) -> str:
    """The held-out text, translated with a configuration."""
    lists = toy.directory / "by-hand"
    source = source or toy.directory / "other"
    command = [toy.decoder, "-config", config, "-input-file", source]
    done = subprocess.run(
        [*map(str, command), "-n-best-list", str(lists), "1"], capture_output=True, check=True
    )
    return done.stdout.decode()


def bleu(
    toy: Toy, config: Path, source: Path | None = None, references: str = "other-reference"
) -> float:
    """Translate with a configuration, and let sacrebleu score it."""
    texts = [(toy.directory / f"{references}{i}").read_text().splitlines() for i in (0, 1)]
    hypotheses = translation(toy, config, source).splitlines()
    score = sacrebleu.corpus_bleu(hypotheses, texts, tokenize="none", smooth_method="none")
    return float(score.score) / 100


def test_scores_belong_to_the_optimized_weights(toy: Toy, log: Log) -> None:
    result = tune(toy.configuration(held_out=held_out(toy), select="last", minimum_change=0.0), log)
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    updates = [[number for number, _ in iteration.heldout] for iteration in result.iterations]
    assert updates == [[0, 1], [2], [3]]
    work = toy.directory / "work"
    for number in (1, 2, 3):
        assert scores[number - 1] == pytest.approx(bleu(toy, work / f"run{number}.moses.ini"))
    assert scores[3] == pytest.approx(bleu(toy, work / "moses.ini"))
    assert [event.score for event in log.of(HeldOutScored)] == scores
    summary = json.loads((work / "summary.json").read_text())
    assert [i["heldout"][-1]["score"] for i in summary["iterations"]] == scores[1:]


def monitor(toy: Toy, name: str, first: int, last: int) -> Monitor:
    """Some sentences of the tuning set."""
    for file in ("input", "reference0", "reference1"):
        lines = (toy.directory / file).read_bytes().splitlines(keepends=True)
        (toy.directory / f"{name}-{file}").write_bytes(b"".join(lines[first:last]))
    return Monitor(name, toy.directory / f"{name}-input", toy.directory / f"{name}-reference")


def series_of(toy: Toy, result: Result, name: str) -> list[float]:
    """The scores of a monitor, each checked by sacrebleu."""
    assert [i.monitors[name][-1][0] for i in result.iterations] == [1, 2]
    series = [score for iteration in result.iterations for _, score in iteration.monitors[name]]
    work = toy.directory / "work"
    source, references = toy.directory / f"{name}-input", f"{name}-reference"
    found = [bleu(toy, work / f"run{n}.moses.ini", source, references) for n in (1, 2)]
    assert series[:2] == pytest.approx(found)
    assert result.monitors[name] == pytest.approx(bleu(toy, work / "moses.ini", source, references))
    return series


def test_monitors_are_scored_and_select_nothing(toy: Toy, log: Log) -> None:
    """Without a held-out set, and with one, which alone selects; a continued run may have more."""
    one, two = monitor(toy, "one", 0, 4), monitor(toy, "two", 5, 9)
    more: dict[str, Any] = {"maximum_iterations": 2, "minimum_change": 0.0}
    result = tune(toy.configuration(monitors=(one, two), select="average", **more), log)
    work = toy.directory / "work"
    assert [len(series_of(toy, result, name)) for name in ("one", "two")] == [3, 3]
    assert [event.monitor for event in log.of(HeldOutScored)] == ["one", "two"] * 3
    summary = json.loads((work / "summary.json").read_text())
    assert summary["result"]["monitors"] == result.monitors
    assert summary["iterations"][1]["heldout"] == []
    assert summary["iterations"][1]["monitors"]["two"][0]["updates"] == 2
    rows = list(open_run(work).held_out)
    assert [(row["updates"], row["text"]) for row in rows[2:4]] == [(1, "one"), (1, "two")]
    table = format_blocks(list_iterations(result)).splitlines()
    assert table[0].split()[-2:] == ["one", "two"]
    assert table[-2] == f"monitor two: BLEU {result.monitors['two']:.4f}"
    without = tune(toy.configuration("without", select="average", **more))
    assert without.weights == result.weights
    # A held-out set that is new selects by its own scores.
    added = {"held_out": held_out(toy), "monitors": (two,), "existing": "continue"}
    result = tune(toy.configuration(**(more | added | {"maximum_iterations": 3})))
    assert [len(i.heldout) for i in result.iterations] == [0, 0, 2]
    assert list(result.iterations[2].monitors) == list(result.monitors) == ["two"]
    assert result.score == max(score for _, score in result.iterations[2].heldout)
    (toy.directory / "two-input").write_text("ein hund\n" * 4)
    with pytest.raises(StoreMismatch, match="different monitor two"):
        tune(toy.configuration(**(more | added)))


def test_a_held_out_set_that_comes_too_late_is_reported(toy: Toy, log: Log) -> None:
    more: dict[str, Any] = {"maximum_iterations": 1, "existing": "continue"}
    first = tune(toy.configuration(**more), log)
    late = "finished without this held-out text"
    assert not any(late in note.text for note in log.of(Note))
    assert tune(toy.configuration(held_out=held_out(toy), **more), log).weights == first.weights
    assert any(late in note.text and note.is_warning for note in log.of(Note))


def test_new_monitors_of_a_finished_run_score_its_result(toy: Toy) -> None:
    """The last iteration has no score of theirs; an earlier one may have, by other weights."""
    more: dict[str, Any] = {"select": "last", "minimum_change": 0.0, "existing": "continue"}
    monitors = (monitor(toy, "one", 0, 4), monitor(toy, "two", 5, 9))
    for count, names in ((1, ("one",)), (2, ())):
        chosen = tuple(one for one in monitors if one.name in names)
        tune(toy.configuration(maximum_iterations=count, monitors=chosen, **more))
    result = tune(toy.configuration(maximum_iterations=2, monitors=monitors, **more))
    assert len(result.iterations) == 2
    config = toy.directory / "work" / "moses.ini"
    for name, score in result.monitors.items():
        files = [toy.directory / f"{name}-{file}" for file in ("input", "reference")]
        assert score == pytest.approx(bleu(toy, config, *files))
    assert list(result.monitors) == ["one", "two"]


def test_monitors_that_cannot_be_used(toy: Toy) -> None:
    one = monitor(toy, "one", 0, 4)
    assert parse_monitors([str(one)]) == parse_monitors([one]) == (one,)
    assert parse_monitors({"one": (one.input, one.references)}) == (one,)
    graphs = f"{one},forest:{toy.directory}"
    stored = replace(one, decoder=DecodedGraphs(toy.directory))
    assert parse_monitors([graphs]) == parse_monitors([str(stored)]) == (stored,)
    assert parse_monitors({"one": (one.input, one.references, graphs.rpartition(",")[2])}) == (
        stored,
    )
    for texts, why in (
        (["one"], "not of the form NAME=FILE,REFS"),
        ([f"a b={one.input},{one.references}"], "letters, digits"),
        ([str(one), str(one)], "two monitors"),
        ([f"{one},moses"], "write forest:DIR, its search graphs, or nothing, not moses"),
    ):
        with pytest.raises(ValueError, match=why):
            parse_monitors(texts)
    with pytest.raises(ValueError, match=r"after .*, write nothing, not"):
        parse_monitors([graphs], "monitor-nbest")
    for text, error in (
        (f"one=none,{one.references}", "--monitor one: none: No such file"),
        (f"one={one.input},none", "--monitor one: none not found"),
        (f"{one},forest:none", "--monitor one}?: forest:none: .*none does not exist"),
    ):
        with pytest.raises(UsageError, match=error):
            parse_monitors([text])


def test_the_best_held_out_weights_win(toy: Toy) -> None:
    result = tune(toy.configuration(held_out=held_out(toy), minimum_change=0.0))
    assert result.selection == "best-heldout"
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    assert result.score == max(scores)
    assert bleu(toy, toy.directory / "work" / "moses.ini") == pytest.approx(max(scores))


def test_the_starting_weights_may_be_the_best(toy: Toy, log: Log) -> None:
    """A text whose best translations have the words that the tuning set's must not have."""
    given = held_out(toy)
    start = tune(toy.configuration("start", maximum_iterations=1, minimum_change=0.0))
    for number in (0, 1):
        lines = (toy.directory / f"other-reference{number}").read_text().splitlines()
        spoilt = [translation(toy, toy.directory / "start" / "run1.moses.ini")] * 2
        (toy.directory / f"other-reference{number}").write_text(spoilt[number])
        assert len(lines) == len(spoilt[number].splitlines())
    result = tune(toy.configuration(held_out=given, minimum_change=0.0), log)
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    assert scores[0] == 1.0 > max(scores[1:])
    assert result.score == 1.0
    assert result.weights == start.iterations[0].weights
    assert result.chosen_iteration == 1
    dev = f"# BLEU {result.iterations[0].first_best_score:.6g} on dev {toy.directory / 'input'}\n"
    assert dev in (toy.directory / "work" / "moses.ini").read_text()
    assert any("started with" in note.text for note in log.of(Note))


def test_the_summary_names_the_data_of_scores(toy: Toy) -> None:
    """The header distinguishes scores of the tuning set and of the held-out set."""
    result = tune(toy.configuration(held_out=held_out(toy), maximum_iterations=1))
    work = toy.directory / "work"
    text = (work / "moses.ini").read_text()
    assert f"# held out, {toy.directory / 'other'}: BLEU {result.score:.6g}\n" in text
    assert f"# BLEU --not-estimated-- on dev {toy.directory / 'input'}\n" in text  # never decoded
    summary = json.loads((work / "summary.json").read_text())["result"]
    assert (summary["score_of"], summary["score"]) == ("heldout", result.score)
    mean = tune(toy.configuration("mean", select="average", minimum_change=0.0))
    assert mean.score is not None
    summary = json.loads((toy.directory / "mean" / "summary.json").read_text())["result"]
    assert (summary["score_of"], summary["score"]) == ("lists", mean.score)
    written = (toy.directory / "mean" / "moses.ini").read_text()
    assert f"BLEU {mean.score:.6g} on dev" in written


def test_average_of_the_iterations(toy: Toy) -> None:
    result = tune(toy.configuration(select="average", minimum_change=0.0))
    vectors = [np.array(i.weights.dense) for i in result.iterations[1:]]
    last = tune(toy.configuration("last", select="last", minimum_change=0.0)).weights.dense
    vectors = [v / np.abs(v).sum() for v in (*vectors, np.array(last))]
    assert result.weights.dense == pytest.approx(np.mean(vectors, axis=0))
    tuned = read_moses_ini(toy.directory / "work" / "moses.ini").weights
    assert tuned["LM0"][0] == pytest.approx(result.weights.dense[1])
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        merged = store.tuning_set()
    chosen = merged.stats[merged.first_best(np.array(result.weights.dense))]
    assert result.score == toy.configuration().metric.score(chosen.sum(axis=0))


def test_patience_ends_the_run(toy: Toy) -> None:
    given = held_out(toy, patience=1)
    result = tune(toy.configuration(held_out=given, minimum_change=0.0, maximum_iterations=9))
    scores = [score for iteration in result.iterations for _, score in iteration.heldout][1:]
    assert len(scores) < 9
    assert result.reason == "the last translation of the held-out text was no better"
    assert scores[-1] <= max(scores[:-1])
    assert all(b > a for a, b in pairwise(scores[:-1]))


def test_input_and_references_must_agree(toy: Toy) -> None:
    given = held_out(toy)
    tune(toy.configuration(maximum_iterations=1))
    earlier = (toy.directory / "work" / "moses.ini").read_bytes()
    (toy.directory / "other").write_text("ein hund\n")
    with pytest.raises(FormatError, match="other has 1"):
        tune(toy.configuration("new", held_out=given))
    assert not (toy.directory / "new").exists()
    with pytest.raises(FormatError, match="other has 1"):
        tune(toy.configuration(held_out=given, existing="overwrite"))
    assert (toy.directory / "work" / "moses.ini").read_bytes() == earlier


def test_empty_held_out_sets_are_rejected(toy: Toy) -> None:
    given = held_out(toy)
    for name in ("other", "other-reference0", "other-reference1"):
        (toy.directory / name).write_text("")
    with pytest.raises(DataError, match="is empty"):
        tune(toy.configuration(held_out=given))
    assert not (toy.directory / "work").exists()


def test_the_first_of_equals_is_the_best() -> None:
    weights = Weights((1.0,))
    points = [Evaluation(n, score, weights) for n, score in enumerate((0.2, 0.4, 0.4, 0.3))]
    assert find_best(points) is points[1]
    assert count_since_best(points) == 2
    # Starting weights can be the best, but do not end the run.
    assert find_best([Evaluation(0, 0.5, weights), *points[1:]]).updates == 0  # type: ignore[union-attr]
    assert count_since_best([Evaluation(0, 0.5, weights), *points[1:]]) == 2
    assert count_since_best([Evaluation(0, 0.5, weights)]) == 0
    assert find_best([]) is None
    assert count_since_best([]) == 0
    assert Evaluation.of_record(points[0].as_record()) == points[0]
    for evaluation in (Evaluation(3, 0.1), Evaluation(3, None, monitors={"news": 0.2})):
        assert Evaluation.of_record(evaluation.as_record()) == evaluation
    monitored = Evaluation(4, monitors={"news": 0.9})
    assert find_best([*points, monitored]) is points[1]
    assert count_since_best([*points, monitored]) == 2
