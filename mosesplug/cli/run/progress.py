"""Show a run's progress: a changing line on a terminal, else plain lines."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TextIO

from mosesplug.cli.shared.compiling import COMPILING_ONCE
from mosesplug.cli.shared.streams import control_stream
from mosesplug.events import Event
from mosesplug.metrics.error_rates import display_score, explain_shown_scores
from mosesplug.results.render.progress import StatusLine
from mosesplug.results.render.record import format_seconds
from mosesplug.results.render.run_lines import RunLines, list_scores
from mosesplug.results.render.tables import Block, TextTable, format_change
from mosesplug.tuning.workdir.summary import IterationFigures, Result


class Reporter(RunLines):
    """Writes the events of a run to a stream; can be called from any thread."""

    def __init__(
        self,
        stream: TextIO,
        *,
        quiet: bool = False,
        verbose: bool = False,
        most_iterations: int = 0,
    ) -> None:
        self._line = StatusLine(stream, control_stream(stream))
        super().__init__(
            verbose=verbose, is_live=self._line.is_live, most_iterations=most_iterations
        )
        self._quiet = quiet

    def __call__(self, event: Event) -> None:
        """Show one event."""
        if not self._quiet:
            super().__call__(event)

    def close(self) -> None:
        """Clear the changing line, so that other output starts on a new line."""
        with self._lock:
            self._line.clear()

    def show_compiling(self, is_compiling: bool) -> None:
        """Show in the changing line that the run waits for compiling."""
        if is_compiling and not self._quiet:
            with self._lock:
                self.set_status(f"{COMPILING_ONCE} ...")

    def write_line(self, text: str, *, is_warning: bool = False) -> None:
        """Write a line in the place of the status."""
        self._line.write(f"warning: {text}\n" if is_warning else f"{text}\n")

    def set_status(self, text: str) -> None:
        """Replace the changing line of a terminal."""
        self._line.set(text)


def list_iterations(result: Result) -> list[Block]:
    """Return the table of iterations, and a line on the result."""
    rows = _rows(result)
    iterations, signature, signatures = (
        result.iterations,
        result.signature,
        result.report_signatures,
    )
    columns = []
    if any(iteration.heldout for iteration in iterations):
        columns.append(("held out", *(_show(signature, one.heldout, max) for one in iterations)))
    # The last one, since the best would be selected by the monitor.
    columns += [
        (name, *(_show(signature, one.monitors.get(name, ()), _last) for one in iterations))
        for name in dict.fromkeys(name for one in iterations for name in one.monitors)
    ]
    columns += [
        (name, *(_show(signatures[name], _series(one, name), _last) for one in iterations))
        for name in signatures
    ]
    for column in columns:
        rows = [(*row, cell) for row, cell in zip(rows, column, strict=True)]
    return [
        TextTable(rows),
        f"weights: {_where(result)}{_append_reported(result, result.reported)} ({result.reason})",
        *(
            f"monitor {name}: {result.metric} {display_score(signature, score):.4f}"
            f"{_append_reported(result, result.reported_monitors.get(name, {}))}"
            for name, score in result.monitors.items()
        ),
        f"signature: {explain_shown_scores(signature)}",
        *(f"{name}: {explain_shown_scores(one)}" for name, one in signatures.items()),
    ]


def _series(iteration: IterationFigures, name: str) -> list[tuple[int, float]]:
    """Return the score of the 1-bests by a metric that is reported, if it is known."""
    scores = iteration.reported
    return [(iteration.number, scores[name])] if name in scores else []


def _append_reported(result: Result, scores: Mapping[str, float]) -> str:
    """Return the scores by metrics that are reported, to be added to another score."""
    shown = {
        name: display_score(result.report_signatures[name], score) for name, score in scores.items()
    }
    return f"; {list_scores(shown)}" if shown else ""


def _where(result: Result) -> str:
    """Return the score of the result, and which data it was computed on."""
    what = {"average": "averaged", "last": "the last ones"}.get(result.selection, "")
    if result.score is None:
        return f"{what}, not scored"
    score = f"{result.metric} {display_score(result.signature, result.score):.4f}"
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


def _show(
    signature: str,
    series: Sequence[tuple[int, float]],
    choose: Callable[[Sequence[float]], float],
) -> str:
    scores = [score for _, score in series]
    return f"{display_score(signature, choose(scores)):.4f}" if scores else ""


def _last(scores: Sequence[float]) -> float:
    return scores[-1]


def _rows(result: Result) -> list[tuple[str, ...]]:
    """Return a row for each iteration, or each epoch of learning while decoding."""
    head = ("iteration", "in lists", "change", "hypotheses", "new")
    if result.is_online:
        head = ("epoch", "loss", "norm", "active", "updates")
    elif result.uses_graphs:
        head = (head[0], "in graphs", *head[2:])
    rows: list[tuple[str, ...]] = [(head[0], result.metric, *head[1:], "decode", "tune")]
    for iteration in result.iterations:
        score = display_score(result.signature, iteration.first_best_score)
        optimum = display_score(result.signature, iteration.optimum)
        figures = (
            f"{optimum:.4f}",
            format_change(iteration.largest_change),
            str(iteration.hypotheses),
            str(iteration.new_hypotheses),
        )
        if result.is_online:
            point = iteration.curve[-1] if iteration.curve else {}
            figures = (
                f"{point.get('loss', 0.0):.4g}",
                f"{point.get('norm', 0.0):.4g}",
                f"{point.get('active', 0):.0f}",
                f"{point.get('updates', 0):.0f}",
            )
        times = map(format_seconds, (iteration.seconds_decoding, iteration.seconds_optimizing))
        rows.append((str(iteration.number), f"{score:.4f}", *figures, *times))
    return rows
