"""Test shards that decode: learning, mixing and resuming."""

from __future__ import annotations

import itertools
import json
import os
import re
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from formats.weights.files import read_sparse
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.errors import DataError, DecoderError, UsageError
from mosesplug.events import EpochLearned, EpochProgress, Event, Note
from mosesplug.metrics import metric
from mosesplug.optimizers.online.epochs import BatchProgress, Tally
from mosesplug.optimizers.online.learner import LearnerState
from mosesplug.optimizers.online.mixing import line_search
from mosesplug.optimizers.problem import Problem
from mosesplug.settings.online import HeldOutSet, Monitor, OnlineSettings
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.heldout import HeldOutScorer
from mosesplug.tuning.online.sharded import DecodedShard
from mosesplug.tuning.parallel.progress import ProgressFile, ShardProgress
from tests.tuning.online.interrupting import interrupt
from tests.waiting import gone, wait_until

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any
Files = Callable[[Path], dict[str, bytes]]

SCRATCH = re.compile(r"(shard\d+|heldout)\..+")


def shards(toy: Toy, name: str = "work", sharding: Sharding | None = None, **more: Any) -> Any:
    """A run on the toy system, on sparse features, with batches of 3 of 12 sentences."""
    options = {"epochs": 2, "batch": 3, **more.pop("options", {})}
    optimization = {
        "algorithm": more.pop("learner", "adagrad"),
        "options": options,
        "sharding": sharding or Sharding(shards=2),
        **more.pop("optimization", {}),
    }
    regime = {"online": OnlineSettings("process"), "maximum_iterations": 0, "minimum_change": 0.0}
    flags = more.pop("flags", "-sparse")
    return toy.configuration(name, flags=flags, optimization=optimization, **(regime | more))


def kept(directory: Path, left_by_run: Files) -> dict[str, Any]:
    """Files of a run, and what its learners remember, without what names the directory."""
    files: dict[str, Any] = {
        name: data for name, data in left_by_run(directory).items() if not SCRATCH.fullmatch(name)
    }
    with NBestStore.open(directory / "nbests.lmdb") as store:
        result = store.iterations()[-1].result
    assert result is not None
    for number, state in enumerate(result["learner"]["shards"]):
        files[f"updates {number}"] = state["updates"]
        files |= {f"{name} {number}": array.tobytes() for name, array in state["vectors"].items()}
    return files


def test_epochs_of_two_shards(toy: Toy, log: Log) -> None:
    result = tune(shards(toy), log)
    work = toy.directory / "work"
    assert result.reason == "all 2 epochs are done"
    assert [iteration.sentences for iteration in result.iterations] == [12, 12]
    assert result.iterations[0].hypotheses == 12 * 15
    summary = json.loads((work / "summary.json").read_text())
    points = [point for each in summary["iterations"] for point in each["curve"]]
    assert [point["updates"] for point in points] == [4, 8]
    assert {"score", "loss", "rho", "mixed", "norm", "active"} <= set(points[0])
    assert points[0]["score"] == summary["iterations"][0]["first_best_score"] > 0
    assert [event.batches for event in log.of(EpochProgress)] == [1, 2, 3, 4] * 2
    assert len(log.of(EpochLearned)) == 2
    assert {p.name for p in work.glob("shard.*/*")} == {"nbests.lmdb"}
    assert (work / "finished_step.txt").read_text().strip() == "2"


def test_sparse_features_are_joined_by_name(toy: Toy) -> None:
    """The mixed weight of a feature is the mean over shards; who never met it has 0."""
    result = tune(shards(toy, sharding=Sharding(6, mixing="average"), options={"epochs": 1}))
    work = toy.directory / "work"
    learned, names = [], set()
    with NBestStore.open(work / "nbests.lmdb") as store:
        (record,) = store.iterations()
        assert record.result is not None
        joined = record.result["learner"]["sparse"]
        assert record.result["learner"]["shards"][0]["vectors"]["weights"].tolist() == [
            *result.weights.dense,
            *(result.weights.sparse.get(name, 0.0) for name in joined),
        ]
    for number in range(1, 7):
        with NBestStore.open(work / f"shard.{number}" / "nbests.lmdb") as store:
            lists = store.iteration_set(1).tuning_set
            learned.append(set(lists.space.sparse))
            names |= learned[-1]
    assert sum(each < names for each in learned) > 1
    assert set(joined) == names
    assert len(joined) == len(names)
    assert learned[0] == set(joined[: len(learned[0])])
    assert read_sparse(work / "run2.sparse-weights") == result.weights.sparse


