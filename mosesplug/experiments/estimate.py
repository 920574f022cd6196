"""List the state of each run of an experiment, and estimate its time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Annotated

from mosesplug.errors import count_noun
from mosesplug.experiments.planning import PlannedRun
from mosesplug.experiments.running import (
    check_definition,
    count_decodings,
    is_finished,
    read_record,
)
from mosesplug.results.render.record import Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import Block


def format_duration(seconds: float) -> str:
    """Return a duration in hours and minutes, or seconds."""
    if seconds < 100.0:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60.0)
    return f"{minutes // 60} h {minutes % 60:02d} min" if minutes >= 60 else f"{minutes} min"


@dataclass(frozen=True)
class RunForecast:
    """The state of a run, and the estimated time of its tuning.

    Attributes:
        state: ``not begun``, ``in iteration N``, ``tuned`` or ``finished``.
        wall: estimated wall seconds of the whole tuning, 0 if it is finished; None without a
            finished run to estimate it from.
        based_on: the finished runs that the estimate is the mean of, as ``other seeds``.
    """

    system: Text
    features: Text
    tuning: Text
    seed: Annotated[int, Shown()]
    state: Text
    wall: Annotated[float | None, Shown(format_duration, "estimated time", "?")]
    based_on: Annotated[str, Shown(label="estimated from", is_text=True)]


def forecast_runs(runs: Sequence[PlannedRun], planned: Sequence[PlannedRun]) -> list[RunForecast]:
    """Return a forecast of each run, from the finished ones of all ``planned`` runs.

    The time of an unfinished run is the mean of finished runs of the same row; else of those of
    the same system and feature set, per sentence; else of the same system; else of all.

    Raises:
        DataError: a run was begun with another definition.
    """
    for run in planned:
        check_definition(run)
    walls = {
        id(run): record.wall
        for run in planned
        if (record := read_record(run)) is not None and not run.is_untuned
    }
    finished = [run for run in planned if id(run) in walls]
    return [_forecast(run, finished, walls) for run in runs]


@dataclass(frozen=True)
class ExperimentForecast:
    """The forecasts of runs, and the number of runs at the same time."""

    document: Sequence[RunForecast]
    jobs: int

    def blocks(self, _medium: Medium) -> list[Block]:
        """Return the table of the runs, and the estimated time of all."""
        unknown = sum(run.wall is None for run in self.document)
        last = f"{count_noun(unknown, 'run')} without an estimate: nothing has run yet"
        if not unknown:
            total = format_duration(sum(run.wall or 0.0 for run in self.document) / self.jobs)
            last = f"estimated time to go: {total} with --jobs {self.jobs}"
        return [tabulate(RunForecast, self.document), "", last]


def _forecast(
    run: PlannedRun, finished: Sequence[PlannedRun], walls: dict[int, float]
) -> RunForecast:
    row = run.row
    state = _describe_state(run)
    wall: float | None = None
    based_on = ""
    if read_record(run) is not None or run.is_untuned:
        wall = 0.0
    else:
        kinds: list[tuple[str, Callable[[PlannedRun], bool]]] = [
            ("other seeds", lambda other: other.row == row),
            (
                "other tuning sets",
                lambda other: (other.row.system, other.row.features) == (row.system, row.features),
            ),
            ("other feature sets", lambda other: other.row.system == row.system),
            ("other systems", lambda other: True),
        ]
        for what, is_alike in kinds:
            alike = [other for other in finished if is_alike(other)]
            if alike:
                # Decoding, most of the time, is linear in the number of sentences.
                rate = fmean(walls[id(other)] / other.n_sentences for other in alike)
                wall, based_on = rate * run.n_sentences, what
                break
    return RunForecast(row.system, row.features, row.tuning, run.seed, state, wall, based_on)


def _describe_state(run: PlannedRun) -> str:
    if is_finished(run):
        return "finished"
    if read_record(run) is not None:
        return "tuned"
    if count := count_decodings(run):
        return f"in iteration {count}"
    return "not begun"
