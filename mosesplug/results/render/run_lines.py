"""The events of a run as lines of text."""

from __future__ import annotations

import math
import shlex
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping

from mosesplug.events import (
    CommandStarted,
    DecodingProgress,
    EpochLearned,
    EpochProgress,
    Event,
    GraphsRead,
    HeldOutScored,
    IterationFinished,
    MetricsReported,
    Note,
    OptimizerProgress,
    PhaseStarted,
    RunFinished,
    TextsScored,
)
from mosesplug.results.render.tables import format_change

_SECONDS_BETWEEN_LINES = 60.0
"""A long decoding writes a line after this time."""
_SECONDS_BETWEEN_STEPS = 30.0
"""The same for reading search graphs and for optimizing."""
_PHASES = {
    "filter": "filtering the model",
    "features": "asking the decoder for its features",
    "decode": "decoding",
    "score": "scoring",
    "optimize": "optimizing",
    "judge": "translating held-out text",
    "compare": "comparing the decoder's server with a newly started decoder",
}


class RunLines(ABC):
    """Turns the events of a run into lines; can be called from any thread.

    Args:
        is_live: whether ``set_status`` shows progress, so that it needs no lines.
        most_iterations: how many there are at most, to tell how long the run may take; 0: unknown.
    """

    def __init__(
        self, *, verbose: bool = False, is_live: bool = False, most_iterations: int = 0
    ) -> None:
        self._verbose = verbose
        self._is_live = is_live
        self._lock = threading.Lock()
        self._score = ""
        self._decoded: DecodingProgress | None = None
        self._next_line = _SECONDS_BETWEEN_LINES
        self._next_learning = _SECONDS_BETWEEN_LINES
        self._last_step = time.monotonic()
        self._clock = RunClock(most_iterations)

    @abstractmethod
    def write_line(self, text: str, *, is_warning: bool = False) -> None:
        """Write a line."""

    @abstractmethod
    def set_status(self, text: str) -> None:
        """Show what the run is doing, in the place of what it did before."""

    def __call__(self, event: Event) -> None:
        """Write the lines of one event."""
        with self._lock:
            if not isinstance(event, DecodingProgress | TextsScored):
                self._end_decoding()
            self._write(event)

    def _write(self, event: Event) -> None:
        match event:
            case Note(text, warning):
                self.write_line(text, is_warning=warning)
            case CommandStarted(command):
                if self._verbose:
                    self.write_line(f"running: {shlex.join(command)}")
            case PhaseStarted(iteration, phase):
                self._last_step = time.monotonic()
                self._clock.begin(iteration)
                self.set_status(f"{_label(iteration)}{_PHASES[phase]} ...")
            case DecodingProgress():
                self._decoded = event
                self.set_status(f"{_describe_decoding(event)}{self._score}")
                if not self._is_live and event.seconds >= self._next_line:
                    self.write_line(_describe_decoding(event))
                    self._next_line = event.seconds + _SECONDS_BETWEEN_LINES
            case GraphsRead(iteration, done, total):
                self._step(f"{_label(iteration)}reading search graphs: {done} of {total}")
            case TextsScored(metric, done, total):
                # While the decoder decodes, its progress is shown.
                if total and self._decoded is None:
                    left = format_left(time.monotonic() - self._clock.phase, done, total)
                    self.set_status(f"scoring: {done} of {total} texts by {metric}{left}")
            case OptimizerProgress(iteration, done, total, what):
                left = format_left(time.monotonic() - self._clock.phase, done, total)
                text = f"[{iteration}] optimizing: {done} of {total} {what}{left}"
                self._step(f"{text}{self._score}")
            case IterationFinished():
                self._score = f", {event.metric} so far {event.first_best_score:.4f}"
                where = "in the graphs" if event.uses_graphs else "in the merged lists"
                self.write_line(
                    f"[{event.iteration}] {event.metric} {event.first_best_score:.4f} decoded"
                    f" ({event.hypotheses} hypotheses), {event.optimum:.4f} {where};"
                    f" largest change of a weight {format_change(event.largest_change)}"
                    f"{self._clock.finish(event.iteration)}"
                )
            case EpochProgress():
                text = _describe_progress(event)
                self.set_status(text)
                if not self._is_live and event.seconds >= self._next_learning:
                    self.write_line(text)
                    self._next_learning = event.seconds + _SECONDS_BETWEEN_LINES
            case EpochLearned():
                self.write_line(f"{_describe_epoch(event)}{self._clock.finish(event.iteration)}")
                self._next_learning = _SECONDS_BETWEEN_LINES
            case HeldOutScored():
                self.write_line(_describe_score(event))
            case MetricsReported(iteration, scores):
                self.write_line(f"{_label(iteration)}reported: {list_scores(scores)}")
            case RunFinished(iteration, reason):
                self.write_line(f"finished after iteration {iteration}: {reason}")

    def _step(self, text: str) -> None:
        """Show a step; if the status is not shown, at most one line in half a minute."""
        self.set_status(text)
        now = time.monotonic()
        if not self._is_live and now - self._last_step >= _SECONDS_BETWEEN_STEPS:
            self.write_line(text)
            self._last_step = now

    def _end_decoding(self) -> None:
        if self._decoded is not None:
            self.write_line(_describe_decoding(self._decoded))
            self._decoded = None
            self._next_line = _SECONDS_BETWEEN_LINES


