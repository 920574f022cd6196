"""Asynchronous runs on the toy system: their files, their timing, and what they must learn."""

from __future__ import annotations

import itertools
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from mosesplug.decoders.batch import ModelWeights
from mosesplug.decoders.batch_process import ProcessDecoder
from mosesplug.features import FeatureSpace
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
from mosesplug.settings.online import OnlineSettings
from mosesplug.settings.sharding import AsyncOrder, Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning.online.numbering import FeatureNumbering
from tests.waiting import LIMIT

Toy = Any
Log = Any
Files = Callable[[Path], dict[str, bytes]]

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


def orders_in(directory: Path) -> list[list[tuple[int, int]]]:
    with NBestStore.open(directory / "nbests.lmdb") as store:
        return [
            [(int(place), int(version)) for place, version in record.record["order"]]
            for record in store.iterations()
        ]
