"""Weights of sentences in a run: its scores count them, and it resumes with the same ones only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.references import read_references
from mosesplug.api.analysis import analyze
from mosesplug.cli.shared.output import note_weighting
from mosesplug.errors import DataError, UsageError
from mosesplug.events import Note
from mosesplug.learning.data import read_data
from mosesplug.optimizers.online.epochs import Plan, StoredSource, run_epoch
from mosesplug.optimizers.online.mixing import line_search
from mosesplug.optimizers.problem import Problem
from mosesplug.optimizers.registry import algorithm
from mosesplug.results.scores.comparison import (
    compare_systems,
    find_shared_weights,
    parse_systems,
)
from mosesplug.results.scores.scoring import prepare_metrics
from mosesplug.results.views.configuration import describe_outcome
from mosesplug.results.views.lists import measure_coverage, measure_oracle_growth, score_oracle
from mosesplug.results.views.run import open_run
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.decoding import GraphSettings
from mosesplug.settings.learning import LearningSettings
from mosesplug.settings.online import OnlineSettings
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning_set import TuningSet
from tests.tuning.online.interrupting import interrupt

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any
Files = Callable[[Path], dict[str, bytes]]

WEIGHTS = [0.0, 2.0, 0.5] * 4


def make(toy: Toy, weights: list[float] | None = None, name: str = "work", **settings: Any) -> Any:
    optimization = {"algorithm": "kbmira", "options": {}}
    path = None
    if weights is not None:
        path = toy.directory / "weights"
        path.write_text("".join(f"{weight}\n" for weight in weights))
    settings = {"sentence_weights": path, "optimization": optimization, **settings}
    return toy.configuration(name, **settings)


def online(toy: Toy, name: str = "work", sharding: Sharding | None = None, **more: Any) -> Any:
    """A weighted run online, in mini-batches of 3 of the 8 sentences of weight above 0."""
    options = {"epochs": more.pop("epochs", 1), "batch": 3, **more.pop("options", {})}
    optimization = {
        "algorithm": more.pop("learner", "mira"), "options": options, "sharding": sharding
    }  # fmt: skip
    more |= {"online": OnlineSettings("process"), "maximum_iterations": 0, "minimum_change": 0.0}
    path = toy.directory / "weights"
    path.write_text("".join(f"{weight}\n" for weight in WEIGHTS))
    return toy.configuration(name, optimization=optimization, sentence_weights=path, **more)


def read_epoch(store: Path, number: int = 1) -> TuningSet:
    """The lists of an epoch that are not empty, with the weights from here."""
    with NBestStore.open(store) as opened:
        lists = opened.iteration_set(number).tuning_set
    filled = np.flatnonzero(np.diff(lists.offsets))
    assert all(WEIGHTS[sentence] > 0.0 for sentence in filled)
    return lists.take_sentences(filled).weigh(np.array(WEIGHTS)[filled])


def test_scores_of_a_run_are_weighted(toy: Toy, log: Log) -> None:
    configuration = make(toy, WEIGHTS)
    result = tune(configuration, log)
    metric = configuration.metric
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        for record in store.iterations():
            rows = store.first_best_statistics(record.iteration)
            assert record.first_best_score == pytest.approx(
                float(metric.score(np.array(WEIGHTS) @ rows))
            )
        number = len(store.iterations())
        lists = store.batch(np.arange(12), range(1, number + 1)).weigh(np.array(WEIGHTS))
        vector = result.iterations[-1].weights.vector(lists.space, {})
        totals = lists.weighted_stats[lists.first_best(vector)].sum(axis=0)
        # The optimizer works in single precision.
        assert result.iterations[-1].optimum == pytest.approx(float(metric.score(totals)), abs=1e-6)
    with open_run(toy.directory / "work") as run:
        assert describe_outcome(run).warnings[-1] == (
            "This run has sentence weights from 0.5 to 2 (4 sentences with weight 0 left out). All "
            "corpus scores of its lists are weighted; scores of sentences and of held-out text are "
            "not."
        )


def test_views_of_a_run_are_weighted_as_it_was(
    toy: Toy, log: Log, capsys: pytest.CaptureFixture[str]
) -> None:
    configuration = make(toy, WEIGHTS, maximum_iterations=1)
    tune(configuration, log)
    work, metric = toy.directory / "work", configuration.metric
    lines = read_references(configuration.references)
    with open_run(work) as run:
        note_weighting(run)
        text = "has sentence weights from 0.5 to 2 (4 sentences with weight 0"
        assert text in capsys.readouterr().err
        (record,), own = run.records, run.store.tuning_set()
        plain = own.weigh(None)
        (growth,) = measure_oracle_growth(run)
        assert growth == score_oracle(own, metric) != score_oracle(plain, metric)
        assert measure_coverage(run, 1).scores[-1] == growth
        # Another cache belongs to other weights.
        assert [*measure_oracle_growth(replace(run, store=Unweighted(run.store)))] == [
            score_oracle(plain, metric)
        ]
    systems = parse_systems([f"run={work}", f"text={work / 'run1.out'}"])
    (prepared,) = prepare_metrics(["BLEU"], lines)
    for score in compare_systems(systems, prepared, samples=2, trials=2):
        assert score.score == pytest.approx(record.first_best_score)
    weights, note = find_shared_weights(systems)
    assert weights is not None
    assert weights.tolist() == WEIGHTS
    assert note.startswith("scores are weighted as the run run is: sentence weights from 0.5 to 2")
    assert note.endswith("Edits and analyses count each sentence once")
    analysis = analyze({"run": work, "text": work / "run1.out"}, configuration.references)
    assert analysis.warnings == (note,)
    assert f"warning: {note}" in repr(analysis)
    assert f"<p class=note>{note}</p>" in analysis.write_html(toy.directory / "page").read_text()
    texts = analyze(dict.fromkeys("ab", work / "run1.out"), configuration.references)
    assert texts.warnings == ()
    other = replace(systems[1], sentence_weights=(np.ones(12),))
    weights, note = find_shared_weights([systems[0], other])
    assert weights is None
    assert note == "the runs have different sentence weights: here each sentence counts once"
    learned = read_data(LearningSettings(store=work / "nbests.lmdb"))
    assert learned.sentences.tolist() == np.flatnonzero(WEIGHTS).tolist()
    assert any("the weights of the run" in str(own) for own in learned.notes)
    (toy.directory / "ones").write_text("1\n" * 12)
    alike = read_data(
        LearningSettings(store=work / "nbests.lmdb", sentence_weights=toy.directory / "ones")
    )
    assert alike.problem.tuning_set.sentence_weights is None


class Unweighted:
    """A store as it was before it kept weights."""

    sentence_weights = None

    def __init__(self, store: NBestStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def tuning_set(self, iterations: Any = None) -> TuningSet:
        return self._store.tuning_set(iterations).weigh(None)


def test_weights_of_1_are_the_same_as_none(toy: Toy, log: Log) -> None:
    plain = tune(make(toy), log)
    weighted = tune(make(toy, [1.0] * 12, existing="overwrite"), log)
    assert [each.weights for each in weighted.iterations] == [
        each.weights for each in plain.iterations
    ]


@pytest.mark.parametrize(
    "sharding", [Sharding(2), Sharding(2, asynchronous=True, async_order="fixed")]
)
def test_weights_of_1_are_the_same_as_none_in_shards(
    toy: Toy, left_by_run: Files, sharding: Sharding
) -> None:
    plain = tune(replace(online(toy, "plain", sharding), sentence_weights=None))
    configuration = online(toy, sharding=sharding)
    configuration.sentence_weights.write_text("1\n" * 12)
    weighted = tune(configuration)
    assert weighted.weights == plain.weights
    one, other = (left_by_run(toy.directory / name) for name in ("plain", "work"))
    assert one["run1.weights.txt"] == other["run1.weights.txt"]


def test_a_run_continues_with_the_same_weights_only(toy: Toy, log: Log) -> None:
    first = make(toy, WEIGHTS, maximum_iterations=1)
    tune(first, log)
    more = {"maximum_iterations": 2, "existing": "continue"}
    for others in (None, [1.0] * 12):
        with pytest.raises(UsageError, match="a run with other weights of sentences"):
            tune(make(toy, others, **more), log)
    continued = tune(make(toy, WEIGHTS, **more), log)
    assert len(continued.iterations) == 2
    whole = tune(make(toy, WEIGHTS, "complete", maximum_iterations=2), log)
    assert [each.weights for each in continued.iterations] == [
        each.weights for each in whole.iterations
    ]
    assert any(
        "sentence weights from 0.5 to 2 (4 sentences with" in line
        for line in (note.text for note in log.of(Note))
    )


def test_wrong_numbers_of_weights_are_found_before_decoding(toy: Toy, log: Log) -> None:
    with pytest.raises(DataError, match="has 3 weights for 12 source sentences"):
        tune(make(toy, [1.0, 2.0, 3.0]), log)
    assert not (toy.directory / "work" / "run1.best15.out.gz").exists()


@pytest.mark.parametrize("learner", ["mira", "adagrad", "o-oro"])
@pytest.mark.parametrize("workers", [0, 1])
def test_an_online_run_learns_as_by_hand(toy: Toy, learner: str, workers: int) -> None:
    """Sentences of weight 0 are not decoded; the others learn with their weights."""
    sharding = Sharding(workers, asynchronous=True) if workers else None
    options = {"averaging": "last", "line_search": False} if learner == "o-oro" else {}
    options = {"averaging": "last", **options}
    configuration = online(toy, sharding=sharding, learner=learner, options=options, select="last")
    result = tune(configuration)
    lists, metric = read_epoch(toy.directory / "work" / "nbests.lmdb"), configuration.metric
    assert lists.sentence_ids.tolist() == np.flatnonzero(WEIGHTS).tolist()
    row = algorithm(learner)
    assert row.learner is not None
    learned = row.learner(make_options(row, {"epochs": 1, "batch": 3, **options}))
    start = np.array(result.iterations[0].weights.dense)
    plan = Plan(5, 3, metric, np.ones(len(start), dtype=np.bool_))
    epoch = run_epoch(learned, learned.init(start), StoredSource(lists), plan, 1)
    assert result.weights.dense == pytest.approx(tuple(learned.weights(epoch.state)), rel=1e-12)
    totals = lists.weighted_stats[lists.offsets[:-1]].sum(axis=0)
    score = pytest.approx(float(metric.score(totals)))
    assert result.iterations[0].first_best_score == score
    assert result.iterations[0].optimum == score
    plain = run_epoch(learned, learned.init(start), StoredSource(lists.weigh(None)), plan, 1)
    assert result.weights.dense != pytest.approx(tuple(learned.weights(plain.state)), rel=1e-3)


def test_shards_mix_weighted(toy: Toy) -> None:
    """Each shard learns with the weights of its sentences, and so does the line search."""
    mean = tune(online(toy, "mean", Sharding(2, mixing="average"), select="last"))
    result = tune(online(toy, sharding=Sharding(2), select="last"))
    parts = [
        read_epoch(toy.directory / "work" / f"shard.{number}" / "nbests.lmdb") for number in (1, 2)
    ]
    sizes = np.concatenate([np.diff(part.offsets) for part in parts])
    ids = np.concatenate([part.sentence_ids for part in parts])
    assert sorted(ids.tolist()) == np.flatnonzero(WEIGHTS).tolist()
    whole = replace(
        parts[0],
        sentence_ids=ids,
        offsets=np.append(0, np.cumsum(sizes)),
        dense=np.concatenate([part.dense for part in parts]),
        stats=np.concatenate([part.stats for part in parts]),
        lengths=np.concatenate([part.lengths for part in parts]),
        sentence_weights=np.array(WEIGHTS)[ids],
    )
    old = np.array(result.iterations[0].weights.dense)
    metric = toy.configuration().metric
    expected = line_search(Problem(whole, metric), old, np.array(mean.weights.dense))
    (point,) = result.iterations[0].curve
    assert point["mixed"] == pytest.approx(expected.score)
    assert result.weights.dense == pytest.approx(tuple(expected.weights))
    totals = whole.weighted_stats[whole.offsets[:-1]].sum(axis=0)
    assert point["score"] == pytest.approx(float(metric.score(totals)))


@pytest.mark.parametrize(
    "sharding", [None, Sharding(2, asynchronous=True, async_order="fixed"), Sharding(2)]
)
def test_an_interrupted_weighted_epoch_ends_with_the_same_bytes(
    toy: Toy, left_by_run: Files, sharding: Sharding | None
) -> None:
    tune(online(toy, "whole", sharding))
    interrupt(online(toy, sharding=sharding), 2)
    tune(online(toy, sharding=sharding, existing="continue"))
    one, other = (left_by_run(toy.directory / name) for name in ("whole", "work"))
    assert one["run1.weights.txt"] == other["run1.weights.txt"]
    assert one["moses.ini"] == other["moses.ini"]


def test_more_shards_than_weighted_sentences_are_refused(toy: Toy) -> None:
    with pytest.raises(UsageError, match="9 shards for 8 sentences"):
        tune(online(toy, sharding=Sharding(9)))


def test_search_graphs_are_weighted_as_lists_are(toy: Toy) -> None:
    """MERT on graphs that hold the lists, and a learner of lists that come from graphs."""
    optima = []
    for name, decoding in (
        ("lists", {"nbest": 100}),
        ("graphs", {"nbest": 1, "graphs": GraphSettings(0)}),
    ):
        optimization = {"options": {"graph_search": "graphs"}}
        result = tune(
            make(toy, WEIGHTS, name, decoding=decoding, optimization=optimization,
                 maximum_iterations=1)
        )  # fmt: skip
        optima.append(result.iterations[0])
    assert optima[1].optimum == pytest.approx(optima[0].optimum, abs=1e-6)
    assert optima[1].first_best_score == pytest.approx(optima[0].first_best_score)
    np.testing.assert_allclose(optima[1].weights.dense, optima[0].weights.dense, atol=1e-3)
    pro = {"algorithm": "pro", "options": {}}
    graphs = {"graphs": GraphSettings()}
    listed, taken = (
        tune(make(toy, WEIGHTS, name, decoding=decoding, optimization=pro, maximum_iterations=1))
        for name, decoding in (("own lists", {}), ("taken", graphs))
    )
    assert taken.iterations[0].weights.dense == pytest.approx(
        listed.iterations[0].weights.dense, rel=1e-3
    )


def test_a_plugin_that_cannot_weigh_is_refused_before_decoding(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = replace(algorithm("kbmira"), weighs_sentences=False)
    monkeypatch.setattr("mosesplug.tuning.setup.find_algorithm", lambda name: plain)
    with pytest.raises(UsageError, match="kbmira cannot weight sentences; choose one of"):
        tune(make(toy, WEIGHTS))
    assert not (toy.directory / "work" / "run1.best15.out.gz").exists()
