"""Test several decoders at once for one learner: staleness, order and resuming."""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.protocol import BatchRecipe, BatchTask
from mosesplug.errors import DecoderError, UsageError
from mosesplug.events import EpochLearned, EpochProgress, Event, HeldOutScored, Note
from mosesplug.features import FeatureSpace
from mosesplug.optimizers import algorithms
from mosesplug.optimizers.online.epochs import (
    Plan,
    make_step,
    split_into_batches,
)
from mosesplug.optimizers.online.learner import LearnerState, add_averaging, mean_weights
from mosesplug.optimizers.online.starting import copy_state
from mosesplug.optimizers.registry import algorithm
from mosesplug.optimizers.selection import FeatureSelection
from mosesplug.settings.algorithm_options import make_options
from mosesplug.settings.online import HeldOutSet, OnlineSettings
from mosesplug.settings.sharding import AsyncOrder, Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.online.numbering import FeatureNumbering
from mosesplug.tuning.online.workers import open_decoding_workers
from tests.tuning.bundled import write_bundled_decoder, write_demo_config, write_demo_sentences
from tests.waiting import LIMIT, gone, wait_until

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any
Files = Callable[[Path], dict[str, bytes]]

LEARNERS = sorted(each.name for each in algorithms().values() if each.learner is not None)
SCRATCH = re.compile(r"(batch|worker\d+|heldout)\..+")
BATCH, EPOCHS, SEED = 2, 2, 5


def stale(
    toy: Toy, name: str = "work", shards: int = 3, order: AsyncOrder = "fixed", **more: Any
) -> Any:
    """A run on the toy system, on sparse features, with batches of 2 of 12 sentences."""
    optimization = {
        "algorithm": more.pop("learner", "adagrad"),
        "options": {"epochs": EPOCHS, "batch": BATCH, **more.pop("options", {})},
        "sharding": Sharding(shards, asynchronous=True, async_order=order),
        **more.pop("optimization", {}),
    }
    regime = {"online": OnlineSettings("process"), "maximum_iterations": 0, "minimum_change": 0.0}
    return toy.configuration(name, flags="-sparse", optimization=optimization, **(regime | more))


def kept(directory: Path, left_by_run: Files) -> dict[str, Any]:
    """Files of a run, its lists, and what its learner remembers."""
    files: dict[str, Any] = {
        # A copy names files of the directory that it is a copy of.
        name: re.sub(rb"\S+/whole/", b"WORK/", data)
        for name, data in left_by_run(directory).items()
        if not SCRATCH.fullmatch(name)
    }
    with NBestStore.open(directory / "nbests.lmdb") as store:
        records = store.iterations()
        result = records[-1].result
        assert result is not None
        learner = result["learner"]
        files |= {"sparse": learner["sparse"], "updates": learner["updates"]}
        for group in ("vectors", "memory"):
            files |= {f"{group} {key}": a.tobytes() for key, a in learner[group].items()}
        for record in records:
            lists = store.iteration_set(record.iteration).tuning_set
            files[f"lists {record.iteration}"] = lists.dense.tobytes(), lists.stats.tobytes()
    return files


@contextmanager
def uneven(monkeypatch: pytest.MonkeyPatch, seed: int) -> Iterator[list[list[int]]]:
    """Let decoders take their time, the first batch the most; tells what was decoded."""
    chance = np.random.default_rng(seed)
    decode, late, numbers = ProcessDecoder.decode, threading.Event(), itertools.count()
    decoded: list[list[int]] = []

    def slow(decoder: ProcessDecoder, sentences: Any, weights: Any) -> Any:
        number = next(numbers)
        decoded.append([number for number, _ in sentences])
        if number == 0:
            assert late.wait(LIMIT)  # another one comes first
        time.sleep(float(chance.random()) * 0.05)
        lists = decode(decoder, sentences, weights)
        if number > 1:
            late.set()
        return lists

    with monkeypatch.context() as patch:
        patch.setattr(ProcessDecoder, "decode", slow)
        yield decoded


@pytest.mark.parametrize("learner", LEARNERS)
def test_every_learner_learns(toy: Toy, learner: str) -> None:
    result = tune(stale(toy, shards=2, learner=learner, options={"epochs": 1, "batch": 4}))
    assert np.isfinite(result.weights.dense).all()
    assert any(result.weights.dense)
    assert result.iterations[0].sentences == 12
    assert result.iterations[0].curve[0]["updates"] == 3


