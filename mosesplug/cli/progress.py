"""Progress of a tuning run on a screen: a line that changes on a terminal, else plain lines."""

from __future__ import annotations

import shlex
import threading
from typing import TextIO

from mosesplug.tuning.events import (
    Decoded,
    Event,
    Executing,
    Finished,
    Note,
    Optimised,
    Optimising,
    PhaseStarted,
)
from mosesplug.tuning.summary import Result

__all__ = ["Reporter", "table"]

_SECONDS_BETWEEN_LINES = 60.0
"""Where no line can change, a long decoding gives a sign of life as often as this."""
_CLEAR_LINE = "\r\x1b[K"
_PHASES = {
    "filter": "filtering the model",
    "features": "asking the decoder for its features",
    "decode": "decoding",
    "score": "scoring",
    "optimise": "optimising",
}


class Reporter:
    """A watcher that writes to a stream; safe to call from any thread."""

    def __init__(self, stream: TextIO, *, quiet: bool = False, verbose: bool = False) -> None:
        self._stream = stream
        self._quiet = quiet
        self._verbose = verbose
        self._live = stream.isatty()
        self._lock = threading.Lock()
        self._status = ""
        self._score = ""
        self._decoded: Decoded | None = None
        self._next_line = _SECONDS_BETWEEN_LINES

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if self._quiet:
            return
        with self._lock:
            if not isinstance(event, Decoded):
                self._end_decoding()
            self._show(event)

    def close(self) -> None:
        """End the line that changes, so that what follows begins on a line of its own."""
        with self._lock:
            if self._live and self._status:
                self._stream.write(_CLEAR_LINE)
                self._stream.flush()
                self._status = ""

    def _show(self, event: Event) -> None:
        match event:
            case Note(text, warning):
                self._line(f"warning: {text}" if warning else text)
            case Executing(command):
                if self._verbose:
                    self._line(f"running: {shlex.join(command)}")
            case PhaseStarted(iteration, phase):
                self._update(f"{_label(iteration)}{_PHASES[phase]} ...")
            case Decoded():
                self._decoded = event
                self._update(f"{_decoding(event)}{self._score}")
                if not self._live and event.seconds >= self._next_line:
                    self._line(_decoding(event))
                    self._next_line = event.seconds + _SECONDS_BETWEEN_LINES
            case Optimising(iteration, done, total, what):
                self._update(f"[{iteration}] optimising: {done} of {total} {what}{self._score}")
            case Optimised():
                self._score = f", {event.metric} so far {event.first_best_score:.4f}"
                self._line(
                    f"[{event.iteration}] {event.metric} {event.first_best_score:.4f} decoded,"
                    f" {event.optimum:.4f} in the lists of {event.hypotheses} hypotheses;"
                    f" largest change of a weight {event.largest_change:.2g}"
                )
            case Finished(iteration, reason):
                self._line(f"finished after iteration {iteration}: {reason}")

    def _end_decoding(self) -> None:
        """A line for the decoding that is over."""
        if self._decoded is not None:
            self._line(_decoding(self._decoded))
            self._decoded = None
            self._next_line = _SECONDS_BETWEEN_LINES

    def _line(self, text: str) -> None:
        """A line that stays."""
        self._stream.write((_CLEAR_LINE if self._live else "") + text + "\n")
        self._stream.flush()
        self._status = ""

    def _update(self, text: str) -> None:
        """The line that changes; only a terminal can show it."""
        if self._live and text != self._status:
            self._stream.write(_CLEAR_LINE + text)
            self._stream.flush()
            self._status = text


def table(result: Result) -> str:
    """The iterations of a run, and what came of it."""
    head = ("iteration", result.metric, "in lists", "change", "hypotheses", "new", "decode", "tune")
    rows = [
        (
            str(iteration.number),
            f"{iteration.first_best_score:.4f}",
            f"{iteration.optimum:.4f}",
            f"{iteration.largest_change:.2g}",
            str(iteration.hypotheses),
            str(iteration.new_hypotheses),
            f"{iteration.seconds_decoding:.1f} s",
            f"{iteration.seconds_optimising:.1f} s",
        )
        for iteration in result.iterations
    ]
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [
        "  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True))
        for row in (head, *rows)
    ]
    where = f"decoded in iteration {result.chosen}" if result.chosen else "in the merged lists"
    lines.append(f"weights: {result.metric} {result.score:.4f} {where} ({result.reason})")
    lines.append(f"signature: {result.signature}")
    return "\n".join(lines) + "\n"


def _label(iteration: int) -> str:
    return f"[{iteration}] " if iteration else ""


def _decoding(event: Decoded) -> str:
    rate = f", {event.sentences / event.seconds:.1f}/s" if event.seconds > 0 else ""
    return f"[{event.iteration}] decoding: {event.sentences} of {event.total} sentences{rate}"
