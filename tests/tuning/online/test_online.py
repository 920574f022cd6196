"""Test learning while decoding: weights, stored lists, learning and files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.moses.ini import read_moses_ini
from formats.weights.files import read_sparse
from mosesplug.errors import UsageError
from mosesplug.events import CommandStarted, EpochLearned, EpochProgress, Note
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import Problem, algorithms, corpus_score
from mosesplug.optimizers.online.epochs import (
    Plan,
    run_epoch,
)
from mosesplug.optimizers.online.learner import add_averaging, mean_weights
from mosesplug.optimizers.registry import algorithm
from mosesplug.optimizers.selection import FeatureSelection
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.online import HeldOutSet, Monitor, OnlineSettings
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.online.numbering import FeatureNumbering
from mosesplug.tuning.workdir.records import read_result, read_start
from mosesplug.tuning_set import Batch, SparseRows
from tests.tuning.online.interrupting import interrupt

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any

LEARNERS = sorted(each.name for each in algorithms().values() if each.learner is not None)


def online(toy: Toy, name: str = "work", *, learner: str = "o-oro", epochs: int = 2, **more: Any):
    """A run on the toy system with batches of 4 sentences."""
    options = {"epochs": epochs, "batch": 4, **more.pop("options", {})}
    optimization = {"algorithm": learner, "options": options, **more.pop("optimization", {})}
    regime = {"online": OnlineSettings("process"), "maximum_iterations": 0, "minimum_change": 0.0}
    return toy.configuration(name, optimization=optimization, **(regime | more))


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_runs_and_leaves_a_result(toy: Toy, learner: str) -> None:
    result = tune(online(toy, learner=learner, epochs=1))
    assert result.is_online
    assert np.isfinite(result.weights.dense).all()
    assert any(result.weights.dense)
    tuned = read_moses_ini(toy.directory / "work" / "moses.ini").weights
    assert [w for name in dict.fromkeys(result.names) for w in _group(tuned, name)] == list(
        result.weights.dense
    )


def _group(weights: Any, column: str) -> tuple[float, ...]:
    name, _, place = column.rpartition("_")
    return (weights[name][int(place)],)


def test_each_batch_is_decoded_with_the_weights_after_the_last(toy: Toy, log: Log) -> None:
    """The learner, run by hand on the stored lists, had the weights on each command line."""
    result = tune(online(toy, learner="mira", epochs=1), log)
    commands = [e.command for e in log.of(CommandStarted) if "-n-best-list" in e.command]
    assert len(commands) == 3
    overwrites = [command[command.index("-weight-overwrite") + 1] for command in commands]
    row = algorithm("mira")
    assert row.learner is not None
    options = make_options(row, {"epochs": 1, "batch": 4})
    learner = add_averaging(row.learner(options))
    seen: list[np.ndarray] = []

    class Stored:
        sentences = np.arange(12)

        def batch(self, sentences: Any, weights: Any) -> Batch:
            seen.append(weights())
            return lists.take_sentences(sentences)

    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        lists = store.iteration_set(1).tuning_set
        (record,) = store.iterations()
    start = np.array(record.record["dense"])
    assert np.abs(start).sum() == pytest.approx(1.0)
    configuration = online(toy)
    plan = Plan(5, 4, configuration.metric, np.ones(6, dtype=np.bool_))
    epoch = run_epoch(learner, learner.init(start), Stored(), plan, 1)
    texts = [[float(w) for w in text.split() if not w.endswith("=")] for text in overwrites]
    assert texts == [vector.tolist() for vector in seen]
    assert list(result.weights.dense) == mean_weights(learner, epoch.state).tolist()
    score = float(configuration.metric.score(epoch.tally.totals))
    assert record.first_best_score == pytest.approx(score)
    assert result.iterations[0].curve[0]["score"] == pytest.approx(score)


def test_files_summary_and_events(toy: Toy, log: Log) -> None:
    result = tune(online(toy), log)
    work = toy.directory / "work"
    names = {path.name for path in work.iterdir()}
    for number in (1, 2):
        assert {f"run{number}.moses.ini", f"run{number}.dense", f"run{number}.weights.txt"} <= names
    assert (work / "finished_step.txt").read_text().strip() == "2"
    assert len(log.of(EpochProgress)) == 6
    assert [event.report["updates"] for event in log.of(EpochLearned)] == [3, 6]
    summary = json.loads((work / "summary.json").read_text())
    assert summary["online"]
    assert summary["reason"] == "all 2 epochs are done"
    assert summary["result"]["selected"] == "average"
    (point,) = summary["iterations"][1]["curve"]
    assert {"epoch", "score", "loss", "violations", "norm", "active", "updates"} <= set(point)
    assert result.iterations[1].hypotheses == 12 * 15


def test_an_epoch_of_rank_learning_ends_with_a_line_search(toy: Toy) -> None:
    configuration = online(toy, learner="oro", epochs=2)
    selected = tune(configuration).weights
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        for record in store.iterations():
            lists = store.iteration_set(record.iteration).tuning_set
            start, result = read_start(record).weights, read_result(record)
            before, after = (
                corpus_score(Problem(lists, configuration.metric), weights.vector(lists.space))
                for weights in (start, result.weights)
            )
            (point,) = result.curve
            assert point["mixed"] == pytest.approx(after, abs=1e-12)
            assert after >= before
            assert "rho" in point
        results = [read_result(record) for record in store.iterations()]
    # The result is the mean of the weights after the epochs.
    mean = np.mean([result.weights.dense for result in results], axis=0)
    np.testing.assert_allclose(selected.dense, mean, rtol=1e-9)


@pytest.mark.parametrize("shards", [None, 2])
def test_the_paper_searches_no_line_from_the_configured_weights(
    toy: Toy, shards: int | None
) -> None:
    configuration = online(
        toy,
        learner="oro",
        epochs=2,
        options={"variant": "paper"},
        optimization={"sharding": shards and Sharding(shards)},
    )
    points = [record.curve[0] for record in tune(configuration).iterations]
    assert points[0]["rho"] == 1.0  # from zero weights, all points of the line decode alike


@pytest.mark.parametrize("shards", [None, 2])
def test_the_paper_chooses_among_epochs_only(toy: Toy, shards: int | None) -> None:
    """The configured weights are not those that a start from zero learns from."""
    text = toy.directory / "input", toy.directory / "reference"
    configuration = online(
        toy,
        learner="o-oro",
        epochs=2,
        options={"variant": "paper"},
        optimization={"sharding": shards and Sharding(shards)},
        held_out=HeldOutSet(*text),
        monitors=(Monitor("monitor", *text),),
    )
    result = tune(configuration)
    chosen = [[updates for updates, _ in i.heldout] for i in result.iterations]
    shown = [[updates for updates, _ in i.monitors["monitor"]] for i in result.iterations]
    assert [0, *chosen[0]] == shown[0]
    assert chosen[1] == shown[1]
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    assert (result.selection, result.score) == ("best-heldout", max(scores))


def test_only_the_newest_iteration_keeps_the_learner(toy: Toy) -> None:
    tune(online(toy, epochs=3))
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        kept = [(record.result or {})["learner"] for record in store.iterations()]
    assert kept[:2] == [None, None]
    assert kept[2]["updates"] == 9


def test_more_epochs_later_are_those_of_one_run(toy: Toy) -> None:
    tune(online(toy, "whole", epochs=2))
    tune(online(toy, "parts", epochs=1))
    tune(online(toy, "parts", epochs=2, existing="continue"))
    whole, parts = (toy.directory / name / "moses.ini" for name in ("whole", "parts"))
    assert read_moses_ini(whole).weights == read_moses_ini(parts).weights


def test_sparse_features_appear_and_keep_their_starting_weights(toy: Toy, log: Log) -> None:
    (toy.directory / "start.sparse").write_text("wt_hund 0.6\nwt_never 0.3\n")
    configuration = online(toy, learner="perceptron") if "perceptron" in LEARNERS else online(toy)
    decoder = replace(configuration.decoding.decoder, flags=("-sparse",))
    configuration = replace(
        configuration,
        decoding=replace(configuration.decoding, decoder=decoder),
        sparse_weights=toy.directory / "start.sparse",
        select="last",
    )
    result = tune(configuration, log)
    first = read_sparse(toy.directory / "work" / "run1.sparse-weights")
    assert first["wt_hund"] == pytest.approx(2 * first["wt_never"])
    assert len(result.weights.sparse) > 5
    file = read_moses_ini(toy.directory / "work" / "moses.ini").section("weight-file")[0].text
    assert read_sparse(Path(file)) == result.weights.sparse


@pytest.mark.parametrize("shards", [None, 2])
def test_the_mean_of_an_l1_learner_has_its_zeros(toy: Toy, shards: int | None) -> None:
    """The default without a held-out set, also if epochs are mixed from shards."""
    configuration = online(
        toy,
        learner="adagrad",
        options={"epochs": 3, "rate": 0.5, "regularization": 3.0},
        optimization={"sharding": shards and Sharding(shards, "average")},
    )
    decoder = replace(configuration.decoding.decoder, flags=("-sparse",))
    decoding = replace(configuration.decoding, decoder=decoder)
    result = tune(replace(configuration, decoding=decoding))
    with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
        last = read_result(store.iterations()[-1])
    assert result.selection == "average"
    assert result.weights.dense != last.weights.dense
    zeros, active = set(), set()
    for name, weight in last.weights.sparse.items():
        (active if weight else zeros).add(name)
    assert zeros
    assert {name for name, weight in result.weights.sparse.items() if weight} == active


def test_only_active_weights_change(toy: Toy) -> None:
    """Also where sparse features appear that were not named."""
    configuration = online(
        toy, learner="sgd", optimization={"active": ("LM0",)}, options={"rate": 1.0}, select="last"
    )
    decoder = replace(configuration.decoding.decoder, flags=("-sparse",))
    result = tune(replace(configuration, decoding=replace(configuration.decoding, decoder=decoder)))
    start = result.iterations[0].weights
    moved = [a != b for a, b in zip(result.weights.dense, start.dense, strict=True)]
    assert moved == [False, True, False, False, False, False]
    assert not any(result.weights.sparse.values())


def test_a_decoder_that_is_not_a_server_is_started_for_each_batch(toy: Toy, log: Log) -> None:
    tune(online(toy, "auto", epochs=1, online=OnlineSettings()), log)
    notes = "\n".join(note.text for note in log.of(Note))
    assert re.search(
        r"not run as a server \(.*\); .* batch, which takes \d.* for 10 sentences", notes
    )
    assert not list((toy.directory / "auto").glob("compared.*"))
    tune(online(toy, "process", epochs=1))
    auto, process = (toy.directory / name / "run1.weights.txt" for name in ("auto", "process"))
    assert auto.read_bytes() == process.read_bytes()


def test_text_that_no_request_can_hold_is_decoded_without_a_server(toy: Toy, log: Log) -> None:
    configuration = online(toy, "auto", epochs=1, online=OnlineSettings())
    lines = configuration.input.read_bytes().splitlines()
    configuration.input.write_bytes(b"\n".join([*lines[:-1], lines[-1] + b" \x01", b""]))
    tune(configuration, log)
    expected = f"sentence {len(lines) - 1} has the character U+0001"
    assert any(expected in note.text for note in log.of(Note))


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"learner": "mert"}, "mert learns from all lists at once"),
        ({"decoding": {"lattice_samples": 3}}, "--online excludes --lattice-samples: use one"),
        ({"decoding": {"transform": "bpe"}}, "--transform"),
        ({"optimization": {"window": 2}}, "--iterations-window"),
        ({"select": "best-dev"}, "--select best-dev"),
        ({"select": "best-heldout"}, "--heldout"),
    ],
)
def test_rejected(toy: Toy, more: dict[str, Any], why: str) -> None:
    if more.get("learner") == "mert":
        configuration = toy.configuration(online=OnlineSettings())
    else:
        configuration = online(toy, **more)
    with pytest.raises(UsageError, match=why):
        tune(configuration)


def test_start_from_a_former_run(toy: Toy) -> None:
    former = tune(online(toy, "former"))
    result = tune(online(toy, "next", epochs=1, start_from=toy.directory / "former"))
    start = np.array(former.weights.dense) / former.weights.norm
    assert result.iterations[0].weights.dense == pytest.approx(start)
    with pytest.raises(UsageError, match="no finished run"):
        tune(online(toy, "other", start_from=toy.directory / "none"))


def test_held_out_text_is_translated_every_so_many_batches(toy: Toy) -> None:
    held_out = HeldOutSet(toy.directory / "input", toy.directory / "reference", every=2)
    result = tune(online(toy, held_out=held_out))
    assert [[updates for updates, _ in i.heldout] for i in result.iterations] == [[0, 2, 3], [5, 6]]
    scores = [score for iteration in result.iterations for _, score in iteration.heldout]
    assert result.selection == "best-heldout"
    assert result.score == max(scores)


def test_held_out_text_changes_nothing_that_is_learned(toy: Toy) -> None:
    held_out = HeldOutSet(toy.directory / "input", toy.directory / "reference", every=1)
    alone = tune(online(toy, "alone", epochs=3))
    watched = tune(online(toy, "watched", epochs=3, held_out=held_out))
    assert len(alone.iterations) == len(watched.iterations) == 3
    for one, other in zip(alone.iterations, watched.iterations, strict=True):
        assert one.weights == other.weights
        assert one.optimum == other.optimum


def test_a_held_out_set_added_later_scores_earlier_weights(toy: Toy) -> None:
    tune(online(toy, options={"epochs": 1}))
    text = toy.directory / "input", toy.directory / "reference"
    more: dict[str, Any] = {"options": {"epochs": 2}, "held_out": HeldOutSet(*text, every=1)}

    interrupt(online(toy, **more, existing="continue"), 3)
    # A monitor that is new in an epoch that was interrupted scores the same weights.
    more["monitors"] = (Monitor("same", *text),)
    result = tune(online(toy, **more, existing="continue"))
    # Three batches were learned from before; their weights are judged, and those after the epoch.
    assert [[updates for updates, _ in i.heldout] for i in result.iterations] == [[], [3, 4, 5, 6]]
    assert result.iterations[1].monitors["same"] == result.iterations[1].heldout


def test_patience_ends_an_epoch(toy: Toy) -> None:
    """A learner that never learns gets no better: the first score and another are enough."""
    held_out = HeldOutSet(toy.directory / "input", toy.directory / "reference", every=1, patience=1)
    result = tune(
        online(toy, learner="sgd", options={"rate": 0.0, "regularization": 0.0}, held_out=held_out)
    )
    assert [updates for updates, _ in result.iterations[0].heldout] == [0, 1, 2]
    assert len(result.iterations) == 1
    assert result.reason == "the last translation of the held-out text was no better"
    assert result.iterations[0].sentences == 8


def test_numbering_follows_the_batches() -> None:
    numbering = FeatureNumbering(FeatureSpace((("LM0", 1),)), ["b"], FeatureSelection(("LM0", "a")))
    rows = SparseRows(
        np.array([0, 2, 3]), np.array([3, 1, 3], dtype=np.int32), np.array([1, 2, 3], np.float32)
    )
    batch = Batch(
        FeatureSpace((("LM0", 1),), ("x", "b", "y", "a")),
        np.array([0]),
        np.array([0, 2]),
        np.zeros((2, 1), np.float32),
        rows,
        np.zeros((2, 9), np.int32),
        np.array([1, 1], np.int32),
    )
    found = numbering.renumber(batch)
    assert found.space.sparse == ("b", "a")
    assert found.sparse is not None
    assert found.sparse.indices.tolist() == [1, 0, 1]
    assert numbering.active.tolist() == [True, False, True]
    again = numbering.renumber(replace(batch, sparse=None))
    assert again.sparse is not None
    assert again.sparse.indptr.tolist() == [0, 0, 0]


def test_shards_of_stored_lists(toy: Toy) -> None:
    """Between decodings, shards learn at once; the result does not depend on the workers."""
    optimization = {"algorithm": "oro", "options": {"epochs": 3, "batch": 2}}
    found = []
    for name, threads in (("one", 1), ("two", 2)):
        sharding = Sharding(shards=2)
        given = {**optimization, "sharding": sharding, "threads": threads}
        result = tune(toy.configuration(name, optimization=given, maximum_iterations=2))
        assert len(result.iterations[0].curve) == 3
        assert "rho" in result.iterations[0].curve[0]
        found.append(result.weights)
    assert found[0] == found[1]
    plain = tune(toy.configuration("plain", optimization=optimization, maximum_iterations=2))
    assert plain.weights != found[0]