def test_the_mixed_weights_are_those_of_the_line_search(toy: Toy) -> None:
    """On all lists of the epoch at once, with their features."""
    more: dict[str, Any] = {"flags": "", "options": {"epochs": 1}}
    mean = tune(shards(toy, "mean", sharding=Sharding(2, mixing="average"), select="last", **more))
    result = tune(shards(toy, select="last", **more))
    sets = []
    for number in (1, 2):
        with NBestStore.open(toy.directory / "work" / f"shard.{number}" / "nbests.lmdb") as store:
            lists = store.iteration_set(1).tuning_set
            sets.append(lists.take_sentences(np.flatnonzero(np.diff(lists.offsets))))
    sizes = np.concatenate([np.diff(each.offsets) for each in sets])
    whole = replace(
        sets[0],
        sentence_ids=np.arange(len(sizes)),
        offsets=np.append(0, np.cumsum(sizes)),
        dense=np.concatenate([each.dense for each in sets]),
        stats=np.concatenate([each.stats for each in sets]),
        lengths=np.concatenate([each.lengths for each in sets]),
    )
    problem = Problem(whole, toy.configuration().metric)
    old = np.array(result.iterations[0].weights.dense)
    expected = line_search(problem, old, np.array(mean.weights.dense))
    (point,) = result.iterations[0].curve
    assert result.weights.dense == pytest.approx(tuple(expected.weights))
    assert point["rho"] == pytest.approx(expected.rho)
    assert point["mixed"] == pytest.approx(expected.score)


@pytest.mark.parametrize("learner", ["rda"])
def test_one_shard_is_learning_without_shards(toy: Toy, learner: str) -> None:
    more: dict[str, Any] = {"learner": learner, "select": "last"}
    one = tune(shards(toy, sharding=Sharding(1, mixing="average"), **more))
    plain = tune(shards(toy, "plain", optimization={"sharding": None}, **more))
    assert one.weights == plain.weights
    assert [i.optimum for i in one.iterations] == [i.optimum for i in plain.iterations]


def test_processes_leave_the_bytes_of_threads(toy: Toy, left_by_run: Files) -> None:
    more: dict[str, Any] = {"options": {"epochs": 1}}
    tune(shards(toy, "threads", **more))
    tune(shards(toy, "processes", sharding=Sharding(2, workers="processes"), **more))
    found = [kept(toy.directory / name, left_by_run) for name in ("threads", "processes")]
    assert found[0] == found[1]


def test_word_of_shards_in_other_processes(tmp_path: Path, log: Log) -> None:
    """The second shard is done only when the first one's word was heard; old words are not."""
    score = metric("BLEU")
    totals = np.arange(score.n_statistics, dtype=np.float64)
    state = LearnerState({"weights": np.zeros(1)})
    files = [tmp_path / "one", tmp_path / "two"]

    def tally(batches: int) -> Tally:
        return Tally(batches, batches * totals, {"loss": np.float32(0.5)})

    def tell(number: int, epoch: int, batches: int) -> None:
        ProgressFile(files[number])(BatchProgress(epoch, 0, 4, np.arange(2), state, tally(batches)))

    futures: list[Future[Any]] = [Future(), Future()]

    def heard(event: Event) -> None:
        log(event)
        if len(log.events) == 1:
            files[0].write_text('{"epoch"')
            for future in futures:
                future.set_result(SimpleNamespace(tally=tally(2)))

    progress = ShardProgress(heard, score, 3, files)
    tell(0, 3, 1)
    tell(1, 2, 2)
    progress.wait(futures)
    assert [event.batches for event in log.of(EpochProgress)] == [1, 2, 4]
    assert log.of(EpochProgress)[-1].score == float(score.score(4 * totals))