@pytest.mark.parametrize("order", ["fixed", "arrival"])
def test_one_worker_is_learning_without(toy: Toy, order: AsyncOrder, left_by_run: Files) -> None:
    tune(stale(toy, "one", 1, order))
    tune(stale(toy, "plain", optimization={"sharding": None}))
    one, plain = (kept(toy.directory / name, left_by_run) for name in ("one", "plain"))
    assert one == plain


def test_in_order_the_timing_changes_nothing(
    toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = []
    for seed in (1, 2):
        with uneven(monkeypatch, seed):
            tune(stale(toy, f"work{seed}"))
        found.append(kept(toy.directory / f"work{seed}", left_by_run))
    assert found[0] == found[1]


def by_hand(
    toy: Toy, directory: Path, orders: list[list[tuple[int, int]]]
) -> tuple[list[np.ndarray], dict[str, float], LearnerState]:
    """AdaGrad on the stored lists, each gradient at the weights that the order says.

    Args:
        toy: the system.
        directory: of the run.
        orders: of each epoch, place and version of the batches, as they are applied.

    Returns:
        The dense weights that each batch must have been decoded with, in order of application;
        the mean weights by name, and the state at the end.
    """
    row = algorithm("adagrad")
    assert row.learner is not None
    learner = add_averaging(row.learner(make_options(row, {"epochs": EPOCHS, "batch": BATCH})))
    metric = toy.configuration().metric
    with NBestStore.open(directory / "nbests.lmdb") as store:
        sets = [
            store.iteration_set(number).tuning_set
            for number in range(1, len(store.iterations()) + 1)
        ]
        first = store.iterations()[0].record
    numbering = FeatureNumbering(FeatureSpace(sets[0].space.groups), (), FeatureSelection())
    # Sums of statistics begin as one sentence: a stale change adds only what came after.
    state = replace(learner.init(np.array(first["dense"])), memory=learner.initial_memory(metric))
    seen: list[np.ndarray] = []
    for epoch, (lists, order) in enumerate(zip(sets, orders, strict=True), start=1):
        plan = Plan(SEED, BATCH, metric, np.ones(6, dtype=np.bool_))
        batches = split_into_batches(np.arange(12), plan, epoch)
        past = [copy_state(state)]
        for number, (place, version) in enumerate(order):
            batch = numbering.renumber(lists.take_sentences(batches[place]))
            wide = len(batch.space)

            def grown(state: LearnerState, wide: int = wide) -> LearnerState:
                return LearnerState(
                    {
                        name: np.append(vector, np.full(wide - len(vector), learner.fills[name]))
                        for name, vector in state.vectors.items()
                    },
                    state.memory,
                    state.updates,
                )

            seen.append(past[version].vectors["weights"][:6])
            look = make_step(plan, epoch, place, len(batches), wide)
            change = learner.change(grown(past[version]), batch, look)
            if version < number:  # statistics of earlier output are sums
                memory = {
                    name: state.memory[name] + (after - past[version].memory[name])
                    for name, after in change.memory.items()
                }
                change = replace(change, memory=memory)
            step = make_step(plan, epoch, number, len(batches), wide)
            state = learner.apply(grown(copy_state(state)), change, step)
            past.append(copy_state(state))
    names = (*numbering.space.names, *numbering.space.sparse)[: len(numbering.space)]
    return seen, dict(zip(names, mean_weights(learner, state), strict=True)), state


def decoded_with(monkeypatch: pytest.MonkeyPatch) -> dict[tuple[int, ...], list[list[float]]]:
    """The dense weights that the sentences of each batch are decoded with from now on."""
    decode = ProcessDecoder.decode
    found: dict[tuple[int, ...], list[list[float]]] = {}

    def noted(decoder: ProcessDecoder, sentences: Any, weights: ModelWeights) -> Any:
        values = [value for group in weights.groups for value in group.values if value is not None]
        found.setdefault(tuple(number for number, _ in sentences), []).append(values)
        return decode(decoder, sentences, weights)

    monkeypatch.setattr(ProcessDecoder, "decode", noted)
    return found


def test_gradients_are_those_of_the_weights_that_lists_were_decoded_with(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In order, batch t has the weights after update t - S, in decoding and in learning."""
    found = decoded_with(monkeypatch)
    result = tune(stale(toy))
    order = [(place, max(0, place - 2)) for place in range(6)]
    seen, mean, state = by_hand(toy, toy.directory / "work", [order] * EPOCHS)
    plan = Plan(SEED, BATCH, toy.configuration().metric, np.ones(6, dtype=np.bool_))
    expected: dict[tuple[int, ...], list[list[float]]] = {}
    batches = [split_into_batches(np.arange(12), plan, epoch) for epoch in (1, 2)]
    for weights, sentences in zip(seen, [*batches[0], *batches[1]], strict=True):
        expected.setdefault(tuple(sentences.tolist()), []).append(weights.tolist())
    assert found == expected
    weights = dict(zip(result.names, result.weights.dense, strict=True)) | result.weights.sparse
    assert weights == {name: value for name, value in mean.items() if name in weights}
    assert len(result.weights.sparse) > 5
    assert state.updates == 12


def orders_in(directory: Path) -> list[list[tuple[int, int]]]:
    with NBestStore.open(directory / "nbests.lmdb") as store:
        return [
            [(int(place), int(version)) for place, version in record.record["order"]]
            for record in store.iterations()
        ]


def test_by_arrival_the_order_is_kept_with_the_lists(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed or not: what is recorded is what was done, and leads to the same weights."""
    found = decoded_with(monkeypatch)

    def kill(event: Event) -> None:
        if isinstance(event, EpochProgress) and (event.iteration, event.batches) == (2, 4):
            raise KeyboardInterrupt

    with uneven(monkeypatch, 3) as decoded:
        with pytest.raises(KeyboardInterrupt):
            tune(stale(toy, order="arrival"), kill)
        with NBestStore.open(toy.directory / "work" / "nbests.lmdb") as store:
            opened = store.open_iteration()
            assert opened is not None
            before = [tuple(pair) for pair in opened.progress["order"].tolist()]
        decoded.clear()
        result = tune(stale(toy, order="arrival", existing="continue"))
    assert len(before) == 4
    assert len(decoded) == 2
    orders = orders_in(toy.directory / "work")
    assert orders[1][:4] == before
    assert [sorted(place for place, _ in order) for order in orders] == [list(range(6))] * 2
    assert all(version <= place for order in orders for place, (_, version) in enumerate(order))
    assert any(place != number for order in orders for number, (place, _) in enumerate(order))
    seen, mean, _ = by_hand(toy, toy.directory / "work", orders)
    weights = dict(zip(result.names, result.weights.dense, strict=True)) | result.weights.sparse
    assert weights == {name: value for name, value in mean.items() if name in weights}
    used = [vector for vectors in found.values() for vector in vectors]
    assert all(vector.tolist() in used for vector in seen)


def test_killed_at_any_moment(toy: Toy, left_by_run: Files) -> None:
    """Inside an epoch, too; in the fixed order the end is the same, byte for byte."""
    held_out = HeldOutSet(toy.directory / "input", toy.directory / "reference", every=2)
    whole = toy.directory / "whole"
    moments: list[str] = []

    def at_event(event: Event) -> None:
        if isinstance(event, (HeldOutScored, EpochProgress, EpochLearned)):
            # Workers write and remove their scratch files meanwhile.
            scratch = shutil.ignore_patterns("worker*")
            shutil.copytree(whole, toy.directory / f"killed{len(moments)}", ignore=scratch)
            moments.append(str(event))

    tune(stale(toy, "whole", held_out=held_out), at_event)
    expected = kept(whole, left_by_run)
    assert len(moments) > 15
    for number in range(1, len(moments), 7):
        name = f"killed{number}"
        tune(stale(toy, name, held_out=held_out, existing="continue"))
        assert kept(toy.directory / name, left_by_run) == expected, moments[number]


@pytest.mark.parametrize("order", ["fixed", "arrival"])
def test_killed_between_the_end_of_an_epoch_and_its_result(
    toy: Toy, left_by_run: Files, monkeypatch: pytest.MonkeyPatch, order: AsyncOrder
) -> None:
    """No list is decoded again, and learning follows the recorded order."""

    def killed(store: NBestStore, iteration: int, result: Any) -> None:
        raise KeyboardInterrupt

    work = toy.directory / "killed"
    options = {"options": {"epochs": 1}}
    with uneven(monkeypatch, 4) as decoded:
        with monkeypatch.context() as patch:
            patch.setattr(NBestStore, "record_result", killed)
            with pytest.raises(KeyboardInterrupt):
                tune(stale(toy, "killed", order=order, **options))
        shutil.copytree(work, toy.directory / "again")
        assert len(decoded) == 6
        tune(stale(toy, "killed", order=order, existing="continue", **options))
        result = tune(stale(toy, "again", order=order, existing="continue", **options))
        assert len(decoded) == 6
    _, mean, _ = by_hand(toy, work, orders_in(work))
    weights = dict(zip(result.names, result.weights.dense, strict=True)) | result.weights.sparse
    assert weights == {name: value for name, value in mean.items() if name in weights}


def test_lists_of_a_finished_epoch_are_learned_from_with_other_settings(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other mini-batches have no recorded order."""

    def killed(store: NBestStore, iteration: int, result: Any) -> None:
        raise KeyboardInterrupt

    with uneven(monkeypatch, 4) as decoded:
        with monkeypatch.context() as patch:
            patch.setattr(NBestStore, "record_result", killed)
            with pytest.raises(KeyboardInterrupt):
                tune(stale(toy, order="arrival", options={"epochs": 1}))
        larger = {"epochs": 1, "batch": 2 * BATCH}
        result = tune(stale(toy, order="arrival", options=larger, existing="continue"))
        assert len(decoded) == 6
    assert [each.curve[0]["updates"] for each in result.iterations] == [3]


def test_patience_ends_an_epoch_deterministically(toy: Toy, left_by_run: Files) -> None:
    """What others were decoding then is not kept."""
    held_out = HeldOutSet(toy.directory / "input", toy.directory / "reference", every=1, patience=1)
    more: dict[str, Any] = {"learner": "sgd", "options": {"rate": 0.0, "regularization": 0.0}}
    found = []
    for name in ("one", "two"):
        result = tune(stale(toy, name, held_out=held_out, **more))
        assert [updates for updates, _ in result.iterations[0].heldout] == [0, 1, 2]
        assert result.iterations[0].sentences == 2 * BATCH
        found.append(kept(toy.directory / name, left_by_run))
    assert found[0] == found[1]


@pytest.mark.usefixtures("forked_workers")
def test_processes_leave_the_bytes_of_threads(toy: Toy, left_by_run: Files) -> None:
    more: dict[str, Any] = {"options": {"epochs": 1}}
    tune(stale(toy, "threads", **more))
    elsewhere = Sharding(3, asynchronous=True, async_order="fixed", workers="processes")
    tune(stale(toy, "processes", optimization={"sharding": elsewhere}, **more))
    found = [kept(toy.directory / name, left_by_run) for name in ("threads", "processes")]
    assert found[0] == found[1]


def test_a_run_continues_after_a_decoder_failure(
    toy: Toy, log: Log, left_by_run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, calls = ProcessDecoder.decode, []
    numbers, all_begun = itertools.count(), threading.Barrier(3, timeout=LIMIT)

    def failing(decoder: ProcessDecoder, sentences: Any, weights: Any) -> Any:
        number = next(numbers)
        calls.append(decoder.prefix)
        if number < 3:
            all_begun.wait()
        if number == 3:
            raise DecoderError("out of memory")
        return decode(decoder, sentences, weights)

    with monkeypatch.context() as patch:
        patch.setattr(ProcessDecoder, "decode", failing)
        with pytest.raises(DecoderError, match="out of memory"):
            tune(stale(toy))
    assert {"worker1", "worker2", "worker3"} == set(calls)
    tune(stale(toy, existing="continue"), log)
    assert any("resuming epoch 1" in note.text for note in log.of(Note))
    tune(stale(toy, "whole"))
    found = [kept(toy.directory / name, left_by_run) for name in ("work", "whole")]
    assert found[0] == found[1]


def test_the_mode_of_learning_may_change_between_epochs(toy: Toy) -> None:
    """The learner keeps its whole state, as without workers."""
    tune(stale(toy, options={"epochs": 1}))
    plain: dict[str, Any] = {"sharding": None}
    tune(stale(toy, options={"epochs": 2}, optimization=plain, existing="continue"))
    more = {"options": {"epochs": 3}, "existing": "continue"}
    result = tune(stale(toy, shards=2, order="arrival", **more))
    assert [each.curve[0]["updates"] for each in result.iterations] == [6, 12, 18]


def test_an_epoch_with_other_workers_is_restarted(toy: Toy, log: Log) -> None:
    def kill(event: Event) -> None:
        if isinstance(event, EpochProgress) and event.batches == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(stale(toy), kill)
    result = tune(stale(toy, shards=2, existing="continue"), log)
    assert any("starts again" in note.text for note in log.of(Note))
    assert result.weights == tune(stale(toy, "anew", 2)).weights


@pytest.mark.parametrize(
    ("shards", "word"), [(1, "as without it"), (2, ""), (6, "all 6 mini-batches")]
)
def test_weights_that_are_never_stale_or_never_fresh_are_reported(
    toy: Toy, log: Log, shards: int, word: str
) -> None:
    tune(stale(toy, shards=shards, options={"epochs": 1}), log)
    assert [word in note.text for note in log.of(Note)] == ([True] if word else [])


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"workers": "processes"}, "--online-decoder process"),
        ({"scheduler": "tcp://127.0.0.1:1"}, "--online-decoder process"),
        ({"workers": "processes", "directory": "/"}, "--shard-directory"),
    ],
)
def test_rejected(toy: Toy, more: dict[str, Any], why: str) -> None:
    sharding = Sharding(2, asynchronous=True, **more)
    with pytest.raises(UsageError, match=why):
        tune(stale(toy, online=OnlineSettings(), optimization={"sharding": sharding}))
    assert not (toy.directory / "work" / "nbests.lmdb").exists()


def test_servers_may_die_and_runs_be_interrupted(
    toy: Toy, tmp_path: Path, log: Log, left_by_run: Files
) -> None:
    """With the bundled decoder's server: the bytes are those of an undisturbed run."""
    decoder = write_bundled_decoder(tmp_path / "bundled")
    write_demo_sentences(tmp_path, 10)
    config = write_demo_config(tmp_path)

    def configuration(name: str, **more: Any) -> Any:
        run = stale(toy, name, 2, options={"epochs": 1}, online=OnlineSettings("server"), **more)
        decoding = replace(run.decoding, decoder=MosesDecoder(decoder, ("-stack", "10")), nbest=10)
        files = {"input": tmp_path / "tarvian", "references": tmp_path / "english"}
        return replace(run, config=config, decoding=decoding, **files)

    def disturb(event: Event) -> None:
        log(event)
        if isinstance(event, EpochProgress) and event.batches == 2:
            for number in servers(toy.directory / "work"):
                os.kill(number, signal.SIGKILL)
        if isinstance(event, EpochProgress) and event.batches == 4:
            raise KeyboardInterrupt

    tune(configuration("whole"))
    with pytest.raises(KeyboardInterrupt):
        tune(configuration("work"), disturb)
    assert all(gone(number) for number in servers(toy.directory / "work"))
    assert any("is started again" in note.text for note in log.of(Note))
    tune(configuration("work", existing="continue"))
    found = [kept(toy.directory / name, left_by_run) for name in ("work", "whole")]
    assert found[0] == found[1]


def servers(directory: Path) -> list[int]:
    """Process numbers of the servers that run in a directory."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            command = (process / "cmdline").read_bytes()
            if (process / "cwd").readlink() == directory and b"--server-port" in command:
                found.append(int(process.name))
    return sorted(found)


def test_decoding_is_abandoned_when_the_block_ends(tmp_path: Path) -> None:
    """Also by what a decoder has started itself."""
    decoder = tmp_path / "decoder"
    decoder.write_text(
        f"#!{sys.executable}\nimport os, pathlib, time\n"
        "pathlib.Path('pid.%d' % os.getpid()).touch()\ntime.sleep(600)\n"
    )
    decoder.chmod(0o755)
    (tmp_path / "moses.ini").write_text("[weight]\nLM0= 1\n")
    recipe = BatchRecipe(
        MosesDecoder(decoder).open_batches, BatchTask(tmp_path / "moses.ini", tmp_path, 5)
    )
    notes: list[Event] = []
    threads = set(threading.enumerate())
    futures: list[Future[Any]] = []

    def interrupted() -> None:
        with open_decoding_workers(recipe, Sharding(2, asynchronous=True), notes.append) as workers:
            futures.extend(workers.submit([(n, b"text")], ModelWeights(())) for n in range(2))
            wait_until(lambda: len(list(tmp_path.glob("pid.*"))) == 2)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert all(future.done() and future.exception() for future in futures)
    assert threads.issuperset(threading.enumerate())
    assert all(gone(int(path.suffix[1:])) for path in tmp_path.glob("pid.*"))
