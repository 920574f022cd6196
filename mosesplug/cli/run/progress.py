"""Show a run's progress: a changing line on a terminal, else plain lines."""

from __future__ import annotations

import shlex
import threading
import time
from typing import TextIO

from mosesplug.cli.shared.streams import control_stream
from mosesplug.cli.shared.tables import format_change
from mosesplug.evaluation.error_rates import explain_signature
from mosesplug.reporting.tables import Block, TextTable
from mosesplug.tuning.events import (
    CommandStarted,
    DecodingProgress,
    EpochLearned,
    EpochProgress,
    Event,
    GraphsRead,
    HeldOutScored,
    IterationFinished,
    Note,
    OptimizerProgress,
    PhaseStarted,
    RunFinished,
)
from mosesplug.tuning.workdir.summary import IterationFigures, Result

__all__ = ["Reporter", "list_iterations"]

_SECONDS_BETWEEN_LINES = 60.0
"""Without a terminal, a long decoding prints a line after this time."""
_SECONDS_BETWEEN_STEPS = 30.0
"""The same for reading search graphs and for optimizing."""
_CLEAR_LINE = "\r\x1b[K"
_PHASES = {
    "filter": "filtering the model",
    "features": "asking the decoder for its features",
    "decode": "decoding",
    "score": "scoring",
    "optimize": "optimizing",
    "judge": "translating the held-out text",
    "compare": "comparing the decoder's server with a newly started decoder",
}


class Reporter:
    """Writes the events of a run to a stream; can be called from any thread."""

    def __init__(self, stream: TextIO, *, quiet: bool = False, verbose: bool = False) -> None:
        self._stream = stream
        self._controls = control_stream(stream)
        self._quiet = quiet
        self._verbose = verbose
        self._live = stream.isatty()
        self._lock = threading.Lock()
        self._status = ""
        self._score = ""
        self._decoded: DecodingProgress | None = None
        self._next_line = _SECONDS_BETWEEN_LINES
        self._next_learning = _SECONDS_BETWEEN_LINES
        self._last_step = time.monotonic()

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if self._quiet:
            return
        with self._lock:
            if not isinstance(event, DecodingProgress):
                self._end_decoding()
            self._show(event)

    def close(self) -> None:
        """Clear the changing line, so that other output starts on a new line."""
        with self._lock:
            if self._status:
                self._clear()
                self._stream.flush()
                self._status = ""

    def _show(self, event: Event) -> None:
        match event:
            case Note(text, warning):
                self._line(f"warning: {text}" if warning else text)
            case CommandStarted(command):
                if self._verbose:
                    self._line(f"running: {shlex.join(command)}")
            case PhaseStarted(iteration, phase):
                self._last_step = time.monotonic()
                self._update(f"{_label(iteration)}{_PHASES[phase]} ...")
            case DecodingProgress():
                self._decoded = event
                self._update(f"{_describe_decoding(event)}{self._score}")
                if not self._live and event.seconds >= self._next_line:
                    self._line(_describe_decoding(event))
                    self._next_line = event.seconds + _SECONDS_BETWEEN_LINES
            case GraphsRead(iteration, done, total):
                self._step(f"{_label(iteration)}reading search graphs: {done} of {total}")
            case OptimizerProgress(iteration, done, total, what):
                self._step(f"[{iteration}] optimizing: {done} of {total} {what}{self._score}")
            case IterationFinished():
                self._score = f", {event.metric} so far {event.first_best_score:.4f}"
                where = "in the graphs" if event.uses_graphs else "in the merged lists"
                self._line(
                    f"[{event.iteration}] {event.metric} {event.first_best_score:.4f} decoded"
                    f" ({event.hypotheses} hypotheses), {event.optimum:.4f} {where};"
                    f" largest change of a weight {format_change(event.largest_change)}"
                )
            case EpochProgress():
                text = _describe_progress(event)
                self._update(text)
                if not self._live and event.seconds >= self._next_learning:
                    self._line(text)
                    self._next_learning = event.seconds + _SECONDS_BETWEEN_LINES
            case EpochLearned():
                self._line(_describe_epoch(event))
                self._next_learning = _SECONDS_BETWEEN_LINES
            case HeldOutScored():
                self._line(_describe_score(event))
            case RunFinished(iteration, reason):
                self._line(f"finished after iteration {iteration}: {reason}")

    def _step(self, text: str) -> None:
        """Show a step; without a terminal, at most one line in half a minute."""
        self._update(text)
        now = time.monotonic()
        if not self._live and now - self._last_step >= _SECONDS_BETWEEN_STEPS:
            self._line(text)
            self._last_step = now

    def _end_decoding(self) -> None:
        if self._decoded is not None:
            self._line(_describe_decoding(self._decoded))
            self._decoded = None
            self._next_line = _SECONDS_BETWEEN_LINES

    def _line(self, text: str) -> None:
        self._clear()
        self._stream.write(text + "\n")
        self._stream.flush()
        self._status = ""

    def _update(self, text: str) -> None:
        """Replace the changing line of a terminal."""
        if self._live and text != self._status:
            self._clear()
            self._stream.write(text)
            self._stream.flush()
            self._status = text

    def _clear(self) -> None:
        if self._live:
            self._controls.write(_CLEAR_LINE)


