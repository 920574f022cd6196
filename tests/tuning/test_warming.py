"""Kernels that are compiled while the decoder runs."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mosesplug.decoders.description import MosesDecoder
from mosesplug.decoders.program import ProgramDecoder
from mosesplug.extras.warm_up import warm_up
from mosesplug.forest import scanner
from mosesplug.metrics.plain import kernels_only
from mosesplug.settings.decoding import GraphSettings
from mosesplug.settings.online import OnlineSettings
from mosesplug.tuning import Configuration, tune, warming
from tests.kernel_sets import forget_kernels, loaded_kernels
from tests.tuning.forests import graph_decoder
from tests.waiting import LIMIT

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Toy = Any
Files = Callable[[Path], dict[str, bytes]]


class _Now:
    """A thread that does its work when it is started."""

    def __init__(self, target: Callable[..., None], args: tuple[Any, ...], name: str) -> None:
        self._run = lambda: target(*args)
        self.events = [arg for arg in args if isinstance(arg, threading.Event)]

    def start(self) -> None:
        self._run()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    """Compile before decoding, and log what goes wrong."""
    monkeypatch.setattr(warming, "_PATIENCE", 0.0)
    monkeypatch.setattr(warming, "_prepared", set())
    threads = SimpleNamespace(Thread=_Now, Event=threading.Event)
    monkeypatch.setattr(warming, "threading", threads)
    caplog.set_level(logging.DEBUG, logger=warming.__name__)


OPTIONS = {"mert": {"restarts": 1}, "kbmira": {"epochs": 3}}
LISTS: dict[str, Any] = {"maximum_iterations": 2}
FOREST: dict[str, Any] = {"maximum_iterations": 2, "decoding": {"graphs": GraphSettings()}}
ONLINE: dict[str, Any] = {"maximum_iterations": 2, "online": OnlineSettings("process")}


def _configuration(toy: Toy, name: str, algorithm: str, settings: dict[str, Any]) -> Configuration:
    optimization = {"algorithm": algorithm, "options": OPTIONS.get(algorithm, {})}
    made = toy.configuration(name, optimization=optimization, **settings)
    if made.decoding.graphs is None:
        return made  # type: ignore[no-any-return]
    decoder = MosesDecoder(graph_decoder(toy.directory / "graph-decoder"))
    return replace(made, decoding=replace(made.decoding, decoder=decoder))


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize(
    ("algorithm", "settings"),
    [
        ("mert", LISTS),
        ("kbmira", LISTS),
        ("adagrad", LISTS),
        ("mert", FOREST),
        ("kbmira", FOREST),
        ("mira", ONLINE),
        ("mira", FOREST | {"online": OnlineSettings()}),
    ],
)
def test_nothing_is_left_to_compile_and_nothing_changes(
    toy: Toy,
    left_by_run: Files,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    algorithm: str,
    settings: dict[str, Any],
) -> None:
    ahead: set[tuple[str, str, str]] = set()
    tune_invented = warming.tune_invented_sentences

    def tune_and_look(*arguments: Any) -> None:
        tune_invented(*arguments)
        ahead.update(loaded_kernels())
        monkeypatch.setattr(scanner, "_LEAST_BYTES", 0)  # as for large graphs

    monkeypatch.setattr(warming, "tune_invented_sentences", tune_and_look)
    forget_kernels(monkeypatch)
    tune(_configuration(toy, "ahead", algorithm, settings))
    assert caplog.messages == []
    assert ahead
    assert loaded_kernels() - ahead == set()
    tune(_configuration(toy, "plain", algorithm, settings))
    assert left_by_run(toy.directory / "ahead") == left_by_run(toy.directory / "plain")


@pytest.mark.parametrize(
    ("task", "algorithm", "settings"),
    [
        ("tune", "kbmira", LISTS),
        ("tune --forest", "mert", FOREST),
        ("tune --online", "mira", ONLINE),
    ],
)
def test_after_the_warm_up_nothing_is_left_to_compile(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, task: str, algorithm: str, settings: dict[str, Any]
) -> None:
    forget_kernels(monkeypatch)
    warm_up([task], [algorithm])
    ahead = loaded_kernels()
    monkeypatch.setattr(scanner, "_LEAST_BYTES", 0)  # as for large graphs
    with kernels_only():
        tune(_configuration(toy, "work", algorithm, settings))
    assert loaded_kernels() - ahead == set()


@pytest.mark.usefixtures("at_once")
def test_problems_are_left_to_the_run(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> None:
        raise OSError("no room")

    monkeypatch.setattr(warming, "tune_invented_sentences", fail)
    assert tune(toy.configuration(maximum_iterations=1)).iterations
    assert caplog.messages == ["kernels were not compiled ahead: no room"]


def test_short_decodings_start_nothing(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_PATIENCE", 3600.0)
    monkeypatch.setattr(warming, "_prepared", set())
    monkeypatch.setattr(warming, "tune_invented_sentences", pytest.fail)
    tune(toy.configuration(maximum_iterations=1))
    names = [thread.name for thread in threading.enumerate()]
    assert "mosesplug-compiler" not in names


@pytest.mark.usefixtures("at_once")
def test_metrics_of_others_are_not_called(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = type(toy.configuration().metric)
    monkeypatch.setattr(metric, "__module__", "another.package")
    monkeypatch.setattr(warming, "tune_invented_sentences", pytest.fail)
    tune(toy.configuration(maximum_iterations=1))
    assert not warming._prepared


def test_an_interrupt_does_not_wait_for_the_compiler(
    toy: Toy, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, released = threading.Event(), threading.Event()

    def compile_for_ever(*_: object) -> None:
        while not released.is_set():
            with contextlib.suppress(Exception):  # as the compiler does
                started.set()
                released.wait(0.01)

    def interrupt(*_: object, **__: object) -> None:
        assert started.wait(LIMIT)
        raise KeyboardInterrupt

    monkeypatch.setattr(warming, "_PATIENCE", 0.0)
    monkeypatch.setattr(warming, "_prepared", set())
    monkeypatch.setattr(warming, "tune_invented_sentences", compile_for_ever)
    monkeypatch.setattr(ProgramDecoder, "nbest_lists", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            tune(toy.configuration(maximum_iterations=1))
        names = [thread.name for thread in threading.enumerate()]
        assert "mosesplug-compiler" not in names
    finally:
        released.set()
