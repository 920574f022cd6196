"""Test report data against hand-computed and brute-force numbers."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable
from dataclasses import astuple
from pathlib import Path

import numpy as np
import pytest

from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.metrics import metric
from mosesplug.metrics.protocol import score_sentences
from mosesplug.metrics.registry import metric_of_text
from mosesplug.results.report.data import FeatureFacts
from mosesplug.results.report.gather import STEPS, _shorten_names, gather_report_steps
from mosesplug.results.views.list_statistics import measure_features, read_batches
from mosesplug.results.views.lists import compute_error_surfaces
from mosesplug.results.views.run import StoredRun, open_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.tuning_set import TuningSet
from tests.results.pages import check_whole, render_page
from tests.results.runs import GRAPH, LISTS, REFERENCE, gather_report, make_run, read_graph


def test_iterations_and_oracles(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        data = gather_report(run, ParallelText())
    first, second = data.iterations
    assert (first.hypotheses, first.new_hypotheses) == (5, 5)
    assert (second.hypotheses, second.new_hypotheses) == (4, 1)
    assert (first.held_out, second.held_out) == (None, 0.4)
    assert first.weights == (0.5, 0.5)
    assert second.weights == pytest.approx((0.25, 0.75))
    assert data.facts["seed"] == "7"
    # All choices: the oracle of the first lists, and of all.
    judge = metric("BLEU")
    references = judge.prepare([REFERENCE])
    known: list[list[bytes]] = [[], [], []]
    for facts, hypotheses in zip(data.iterations, LISTS, strict=True):
        for hypothesis in hypotheses:
            if hypothesis.text not in known[hypothesis.sentence]:
                known[hypothesis.sentence].append(hypothesis.text)
        best = max(_bleu(judge, references, choice) for choice in itertools.product(*known))
        assert facts.oracle == pytest.approx(best)
    assert data.coverage is not None
    assert data.coverage.ranks == (1, 2)
    assert data.coverage.scores[-1] >= data.coverage.scores[0] == data.coverage.first_best


def _bleu(judge, references, choice) -> float:  # type: ignore[no-untyped-def]
    text = b"".join(choice)
    ends = np.cumsum([len(words) for words in choice])
    statistics = judge.statistics(
        references,
        np.arange(3),
        np.frombuffer(text, dtype=np.uint8),
        ends - [len(words) for words in choice],
        ends,
    )
    return float(judge.score(statistics.sum(axis=0)))


def test_weights_are_those_of_the_summary(tmp_path: Path) -> None:
    work = make_run(tmp_path / "work")
    with open_run(work) as run:
        assert run.weights.dense == (0.25, 0.75)
        assert "iteration 2" in run.weights_origin
    (work / "summary.json").write_text(
        json.dumps({"result": {"weights": {"LM0_0": 0.5, "TM0_0": 1.5, "WT_a~b": 2.0}}})
    )
    with open_run(work / "nbests.lmdb") as run:
        assert run.names == ("LM0_0", "TM0_0")
        assert run.weights.sparse == {"WT_a~b": 2.0}
        assert "moses.ini" in run.weights_origin
        data = gather_report(run, ParallelText())
        assert data.sparse == (("WT_a~b", 1.0),)  # over the L1 norm of the dense ones
    (work / "summary.json").write_text("{}")
    with pytest.raises(DataError, match="not the summary"), open_run(work):
        pass


def test_a_run_without_a_result_shows_its_decoding_weights(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work", finished=False)) as run:
        assert run.weights.dense == (0.2, 0.6)
        data = gather_report(run, ParallelText())
    assert data.iterations[-1].optimum is None


def test_no_store_and_no_iteration(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="name a working directory"), open_run(tmp_path):
        pass
    empty = make_run(tmp_path / "work", lists=())
    with pytest.raises(DataError, match="no finished iteration"), open_run(empty):
        pass


def _measure(run: StoredRun, batches: Iterable[TuningSet]) -> tuple[FeatureFacts, ...]:
    return measure_features(batches, run.metric, run.vector, run.names)


def test_features_by_hand(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        merged = run.store.tuning_set()
        language_model, translation_model = measure_features(
            [merged], run.metric, run.vector, run.names
        )
        halves = [run.store.batch([0, 2]), run.store.batch([1])]
        whole = (language_model, translation_model)
        for one, other in zip(_measure(run, halves), whole, strict=True):
            assert astuple(one) == pytest.approx(astuple(other))
        assert _measure(run, read_batches(run)) == whole
    values = [[-1.0, -2.0], [-1.0, -3.0, -4.0], [-1.0]]
    assert language_model.mean == pytest.approx(np.mean([v for row in values for v in row]))
    assert language_model.spread == pytest.approx(np.mean([np.std(row) for row in values]))
    assert language_model.active == 1.0
    assert translation_model.active == pytest.approx(4 / 6)
    scores = score_sentences(metric("BLEU"), merged.stats)
    parts = np.split(scores, merged.offsets[1:-1])
    centered = np.concatenate([part - part.mean() for part in parts])
    inside = np.concatenate([np.array(row) - np.mean(row) for row in values])
    assert language_model.correlation == pytest.approx(np.corrcoef(centered, inside)[0, 1])


def test_feature_that_never_varies_has_no_correlation(tmp_path: Path) -> None:
    lists = [[h._replace(dense=(0.1, float(rank))) for rank, h in enumerate(LISTS[0])]]
    with open_run(make_run(tmp_path / "work", lists=lists)) as run:
        constant, _ = measure_features([run.store.tuning_set()], run.metric, run.vector, run.names)
    assert math.isnan(constant.correlation)


def test_surfaces_equal_decoding_at_every_part(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        merged = run.store.tuning_set()
        for column, surface in enumerate(
            compute_error_surfaces(merged, run.metric, run.vector, run.names)
        ):
            assert surface.weight == pytest.approx(run.vector[column])
            assert len(surface.ends) == len(surface.scores) + 1
            for start, end, score in zip(
                surface.ends[:-1], surface.ends[1:], surface.scores, strict=True
            ):
                weights = run.vector.copy()
                weights[column] = 0.5 * (start + end)
                stats = merged.stats[merged.first_best(weights)].sum(axis=0)
                assert float(run.metric.score(stats)) == pytest.approx(score)


def test_sentences(tmp_path: Path) -> None:
    source = (b"das rote Haus ist alt", b"sie sieht heute einen kleinen Hund", b"sie \xff gingen")
    with open_run(make_run(tmp_path / "work")) as run:
        data = gather_report(run, ParallelText(source, [REFERENCE]), examples=5)
        with pytest.raises(DataError, match="source has 2 lines"):
            gather_report(run, ParallelText(source[:2]))
    # Half of three sentences: no sentence is in both.
    (worst,), (best,) = data.worst, data.best
    assert worst.chosen_score < best.chosen_score
    assert best.chosen_score == best.oracle_score == 1.0
    assert best.references == (REFERENCE[best.number].decode(),)
    assert worst.source == source[worst.number].decode("utf-8", "replace")


@pytest.mark.usefixtures("figures_without_svg")
def test_metrics_that_were_not_optimized(tmp_path: Path) -> None:
    """Each is the score of the first hypotheses of the lists, as text."""
    text = ParallelText(references=[REFERENCE])
    with open_run(make_run(tmp_path / "work")) as run:
        watched = ["WER", "CHRF beta:3", "BLEU reflen:shortest"]
        *_, data = gather_report_steps(run, text, watched=watched)
        for names, message in (
            (["BLEU"], "it is the metric that is optimized"),
            (["WER", "WER case:true"], "--report-metric WER case:true is given twice"),
            (["CHRF bta:3"], "unknown setting 'bta' of CHRF"),
            (["NOSUCH"], "unknown metric"),
        ):
            with pytest.raises(UsageError, match=message):
                list(gather_report_steps(run, text, watched=names))
        with pytest.raises(UsageError, match="to report WER, use --refs FILE"):
            list(gather_report_steps(run, ParallelText(), watched=["WER"]))
    assert [(each.metric, each.is_error_rate) for each in data.watched_scores] == [
        ("WER", True),
        ("CHRF beta:3", False),
        ("BLEU reflen:shortest", False),
    ]
    for found in data.watched_scores:
        judge = metric_of_text(found.metric)
        references = judge.prepare([REFERENCE])
        for score, hypotheses in zip(found.scores, LISTS, strict=True):
            firsts = [next(h.text for h in hypotheses if h.sentence == s) for s in range(3)]
            expected = _bleu(judge, references, firsts)
            assert score == pytest.approx(1.0 - expected if found.is_error_rate else expected)
    page = render_page(data, "run")
    check_whole(page)
    assert page.count('<svg class="scatter"') == 3


def test_long_names_are_cut_and_stay_distinct() -> None:
    """Drawing a name of 100,000 letters takes a minute."""
    assert _shorten_names(("LM0", "TM0_0")) == ("LM0", "TM0_0")
    first, second, third = _shorten_names(("x" * 10**5, "x" * 10**5 + "y", "LM0"))
    assert len({first, second, third}) == 3
    assert max(map(len, (first, second, third))) < 80


def test_steps_are_as_many_as_announced(tmp_path: Path) -> None:
    with open_run(make_run(tmp_path / "work")) as run:
        assert len(list(gather_report_steps(run, ParallelText()))) == len(STEPS)


@pytest.mark.parametrize("name", ["TER", "CHRF", "BLEU,TER"])
def test_other_metrics(tmp_path: Path, name: str) -> None:
    with open_run(make_run(tmp_path / "work", name=name)) as run:
        data = gather_report(run, ParallelText())
    assert data.metric == name
    assert data.best[0].chosen_score >= data.worst[0].chosen_score


def test_lattice_by_hand(tmp_path: Path) -> None:
    graph = read_graph(tmp_path)
    with open_run(make_run(tmp_path / "work", graph=graph)) as run:
        facts = gather_report(run, ParallelText()).lattice
    assert facts is not None
    assert facts.feature == "LM0_0"
    assert facts.whole == 5
    assert facts.edges == (
        (0, 1, "the red house"),
        (0, 1, "the house"),
        (1, 2, "is old"),
        (2, 3, "</s>"),
    )
    long, short = facts.lines
    # Below 0 the worse language model score wins; that translation is in no list's words.
    assert (long.text, short.text) == ("the red house is old", "the house is old")
    assert long.end == short.start == pytest.approx(0.0)
    assert long.slope == -2.0
    assert long.intercept == pytest.approx(0.25 * -2.0 + 0.75 * -2.0)
    assert long.score == 1.0
    assert short.score is None


def test_forest_of_two_tails_has_no_edges_to_draw(tmp_path: Path) -> None:
    text = GRAPH.replace("[1] is old", "[1] is [0] old")
    with open_run(make_run(tmp_path / "work", graph=read_graph(tmp_path, text))) as run:
        facts = gather_report(run, ParallelText()).lattice
        assert facts is not None
        assert facts.edges == ()
        with pytest.raises(DataError, match="sentence 1 has no search graph"):
            gather_report(run, ParallelText(), lattice=1)
        with pytest.raises(DataError, match="no sentence 9"):
            gather_report(run, ParallelText(), lattice=9)
