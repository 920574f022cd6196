"""Runs that decode now and then, and take lists out of their own search graphs in between."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.nbest.files import read_nbest
from mosesplug.decoders.description import MosesDecoder
from mosesplug.errors import UsageError
from mosesplug.events import CommandStarted, EpochProgress
from mosesplug.settings.decoding import GraphSettings
from mosesplug.settings.online import OnlineSettings
from mosesplug.settings.sharding import Sharding
from mosesplug.store import NBestStore
from mosesplug.tuning import Configuration, tune
from tests.tuning.forests import graph_decoder, nodes_of, read_lines

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Log = Any


def run(toy: Toy, name: str, every: int, **more: Any) -> Configuration:
    """A run with search graphs, of which all edges are kept."""
    decoder = MosesDecoder(graph_decoder(toy.directory / "graph-decoder"))
    decoding = {"decoder": decoder, "graphs": GraphSettings(edges=0, every=every), "nbest": 12}
    optimization = {"algorithm": "kbmira", "options": {"epochs": 5}, **more.pop("optimization", {})}
    settings = {"maximum_iterations": 5, "minimum_change": 0.0, **more}
    return toy.configuration(name, decoding=decoding, optimization=optimization, **settings)


def online(toy: Toy, name: str, every: int, **more: Any) -> Configuration:
    """An online run of four epochs, in batches of 4 sentences."""
    optimization = {"algorithm": "adagrad", "options": {"epochs": 4, "batch": 4}, "threads": 2}
    optimization |= more.pop("optimization", {})
    settings = {"online": OnlineSettings(), "maximum_iterations": 0, **more}
    return run(toy, name, every, optimization=optimization, **settings)


def decoded(log: Log) -> int:
    """How often the decoder made graphs."""
    commands = [event.command for event in log.of(CommandStarted)]
    return sum("-output-search-graph-hypergraph" in command for command in commands)


def graphs_of(toy: Toy, name: str) -> list[int]:
    """How many graphs each iteration has."""
    with NBestStore.open(toy.directory / name / "nbests.lmdb") as store:
        return [record.n_graphs for record in store.iterations()]


def test_iterations_in_between_use_the_graphs(toy: Toy, log: Log) -> None:
    tune(run(toy, "work", 3), log)
    assert decoded(log) == 2
    assert graphs_of(toy, "work") == [12, 0, 0, 12, 0]
    # Before the fourth iteration, all graphs are those of the first.
    lines = read_lines(toy.directory / "input")
    lists = [read_nbest(toy.directory / "work" / f"run{n}.best12.out.gz") for n in range(1, 6)]
    for number in range(len(lines)):
        texts = [
            [found.text(row) for row in np.flatnonzero(found.sentence_ids == number)]
            for found in lists
        ]
        every = [b" ".join(map(bytes, e.target[1:])) for e in nodes_of(lines[number].decode())[1]]
        assert len({*texts[0], *texts[1], *texts[2]}) <= 20
        assert all(text in every for found in texts for text in found)
    changed = [[found.text(row) for row in range(len(found))] for found in lists]
    assert changed[0] != changed[1]
    # Each list is in the order of the weights that it was taken with.
    for number, found in enumerate(lists, start=1):
        out = (toy.directory / "work" / f"run{number}.out").read_bytes().splitlines()
        firsts = np.flatnonzero(np.diff(found.sentence_ids, prepend=-1))
        assert [found.text(row) for row in firsts] == [line.strip() for line in out]


def test_weights_that_stand_still_are_decoded_with(toy: Toy, log: Log) -> None:
    """The run ends when they stand still after a decoding, not on graphs of an earlier one."""
    mert = {"algorithm": "mert", "options": {"restarts": 0, "polish": 0}}
    settings = {"maximum_iterations": 9, "minimum_change": 1e-5, "select": "best-dev"}
    found = tune(run(toy, "work", 9, optimization=mert, **settings), log)
    made = graphs_of(toy, "work")
    assert "no weight changed" in found.reason
    assert made[0] == made[-1] == 12
    assert 0 in made
    assert made[found.chosen_iteration - 1]
    changes = [result.largest_change for result in found.iterations]
    assert [place + 1 for place, n in enumerate(made) if n and place] == [
        place + 2 for place, change in enumerate(changes[:-1]) if change < 1e-5
    ]


def test_every_iteration_is_a_run_with_graphs(
    toy: Toy, log: Log, left_by_run: Callable[[Path], dict[str, bytes]]
) -> None:
    plain = run(toy, "plain", 1, maximum_iterations=2)
    decoding = replace(plain.decoding, graphs=GraphSettings(edges=0))
    tune(replace(plain, decoding=decoding))
    tune(replace(plain, working_directory=toy.directory / "every"), log)
    assert decoded(log) == 2
    one, other = (left_by_run(toy.directory / name) for name in ("plain", "every"))
    assert one == other


class Killed(BaseException):
    """An unexpected exception."""


@pytest.mark.parametrize("regime", ["batch", "online", "shards"])
def test_an_interrupted_run_ends_with_the_same_bytes(
    toy: Toy, regime: str, left_by_run: Callable[[Path], dict[str, bytes]]
) -> None:
    def configuration(name: str) -> Configuration:
        if regime == "batch":
            return run(toy, name, 2, maximum_iterations=3)
        sharding = {"sharding": Sharding(2, "average")} if regime == "shards" else {}
        return online(toy, name, 2, optimization=sharding)

    tune(configuration("whole"))
    parts = configuration("parts")
    for cut in (6, 14, 23):
        left = iter(range(cut))

        def watch(event: object, left: Iterator[int] = left) -> None:
            if next(left, None) is None:
                raise Killed

        with contextlib.suppress(Killed):
            tune(parts, watch)
        parts = replace(parts, existing="continue")
    tune(parts)
    whole, found = (left_by_run(toy.directory / name) for name in ("whole", "parts"))
    assert found.keys() == whole.keys()
    assert [name for name in whole if found[name] != whole[name]] == []
    assert graphs_of(toy, "whole") == graphs_of(toy, "parts")


def test_online_epochs_learn_from_graphs(toy: Toy, log: Log) -> None:
    result = tune(online(toy, "work", 2), log)
    assert decoded(log) == 2
    assert graphs_of(toy, "work") == [12, 0, 12, 0]
    assert [iteration.hypotheses for iteration in result.iterations] == [12 * 12] * 4


@pytest.mark.usefixtures("forked_workers")
def test_shards_learn_from_graphs(toy: Toy, log: Log) -> None:
    found = []
    for workers in ("threads", "processes"):
        sharding = Sharding(2, "average", workers=workers)
        configuration = online(toy, workers, 2, optimization={"sharding": sharding})
        found.append(tune(replace(configuration, maximum_iterations=3), log))
        assert graphs_of(toy, workers) == [12, 0, 12]
    assert decoded(log) == 4
    assert found[0].weights == found[1].weights
    assert [iteration.hypotheses for iteration in found[0].iterations] == [12 * 12] * 3


def test_other_settings_restart_an_epoch(toy: Toy, log: Log) -> None:
    configuration = online(toy, "work", 9)

    def watch(event: object) -> None:
        if isinstance(event, EpochProgress):
            raise Killed

    with contextlib.suppress(Killed):
        tune(configuration, watch)
    with NBestStore.open(configuration.working_directory / "nbests.lmdb") as store:
        assert store.open_iteration() is not None
    options = {**configuration.optimization.options, "batch": 6}
    other = replace(
        configuration,
        optimization=replace(configuration.optimization, options=options),
        existing="continue",
        maximum_iterations=1,
    )
    tune(other, log)
    assert decoded(log) == 1
    assert any("starts again" in str(event) for event in log.events)
    assert graphs_of(toy, "work") == [12]


def test_rejected(toy: Toy) -> None:
    configuration = online(toy, "work", 2)
    optimization = replace(configuration.optimization, sharding=Sharding(2, asynchronous=True))
    with pytest.raises(UsageError, match="--async"):
        tune(replace(configuration, optimization=optimization))
    with pytest.raises(UsageError, match="--online-decoder"):
        tune(replace(configuration, online=OnlineSettings("server")))
