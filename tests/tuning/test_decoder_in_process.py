"""Decoders that tests call as functions leave what they leave as programs."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.moses import parse_flags
from mosesplug.events import DecodingProgress
from mosesplug.settings.decoding import GraphSettings
from mosesplug.settings.online import OnlineSettings
from mosesplug.tuning import tune
from tests.tuning.bundled import write_bundled_decoder, write_demo_config, write_demo_sentences
from tests.tuning.forests import graph_decoder


def of_toy(toy: Any, name: str) -> Any:
    optimization = {"algorithm": "kbmira", "options": {"epochs": 2}}
    return toy.configuration(name, flags="-sparse", optimization=optimization, maximum_iterations=2)


def of_toy_online(toy: Any, name: str) -> Any:
    optimization = {"algorithm": "adagrad", "options": {"epochs": 1, "batch": 5}}
    settings = {"online": OnlineSettings("process"), "maximum_iterations": 0}
    return toy.configuration(name, flags="-sparse", optimization=optimization, **settings)


def of_graphs(toy: Any, name: str) -> Any:
    decoder = MosesDecoder(graph_decoder(toy.directory / "graph-decoder"))
    decoding = {"decoder": decoder, "graphs": GraphSettings(edges=0)}
    optimization = {"algorithm": "kbmira", "options": {"epochs": 1}}
    return toy.configuration(
        name, decoding=decoding, optimization=optimization, maximum_iterations=2
    )


def of_bundled(toy: Any, name: str) -> Any:
    decoder = toy.directory / "bundled"
    if not decoder.exists():
        write_bundled_decoder(decoder)
        write_demo_sentences(toy.directory, 4)
        write_demo_config(toy.directory)
    return toy.configuration(
        name,
        decoding={"decoder": MosesDecoder(decoder, parse_flags("-stack 10 -v 0"))},
        input=toy.directory / "tarvian",
        references=toy.directory / "english",
        config=toy.directory / "demo.ini",
        maximum_iterations=2,
    )


@pytest.mark.parametrize("configure", [of_toy, of_toy_online, of_graphs, of_bundled])
def test_functions_leave_the_files_of_programs(
    toy: Any,
    log: Any,
    configure: Callable[[Any, str], Any],
    left_by_run: Callable[[Path], dict[str, bytes]],
    request: pytest.FixtureRequest,
) -> None:
    tune(configure(toy, "programs"), log)
    expected = log.of(DecodingProgress)[-1:]
    log.events.clear()
    request.getfixturevalue("decoder_in_process")
    tune(configure(toy, "functions"), log)
    programs, functions = (
        {
            name: re.sub(rb"\[[0-9.]+ s\]", b"", data)
            for name, data in left_by_run(toy.directory / work).items()
            if not name.endswith(".mdb")
        }
        for work in ("programs", "functions")
    )
    assert functions == programs
    found = log.of(DecodingProgress)[-1:]
    assert [(e.iteration, e.sentences) for e in found] == [
        (e.iteration, e.sentences) for e in expected
    ]