def test_stored_batches_are_not_decoded_again(
    toy: Toy, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the shard that was slower, nothing is; the other is done, and is not asked again."""
    decoded = []
    decode, numbers = ProcessDecoder.decode, itertools.count()

    def counted(decoder: ProcessDecoder, sentences: Any, weights: Any) -> Any:
        decoded.append(len(sentences))
        if next(numbers) == 3:
            raise DecoderError("out of memory")
        return decode(decoder, sentences, weights)

    monkeypatch.setattr(ProcessDecoder, "decode", counted)
    with pytest.raises(DecoderError, match="out of memory"):
        tune(shards(toy, options={"epochs": 1}))
    tune(shards(toy, options={"epochs": 1}, existing="continue"), log)
    assert decoded == [3] * 5
    assert any("3 of 6 sentences are decoded" in note.text for note in log.of(Note))


def test_an_interrupt_ends_decoders_at_once(toy: Toy) -> None:
    hang = 'case "$*" in *shard*.nbest*) touch pid.$$; sleep 600;; esac\nexec'
    toy.decoder.write_text(toy.decoder.read_text().replace("exec", hang))
    work = toy.directory / "work"

    def interrupt() -> None:
        wait_until(lambda: len(list(work.glob("pid.*"))) == 2)
        os.kill(os.getpid(), signal.SIGINT)

    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        threading.Thread(target=interrupt, daemon=True).start()
        with pytest.raises(KeyboardInterrupt):
            tune(shards(toy))
    finally:
        signal.signal(signal.SIGINT, handler)
    pids = [int(path.suffix[1:]) for path in work.glob("pid.*")]
    assert len(pids) == 2
    assert all(gone(pid) for pid in pids)


def test_an_epoch_with_other_settings_is_restarted(toy: Toy, log: Log) -> None:
    interrupt(shards(toy), 2)
    result = tune(shards(toy, options={"rate": 0.5}, existing="continue"), log)
    assert any("starts again" in note.text for note in log.of(Note))
    assert result.weights == tune(shards(toy, "anew", options={"rate": 0.5})).weights
    assert result.weights != tune(shards(toy, existing="overwrite")).weights
    with NBestStore.open(toy.directory / "work" / "shard.1" / "nbests.lmdb") as store:
        assert len(store.iterations()) == 2


def test_the_mode_of_learning_may_change_between_epochs(toy: Toy) -> None:
    """A resumed run keeps weights; other learner state belongs to its mode of learning."""
    tune(shards(toy, options={"epochs": 1}))
    more: dict[str, Any] = {"existing": "continue"}
    result = tune(shards(toy, optimization={"sharding": None}, **more))
    assert result.iterations[1].sentences == 12
    tune(shards(toy, options={"epochs": 3}, sharding=Sharding(3, mixing="weighted"), **more))
    last = Sharding(3, mixing="select", keep=2)
    result = tune(shards(toy, options={"epochs": 4}, sharding=last, select="last", **more))
    assert [each.curve[0]["updates"] for each in result.iterations] == [4, 4, 6, 12]
    assert sum(weight != 0 for weight in result.weights.sparse.values()) == 2


@pytest.mark.parametrize(
    ("sharding", "why"),
    [
        (Sharding(2, workers="processes", directory="/"), "--shard-directory"),
        (Sharding(13), "13 shards for 12 sentences"),
    ],
)
def test_rejected(toy: Toy, sharding: Sharding, why: str) -> None:
    with pytest.raises(UsageError, match=why):
        tune(shards(toy, sharding=sharding))
    assert not list(toy.directory.glob("work/*.lmdb"))


def test_a_worker_that_does_not_see_the_directory_is_one_clear_error(tmp_path: Path) -> None:
    names = [field.name for field in fields(DecodedShard)]
    given: dict[str, Any] = dict.fromkeys(names) | {"directory": tmp_path / "elsewhere/shard.1"}
    with (
        pytest.raises(DataError, match=r"elsewhere: a worker does not find"),
        DecodedShard(**given).open(),
    ):
        pass


def test_held_out_text_waits_for_the_mixing(toy: Toy) -> None:
    result = tune(shards(toy, held_out=held_out(toy)))
    assert [[updates for updates, _ in each.heldout] for each in result.iterations] == [[0, 4], [8]]
    assert result.selection == "best-heldout"
    with pytest.raises(UsageError, match="--heldout-every"):
        tune(shards(toy, "every", held_out=replace(held_out(toy), every=2)))


def test_a_held_out_set_added_later_scores_earlier_weights(toy: Toy) -> None:
    tune(shards(toy, options={"epochs": 1}))
    more: dict[str, Any] = {"options": {"epochs": 2}, "existing": "continue"}
    result = tune(shards(toy, held_out=held_out(toy), **more))
    assert [[updates for updates, _ in each.heldout] for each in result.iterations] == [[], [4, 8]]


def test_weights_before_an_epoch_are_those_scored_after_the_last(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These are the mean over the epochs, if that is the result."""
    scored: list[tuple[int, Any]] = []
    evaluate = HeldOutScorer.evaluate

    def record(self: HeldOutScorer, iteration: int, updates: int, weights: Any, *more: Any) -> Any:
        scored.append((updates, weights))
        return evaluate(self, iteration, updates, weights, *more)

    monkeypatch.setattr(HeldOutScorer, "evaluate", record)
    options = {"averaging": "all", "epochs": 3}
    tune(shards(toy, "whole", held_out=held_out(toy), options=options))
    whole = dict(scored)
    scored.clear()
    tune(shards(toy, options={**options, "epochs": 2}))
    more: dict[str, Any] = {"options": options, "existing": "continue"}
    tune(shards(toy, held_out=held_out(toy), **more))
    assert scored[0] == (8, whole[8])


def held_out(toy: Toy) -> HeldOutSet:
    return HeldOutSet(toy.directory / "input", toy.directory / "reference")


def test_killed_anywhere(toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """Inside an epoch, and between its end and its record; the end is the same, byte for byte."""
    text = held_out(toy)
    monitors = (Monitor("same", text.input, text.references),)
    configuration = shards(toy, "whole", held_out=text, monitors=monitors)
    result = tune(configuration)
    assert [i.monitors["same"] for i in result.iterations] == [i.heldout for i in result.iterations]
    whole = kept(toy.directory / "whole", left_by_run)

    def killed(*given: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    def kill(event: Event) -> None:
        if isinstance(event, EpochProgress) and (event.iteration, event.batches) in moments:
            raise KeyboardInterrupt

    for number, method in enumerate(["", "", "add_iteration", "record_result"]):
        moments = {(number + 1, 3)}
        work = toy.directory / f"killed{number}"
        with monkeypatch.context() as patch:
            if method:
                patch.setattr(NBestStore, method, killed)
            with pytest.raises(KeyboardInterrupt):
                tune(replace(configuration, working_directory=work), kill)
        tune(replace(configuration, working_directory=work, existing="continue"))
        assert kept(work, left_by_run) == whole, (number, method)