def list_iterations(result: Result) -> list[Block]:
    """Return the table of iterations, and a line on the result."""
    rows = _online_rows(result) if result.is_online else _rows(result)
    if any(iteration.heldout for iteration in result.iterations):
        best = [_best(iteration) for iteration in result.iterations]
        rows = [(*row, cell) for row, cell in zip(rows, ("held out", *best), strict=True)]
    return [
        TextTable(rows),
        f"weights: {_where(result)} ({result.reason})",
        f"signature: {explain_signature(result.signature)}",
    ]


def _where(result: Result) -> str:
    """Return the score of the result, and which data it was computed on."""
    what = {"average": "averaged", "last": "the last ones"}.get(result.selection, "")
    if result.score is None:
        return f"{what}, not scored"
    score = f"{result.metric} {result.score:.4f}"
    match result.scored_on:
        case "decoded":
            return f"{score} decoded in iteration {result.chosen_iteration}"
        case "heldout":
            return f"{score} on the held-out text, the best there"
        case "graphs":
            return f"{score} in the search graphs"
        case "learning":
            return f"{score} while learning in the last epoch; {what}"
        case _:
            average = ", averaged over the iterations" if result.selection == "average" else ""
            return f"{score} in the merged lists{average}"


def _best(iteration: IterationFigures) -> str:
    scores = [score for _, score in iteration.heldout]
    return f"{max(scores):.4f}" if scores else ""


def _rows(result: Result) -> list[tuple[str, ...]]:
    """Return the table of a run that decodes the whole tuning set in each iteration."""
    where = "in graphs" if result.uses_graphs else "in lists"
    head = (
        "iteration",
        result.metric,
        where,
        "change",
        "hypotheses",
        "new",
        "decode",
        "tune",
    )
    return [
        head,
        *(
            (
                str(iteration.number),
                f"{iteration.first_best_score:.4f}",
                f"{iteration.optimum:.4f}",
                format_change(iteration.largest_change),
                str(iteration.hypotheses),
                str(iteration.new_hypotheses),
                f"{iteration.seconds_decoding:.1f} s",
                f"{iteration.seconds_optimizing:.1f} s",
            )
            for iteration in result.iterations
        ),
    ]


def _online_rows(result: Result) -> list[tuple[str, ...]]:
    """Return the table of a run that learns while decoding."""
    head = ("epoch", result.metric, "loss", "norm", "active", "updates", "decode", "tune")
    rows: list[tuple[str, ...]] = [head]
    for iteration in result.iterations:
        point = iteration.curve[-1] if iteration.curve else {}
        rows.append(
            (
                str(iteration.number),
                f"{iteration.first_best_score:.4f}",
                f"{point.get('loss', 0.0):.4g}",
                f"{point.get('norm', 0.0):.4g}",
                f"{point.get('active', 0):.0f}",
                f"{point.get('updates', 0):.0f}",
                f"{iteration.seconds_decoding:.1f} s",
                f"{iteration.seconds_optimizing:.1f} s",
            )
        )
    return rows


def _label(iteration: int) -> str:
    return f"[{iteration}] " if iteration else ""


def _describe_decoding(event: DecodingProgress) -> str:
    rate = f", {event.sentences / event.seconds:.1f}/s" if event.seconds > 0 else ""
    return f"[{event.iteration}] decoding: {event.sentences} of {event.total} sentences{rate}"


def _describe_progress(event: EpochProgress) -> str:
    return (
        f"[{event.iteration}] learning: {event.batches} of {event.total} batches,"
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
    return f"{_label(event.iteration)}held out{when}: {event.metric} {event.score:.4f}{compared}"
