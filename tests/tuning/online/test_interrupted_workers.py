"""Test that asynchronous runs resume after kills, and stop what they started."""

from __future__ import annotations

import itertools
import os
import shutil
import signal
import sys
import threading
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.protocol import BatchRecipe, BatchTask
from mosesplug.errors import DecoderError
from mosesplug.events import EpochLearned, EpochProgress, Event, HeldOutScored, Note
from mosesplug.settings.online import HeldOutSet, OnlineSettings
from mosesplug.settings.sharding import AsyncOrder, Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import tune
from mosesplug.tuning.online.workers import open_decoding_workers
from tests.tuning.bundled import write_bundled_decoder, write_demo_config, write_demo_sentences
from tests.tuning.online.interrupting import interrupt
from tests.tuning.online.stale_runs import (
    BATCH,
    Files,
    Log,
    Toy,
    by_hand,
    kept,
    orders_in,
    stale,
    uneven,
)
from tests.waiting import LIMIT, gone, wait_until

pytestmark = pytest.mark.usefixtures("decoder_in_process")


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


def test_a_run_continues_after_a_decoder_failure(
    toy: Toy, log: Log, left_by_run: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    decode, calls = ProcessDecoder.decode, []
    numbers, all_begun = itertools.count(), threading.Barrier(3, timeout=LIMIT)

    def failing(decoder: ProcessDecoder, sentences: Any, weights: Any) -> Any:
        number = next(numbers)
        calls.append(decoder.task.prefix)
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


def test_an_epoch_with_other_workers_is_restarted(toy: Toy, log: Log) -> None:
    interrupt(stale(toy), 2)
    result = tune(stale(toy, shards=2, existing="continue"), log)
    assert any("starts again" in note.text for note in log.of(Note))
    assert result.weights == tune(stale(toy, "anew", 2)).weights


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
