"""Search graphs in place of a decoder: rejected files, settings and stores."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from mosesplug.decoders.description import DecodedGraphs
from mosesplug.errors import DataError, StoreMismatch, UsageError
from mosesplug.settings.online import HeldOutSet, Monitor, OnlineSettings
from mosesplug.tuning import tune
from tests.tuning.forests import write_toy_graphs
from tests.tuning.graphs.forest_runs import configure_online, decode_by_graphs

Toy = Any
Log = Any


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ("text", DataError, "no search graph of sentence 12"),
        ("shorter", DataError, "search graph of sentence 11, but"),
        ("no weight", DataError, "moses.ini has no weight of LM0, which the search graphs in"),
        ("more weights", DataError, "has a weight of Extra0, and no search graph"),
        ("other width", DataError, "moses.ini has no weight of TranslationModel0_3"),
        ("no graphs", DataError, "there are no search graphs in"),
        ("broken", ValueError, "3.gz"),
    ],
)
def test_rejects_files(toy: Toy, change: str, error: type[Exception], message: str) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    ini, text = toy.directory / "moses.ini", toy.directory / "input"
    references = [toy.directory / f"reference{number}" for number in (0, 1)]
    if change == "text":
        for path in (text, *references):
            path.write_bytes(path.read_bytes() + b"ein hund\n")
    elif change == "shorter":
        for path in (text, *references):
            path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))
    elif change == "no weight":
        ini.write_text(ini.read_text().replace("LM0= 0.5\n", ""))
    elif change == "more weights":
        ini.write_text(ini.read_text() + "Extra0= 1\n")
    elif change == "other width":
        ini.write_text(ini.read_text().replace("0.2 0.2 0.2", "0.2 0.2"))
    elif change == "no graphs":
        for path in graphs.iterdir():
            path.unlink()
    else:
        (graphs / "3.gz").write_bytes(b"nothing")
    with pytest.raises(error, match=message):
        tune(decode_by_graphs(toy.configuration(), graphs))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoding": {"lattice_samples": 3}}, "excludes --lattice-samples"),
        ({"held_out": HeldOutSet(Path("input"), Path("reference"))}, "--heldout-decoder"),
        (
            {"monitors": (Monitor("new", Path("input"), Path("reference")),)},
            "name its own, --monitor new=input,reference,forest:DIR",
        ),
    ],
)
def test_rejects_settings(toy: Toy, change: dict[str, Any], message: str) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    plain = toy.configuration(**change)
    forest = decode_by_graphs(plain, graphs)
    with pytest.raises(UsageError, match=message):
        tune(forest)


def test_rejects_its_own_store_and_settings_of_servers(toy: Toy) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    live = configure_online(toy)
    work = live.working_directory
    for place in (work, work / "nbests.lmdb", work / "hypergraph"):
        with pytest.raises(UsageError, match="run in the working directory"):
            tune(decode_by_graphs(live, place, work.name))
    judged = HeldOutSet(live.input, live.references, decoder=DecodedGraphs(work / "hypergraph"))
    with pytest.raises(UsageError, match="run in the working directory"):
        tune(replace(live, held_out=judged))
    monitor = Monitor("new", live.input, live.references, judged.decoder)
    with pytest.raises(UsageError, match="run in the working directory"):
        tune(replace(live, monitors=(monitor,)))
    with pytest.raises(UsageError, match="--online-decoder"):
        tune(replace(decode_by_graphs(live, graphs), online=OnlineSettings("server")))


def test_a_store_of_another_text_or_without_graphs(toy: Toy) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    configuration = toy.configuration(maximum_iterations=1)
    tune(configuration)
    with pytest.raises(DataError, match="has no search graphs: make some"):
        tune(decode_by_graphs(configuration, configuration.working_directory))
    tune(decode_by_graphs(configuration, graphs, "first"))
    store = toy.directory / "first" / "forest.lmdb"
    tune(decode_by_graphs(configuration, store, "second"))
    ini = toy.directory / "moses.ini"
    ini.write_text(ini.read_text() + "Extra0= 1\n")
    with pytest.raises(DataError, match="has a weight of Extra0, and the search graphs"):
        tune(decode_by_graphs(configuration, store))
    ini.write_text(ini.read_text().replace("Extra0= 1\n", "").replace("LM0= 0.5\n", ""))
    with pytest.raises(DataError, match="has no weight of LM0"):
        tune(decode_by_graphs(configuration, store))
    ini.write_text(ini.read_text().replace("0.2 0.2 0.2", "0.2 0.2") + "LM0= 1\n")
    with pytest.raises(DataError, match="has 2 weights of TranslationModel0"):
        tune(decode_by_graphs(configuration, store))
    text = toy.directory / "input"
    text.write_bytes(text.read_bytes().replace(b"hund", b"katze"))
    with pytest.raises(StoreMismatch, match="made from another text"):
        tune(decode_by_graphs(configuration, store))


def test_changed_graphs_are_an_error(toy: Toy, log: Log) -> None:
    graphs = write_toy_graphs(toy.directory / "input", toy.directory / "graphs")
    configuration = decode_by_graphs(toy.configuration(maximum_iterations=1), graphs)
    tune(configuration)
    again = replace(configuration, existing="continue", maximum_iterations=2)
    tune(again, log)
    assert not any("other settings" in str(event) for event in log.events)
    (graphs / "7.gz").write_bytes((graphs / "8.gz").read_bytes())
    tune(replace(again, maximum_iterations=3), log)
    assert any("continuing with other settings than before: search" in str(e) for e in log.events)
