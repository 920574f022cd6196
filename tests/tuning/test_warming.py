"""Kernels that are compiled while the decoder runs."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mosesplug.tuning import tune, warming
from mosesplug.tuning.decoding.program import ProgramDecoder
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


@pytest.mark.usefixtures("at_once")
@pytest.mark.parametrize("algorithm", ["mert", "kbmira", "adagrad"])
def test_invented_lists_change_nothing(
    toy: Toy, left_by_run: Files, caplog: pytest.LogCaptureFixture, algorithm: str
) -> None:
    optimization = {"algorithm": algorithm, "options": {}}
    tune(toy.configuration("ahead", optimization=optimization, maximum_iterations=1))
    assert len(warming._prepared) == 1
    assert caplog.messages == []
    tune(toy.configuration("plain", optimization=optimization, maximum_iterations=1))
    assert left_by_run(toy.directory / "ahead") == left_by_run(toy.directory / "plain")


@pytest.mark.usefixtures("at_once")
def test_problems_are_left_to_the_run(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def fail(*_: object) -> str:
        raise OSError("no room")

    monkeypatch.setattr(warming, "_invent_lists", fail)
    assert tune(toy.configuration(maximum_iterations=1)).iterations
    assert caplog.messages == ["kernels were not compiled ahead: no room"]


def test_short_decodings_start_nothing(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warming, "_PATIENCE", 3600.0)
    monkeypatch.setattr(warming, "_prepared", set())
    monkeypatch.setattr(warming, "_invent_lists", pytest.fail)
    tune(toy.configuration(maximum_iterations=1))
    names = [thread.name for thread in threading.enumerate()]
    assert "mosesplug-compiler" not in names


@pytest.mark.usefixtures("at_once")
def test_metrics_of_others_are_not_called(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    metric = type(toy.configuration().metric)
    monkeypatch.setattr(metric, "__module__", "another.package")
    monkeypatch.setattr(warming, "_invent_lists", pytest.fail)
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
    monkeypatch.setattr(warming, "_tune_invented_lists", compile_for_ever)
    monkeypatch.setattr(ProgramDecoder, "nbest_lists", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            tune(toy.configuration(maximum_iterations=1))
        names = [thread.name for thread in threading.enumerate()]
        assert "mosesplug-compiler" not in names
    finally:
        released.set()
