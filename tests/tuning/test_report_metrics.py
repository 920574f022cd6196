"""Metrics that a run reports: on every text, in every kind of run, without any effect."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

from formats.references import read_references
from mosesplug.api.run import open_run
from mosesplug.cli.run.progress import list_iterations
from mosesplug.errors import StoreMismatch
from mosesplug.events import HeldOutScored, MetricsReported
from mosesplug.metrics.registry import metric_of_text
from mosesplug.results.render.tables import format_blocks
from mosesplug.results.report.gather import gather_report_steps
from mosesplug.results.views.run import open_run as open_stored_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.settings.online import OnlineSettings
from mosesplug.settings.reported import ReportedMetric, find_reported
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning import tune
from mosesplug.tuning.workdir.summary import Result
from tests.results.pages import render_page
from tests.tuning.test_heldout import held_out, monitor

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any

# By another way, the scores of the objective: each reported score has a known value.
SAME = "BLEU:1+WER:0.000000001 case:true"


def reporting(toy: Toy, name: str, *texts: str, **more: Any) -> Any:
    """A run of two iterations that reports metrics."""
    plain = toy.configuration(name, **({"maximum_iterations": 2, "minimum_change": 0.0} | more))
    return replace(plain, report_metrics=find_reported(texts, plain.metric, metric_of_text))


def list_weights(toy: Toy, name: str) -> list[bytes]:
    """The bytes of all files with weights alone."""
    return [path.read_bytes() for path in sorted((toy.directory / name).glob("run*.dense"))]


def check_equal(result: Result) -> None:
    """Check that a metric that equals the objective has its scores, on every text."""
    for iteration in result.iterations:
        assert iteration.reported == {SAME: pytest.approx(iteration.first_best_score)}
        for evaluation in iteration.evaluations:
            scores = evaluation.scores()
            same = {name: {SAME: pytest.approx(score)} for name, score in scores.items()}
            assert evaluation.reported == same
    monitors = {name: {SAME: pytest.approx(score)} for name, score in result.monitors.items()}
    assert result.reported_monitors == monitors


@pytest.mark.parametrize("select", ["best-dev", "last", "average", "best-heldout"])
def test_all_texts_are_reported(toy: Toy, log: Log, select: str) -> None:
    """With sentence weights, too. The weights are those of a run that reports nothing."""
    (toy.directory / "weights").write_text("0\n2\n0.5\n" * 4)
    more = {
        "held_out": held_out(toy),
        "monitors": (monitor(toy, "one", 0, 4),),
        "sentence_weights": toy.directory / "weights",
        "select": select,
    }
    result = tune(reporting(toy, "work", SAME, **more), log)
    check_equal(result)
    assert result.reported == {SAME: pytest.approx(result.score, abs=1e-6)}
    plain = tune(reporting(toy, "plain", **more))
    assert plain.weights == result.weights
    assert list_weights(toy, "work") == list_weights(toy, "plain")
    assert [event.scores for event in log.of(MetricsReported)] == [
        iteration.reported for iteration in result.iterations
    ]
    for event in log.of(HeldOutScored):
        assert event.reported == {SAME: pytest.approx(event.score)}


@pytest.mark.parametrize("keeps", [True, False], ids=["kept", "discarded"])
@pytest.mark.parametrize("sharding", [None, Sharding(shards=2)], ids=["alone", "shards"])
def test_epochs_are_reported(toy: Toy, keeps: bool, sharding: Sharding | None) -> None:
    learner = {"algorithm": "o-oro", "options": {"epochs": 2, "batch": 4}, "sharding": sharding}
    regime = {"online": OnlineSettings("process", keep_lists=keeps), "maximum_iterations": 0}
    more = {"optimization": learner, "monitors": (monitor(toy, "one", 0, 4),), **regime}
    result = tune(reporting(toy, "work", SAME, **more))
    check_equal(result)
    assert result.reported == (result.iterations[-1].reported if result.score else {})
    assert tune(reporting(toy, "plain", **more)).weights == result.weights


def test_shards_that_are_left_over_are_not_reported(toy: Toy) -> None:
    """As of an epoch that was killed in three shards, and is repeated in two."""

    def run(name: str, shards: int, epochs: int, **more: Any) -> Result:
        learner = {"algorithm": "mira", "options": {"epochs": epochs, "batch": 4}}
        learner |= {"sharding": Sharding(shards=shards)}
        more |= {"optimization": learner, "online": OnlineSettings("process")}
        return tune(reporting(toy, name, SAME, maximum_iterations=0, **more))

    lines = (toy.directory / "input").read_text().splitlines(keepends=True)
    (toy.directory / "reversed").write_text("".join(reversed(lines)))
    run("three", 3, 2, input=toy.directory / "reversed")
    run("work", 2, 1)
    shutil.copytree(toy.directory / "three" / "shard.3", toy.directory / "work" / "shard.3")
    check_equal(run("work", 2, 2, existing="continue"))


def test_what_people_read(toy: Toy) -> None:
    """A rate as a rate, where the run and the report page are read; 1 minus the rate in JSON."""
    run = reporting(toy, "work", "WER", "CHRF[beta:3]", monitors=(monitor(toy, "one", 0, 4),))
    result = tune(run)
    work = toy.directory / "work"
    table = format_blocks(list_iterations(result)).splitlines()
    assert table[0].split()[-2:] == ["WER", "CHRF[beta:3]"]
    words, letters = (result.reported[name] for name in ("WER", "CHRF[beta:3]"))
    end = f"; WER {1 - words:.4f}, CHRF[beta:3] {letters:.4f} ({result.reason})"
    assert any(line.startswith("weights: BLEU") and line.endswith(end) for line in table)
    others = result.reported_monitors["one"]
    end = f"; WER {1 - others['WER']:.4f}, CHRF[beta:3] {others['CHRF[beta:3]']:.4f}"
    assert any(line.startswith("monitor one: BLEU") and line.endswith(end) for line in table)
    assert table[-2].startswith("WER: WER|")
    assert table[-2].endswith("(an error rate: less is better)")
    summary = json.loads((work / "summary.json").read_text())
    assert summary["report_metrics"]["CHRF[beta:3]"].startswith("CHRF|nrefs:2|case:mixed|beta:3|")
    assert summary["result"]["reported"] == result.reported
    assert summary["iterations"][1]["reported"] == result.iterations[1].reported
    (last,) = summary["iterations"][1]["monitors"]["one"]
    assert last["reported"] == result.iterations[1].evaluations[0].reported["one"]
    # The rows of a run, and the same 1-bests as scored by a report.
    assert "Metrics that are only reported" in open_run(work)._repr_html_()
    rows = [row for row in open_run(work).reported if row["metric"] == "WER"]
    assert [(row["iteration"], row["updates"], row["text"]) for row in rows] == [
        *((1, 0, "tuning set"), (1, 0, "one"), (1, 1, "one")),
        *((2, 1, "tuning set"), (2, 2, "one")),
    ]
    references = [[*map(bytes, lines)] for lines in read_references(run.references)]
    with open_stored_run(work, with_lists=True) as opened:
        text = ParallelText((), references)
        *_, data = gather_report_steps(opened, ParallelText())
        *_, measured = gather_report_steps(opened, text, watched=["WER", "CHRF beta:3"])
    scores = {(one.metric, one.text): one.scores for one in data.watched_scores}
    assert list(scores) == [
        *(("WER", ""), ("CHRF[beta:3]", "")), *(("WER", "one"), ("CHRF[beta:3]", "one"))
    ]  # fmt: skip
    again = {one.metric: one.scores for one in measured.watched_scores if not one.text}
    assert again["WER"] == scores["WER", ""]
    assert again["CHRF beta:3"] == again["CHRF[beta:3]"] == scores["CHRF[beta:3]", ""]
    page = render_page(data, "a run")
    assert "WER, one" in page
    assert f"{scores['WER', ''][1]:.4f}" in page


def test_a_continued_run_may_report_other_metrics(toy: Toy) -> None:
    """Not by another metric under the same name. Of earlier iterations, nothing is known."""
    tune(reporting(toy, "work", "WER", maximum_iterations=1))
    more = {"maximum_iterations": 2, "existing": "continue"}
    result = tune(reporting(toy, "work", "CHRF", **more))
    assert [list(one.reported) for one in result.iterations] == [["WER"], ["CHRF"]]
    assert list(result.reported) == ["CHRF"]
    table = format_blocks(list_iterations(result)).splitlines()
    assert table[0].split()[-1] == "CHRF"
    with open_stored_run(toy.directory / "work", with_lists=True) as opened:
        *_, data = gather_report_steps(opened, ParallelText())
    scores = {one.metric: one.scores for one in data.watched_scores}
    assert (scores["WER"][1], scores["CHRF"][0]) == (None, None)
    assert "Pareto" in render_page(data, "a run")
    run = reporting(toy, "work", **more)
    other = ReportedMetric("WER", metric_of_text("WER case:false"))
    with pytest.raises(StoreMismatch, match="different reported metric WER"):
        tune(replace(run, report_metrics=(other,)))