def _label(iteration: int) -> str:
    return f"[{iteration}] " if iteration else ""


def _describe_decoding(event: DecodingProgress) -> str:
    rate = f", {event.sentences / event.seconds:.1f}/s" if event.seconds > 0 else ""
    left = format_left(event.seconds, event.sentences, event.total)
    text = f"[{event.iteration}] decoding: {event.sentences} of {event.total} sentences"
    return f"{text}{rate}{left}"


def _describe_progress(event: EpochProgress) -> str:
    left = format_left(event.seconds, event.batches, event.total)
    return (
        f"[{event.iteration}] learning: {event.batches} of {event.total} batches{left},"
        f" {event.metric} so far {event.score:.4f}"
    )


def _describe_epoch(event: EpochLearned) -> str:
    report = event.report
    return (
        f"[{event.iteration}] {event.metric} {event.score:.4f} while learning,"
        f" {report['updates']:.0f} updates, loss {report['loss']:.4g}, norm {report['norm']:.4g},"
        f" {report['active']:.0f} weights that are not 0"
    )


def _describe_score(event: HeldOutScored) -> str:
    if event.best is None:
        compared = ""
    elif event.score > event.best:
        compared = f", the best so far (before: {event.best:.4f})"
    else:
        compared = f"; the best is {event.best:.4f}"
    when = "" if event.updates else " before learning"
    where = f"monitor {event.monitor}" if event.monitor else "held out"
    others = f"; {list_scores(event.reported)}" if event.reported else ""
    score = f"{event.metric} {event.score:.4f}{compared}{others}"
    return f"{_label(event.iteration)}{where}{when}: {score}"


def list_scores(scores: Mapping[str, float]) -> str:
    """Return scores by the names of their metrics, in a line."""
    return ", ".join(f"{name} {score:.4f}" for name, score in scores.items())


_LEAST_LEFT = 5.0
"""Seconds from which the time that is left is shown."""


class RunClock:
    """Measures iterations, to tell how long the others take."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._iteration = self._finished = 0
        self._began = self.phase = time.monotonic()
        self._seconds: list[float] = []

    def begin(self, iteration: int) -> None:
        """Take the beginning of a phase."""
        self.phase = time.monotonic()
        if iteration != self._iteration:
            self._iteration, self._began = iteration, self.phase

    def finish(self, iteration: int) -> str:
        """Take the end of an iteration; return how long the others take at most."""
        if iteration == self._finished:
            return ""
        now = time.monotonic()
        self._finished = iteration
        self._seconds.append(now - self._began)
        self._began = now
        left = (self._most - iteration) * sum(self._seconds) / len(self._seconds)
        return f"; at most {format_duration(left)} left" if self._most > iteration else ""


def format_left(seconds: float, done: int, total: int) -> str:
    """Return the time that the rest takes; empty if it is unknown or short."""
    left = seconds * (total - done) / done if done else 0.0
    return f", {format_duration(left)} left" if left >= _LEAST_LEFT else ""


def format_duration(seconds: float) -> str:
    """Return a duration in one unit, rounded up."""
    for size, unit in ((1.0, "s"), (60.0, "min"), (3600.0, "h")):
        count = math.ceil(seconds / size)
        if count < 100 or unit == "h":
            break
    return f"{count} {unit}"
