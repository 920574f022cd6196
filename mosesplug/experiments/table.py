"""The table of an experiment: scores, significance and cost of each row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev
from typing import Annotated, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from formats.references import read_references
from mosesplug.experiments.planning import ExperimentPlan, PlannedRun, Row
from mosesplug.experiments.running import (
    check_definition,
    is_finished,
    read_record,
    read_test_cpu,
    translation_path,
)
from mosesplug.experiments.scheduling import Progress
from mosesplug.experiments.texts import SharedText
from mosesplug.metrics.error_rates import display_score, is_error_rate
from mosesplug.results.render.record import MeanCount, Shown, Text, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import (
    Block,
    TextTable,
    Verbatim,
    escape_latex,
    escape_markdown,
)
from mosesplug.results.scores.comparison import System, compare_statistics, measure_systems
from mosesplug.results.scores.scoring import PreparedMetric, prepare_metrics

_PERCENT = 100.0

_MOST_LABELS = 5
"""Number of unfinished runs that a note names."""


@dataclass(frozen=True)
class TestScore:
    """The scores of a row on one test set by one metric, from 0 to 100.

    Attributes:
        scores: of each run, by seed.
        mean, deviation: over the runs; the deviation (n - 1) is None for one run.
        difference, p: from the baseline, and approximate randomization over all runs of both
            (Clark et al. 2011); None for the baseline itself, and until it has a finished run.
    """

    test: str
    metric: str
    scores: tuple[float, ...]
    mean: float
    deviation: float | None
    difference: float | None
    p: float | None

    __test__ = False  # it is no test of pytest


@dataclass(frozen=True)
class ExperimentRow:
    """A system with a feature set on a tuning set, over its finished runs.

    Attributes:
        baseline: the label of the row that it is compared with.
        input: the file that the tuning set is from, and which part of it.
        runs, planned: number of finished runs, and of all.
        tests: by metric, then by test set.
        mean, deviation: of the mean over the test sets by the first metric.
        active, decodings, cpu, wall: means over the runs: weights that are not 0, decodings of the
            tuning set, CPU and wall seconds of the tuning. ``decodings`` is None if unknown.
        test_cpu: mean over the runs of the CPU seconds in which all test sets were translated; None
            if unknown.
        interruptions: how often its runs were killed and continued.
    """

    system: Text
    features: Text
    tuning: Text
    baseline: str
    input: str
    sentences: int
    runs: int
    planned: int
    tests: tuple[TestScore, ...]
    mean: float
    deviation: float | None
    active: MeanCount
    decodings: MeanCount | None
    cpu: Annotated[float, Shown(".0f", "CPU s")]
    wall: Annotated[float, Shown(".0f", "wall s")]
    test_cpu: Annotated[float | None, Shown(".1f", "test CPU s")]
    interruptions: int

    @property
    def label(self) -> str:
        """The names of system, feature set and tuning set."""
        return Row(self.system, self.features, self.tuning).label

    @property
    def seeds(self) -> Annotated[str, Shown()]:
        """The number of finished runs, and of all if some are not."""
        return str(self.runs) if self.runs == self.planned else f"{self.runs} of {self.planned}"


@dataclass(frozen=True)
class ExperimentTable:
    """The rows that have a finished run, and the signatures of the metrics."""

    JSON_KEYS: ClassVar = "rows signatures unfinished"

    rows: tuple[ExperimentRow, ...]
    tests: tuple[str, ...]
    metrics: tuple[str, ...]
    signatures: tuple[str, ...]
    unfinished: tuple[str, ...]

    @property
    def is_error_rate(self) -> bool:
        """Whether less is better by the first metric."""
        return bool(self.signatures) and is_error_rate(self.signatures[0])

    @property
    def varying(self) -> list[str]:
        """What rows differ in beside their systems: ``features``, ``tuning``."""
        names = ("features", "tuning")
        return [name for name in names if len({getattr(row, name) for row in self.rows}) > 1]

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield the table, and what its reader must know."""
        yield tabulate_experiment(self)
        notes = [*list_notes(self), *self.signatures]
        if medium.layout == "latex":
            yield from (Verbatim(f"% {escape_latex(note)}") for note in notes)
        elif medium.layout == "markdown":
            yield "\n\n".join(map(escape_markdown, notes))
        else:
            yield from ("", *notes)


def make_table(
    plan: ExperimentPlan, progress: Progress = lambda done, total, what: None
) -> ExperimentTable:
    """Score the translations of all finished runs.

    Raises:
        DataError: a run was begun with another definition.
        FormatError: a translation or reference cannot be read.
    """
    for run in plan.runs:
        check_definition(run)
    plan.write_files()
    finished = {row: [run for run in plan.runs_of(row) if is_finished(run)] for row in plan.rows}
    rows = [row for row in plan.rows if finished[row]]
    scores: dict[Row, list[TestScore]] = {row: [] for row in rows}
    signatures: list[str] = []
    metrics: list[str] = []
    done, total = 0, len(plan.tests) * len(plan.experiment.keys.metrics)
    for place in range(len(plan.experiment.keys.metrics)):
        for test in plan.tests:
            progress(done, total, f"scores of {test.name}")
            references = read_references(test.references)
            [metric] = prepare_metrics([plan.experiment.keys.metrics[place]], references)
            for row, score in _score_test(plan, test, metric, finished).items():
                scores[row].append(score)
            signatures.append(metric.references.signature)
            metrics.append(metric.metric.name)
            done += 1
    return ExperimentTable(
        tuple(_make_row(plan, row, finished[row], scores[row]) for row in rows),
        tuple(test.name for test in plan.tests),
        tuple(dict.fromkeys(metrics)),
        tuple(dict.fromkeys(signatures)),
        tuple(run.label for run in plan.runs if not is_finished(run)),
    )


def _score_test(
    plan: ExperimentPlan,
    test: SharedText,
    metric: PreparedMetric,
    finished: Mapping[Row, Sequence[PlannedRun]],
) -> dict[Row, TestScore]:
    """Return the score of each row, tested against its baseline."""
    rows = [row for row in plan.rows if finished[row]]
    systems = [
        System(row.label, tuple(translation_path(run, test) for run in finished[row]))
        for row in rows
    ]
    statistics = dict(zip(rows, measure_systems(systems, metric), strict=True))
    scores: dict[Row, TestScore] = {}
    for baseline in dict.fromkeys(plan.baselines[row] for row in rows):
        group = [row for row in rows if plan.baselines[row] == baseline and row != baseline]
        if baseline in statistics:
            group.insert(0, baseline)
            compared = compare_statistics(
                [row.label for row in group],
                [statistics[row] for row in group],
                metric.metric,
                metric.references.signature,
                samples=1,  # for intervals, which the table does not show
                trials=plan.experiment.keys.trials,
            )
            tested = [(score.difference, score.p_randomization) for score in compared]
        else:
            tested = [(None, None)] * len(group)
        for row, (difference, p) in zip(group, tested, strict=True):
            values = _score_runs(metric, statistics[row])
            scores[row] = TestScore(
                test.name,
                metric.metric.name,
                values,
                fmean(values),
                _deviation(values),
                None if difference is None else _PERCENT * difference,
                p,
            )
    return scores


def _score_runs(metric: PreparedMetric, runs: Sequence[NDArray[Any]]) -> tuple[float, ...]:
    """Return the corpus score of each run in percent, an error rate as a rate."""
    sums = (run.sum(axis=0, dtype=np.float64) for run in runs)
    signature = metric.references.signature
    return tuple(
        _PERCENT * display_score(signature, float(metric.metric.score(total))) for total in sums
    )


def _deviation(values: Sequence[float]) -> float | None:
    return stdev(values) if len(values) > 1 else None


def _make_row(
    plan: ExperimentPlan, row: Row, runs: Sequence[PlannedRun], scores: Sequence[TestScore]
) -> ExperimentRow:
    records = [record for run in runs if (record := read_record(run)) is not None]
    first = [score.scores for score in scores[: len(plan.tests)]]
    means = [fmean(values) for values in zip(*first, strict=True)]
    keys = plan.experiment.tuning[row.tuning].keys
    return ExperimentRow(
        row.system,
        row.features,
        row.tuning,
        plan.baselines[row].label,
        f"{keys.input} {keys.part}".rstrip(),
        runs[0].n_sentences,
        len(runs),
        len(plan.runs_of(row)),
        tuple(scores),
        fmean(means),
        _deviation(means),
        fmean(record.active for record in records),
        _mean_known([record.decodings for record in records]),
        fmean(record.cpu for record in records),
        fmean(record.wall for record in records),
        _mean_known([read_test_cpu(run) for run in runs]),
        sum(record.interruptions for record in records),
    )


def _mean_known(values: Sequence[float | None]) -> float | None:
    """Return a mean; None if a value is unknown."""
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None


def tabulate_experiment(table: ExperimentTable) -> TextTable:
    """Return the table for people: a row for each system, feature set and tuning set.

    Feature sets and tuning sets have columns if there are several.
    """
    has_mean = len(table.tests) > 1
    head = [f"mean {table.metrics[0]}"] if has_mean else []
    for score in table.rows[0].tests if table.rows else ():
        is_clear = has_mean and len(table.metrics) == 1
        head += [score.test if is_clear else f"{score.test} {score.metric}", "p"]
    names = ["system", *table.varying]
    columns = (
        tabulate(ExperimentRow, table.rows, " ".join([*names, "seeds"])).plain,
        [head, *(_list_scores(row, has_mean) for row in table.rows)],
        tabulate(ExperimentRow, table.rows, "active decodings cpu wall test_cpu").plain,
    )
    return TextTable([[*a, *b, *c] for a, b, c in zip(*columns, strict=True)], left=len(names))


def _list_scores(row: ExperimentRow, has_mean: bool) -> list[str]:
    cells = [_format_mean(row.mean, row.deviation)] if has_mean else []
    for score in row.tests:
        p = "" if score.p is None else f"{score.p:.4f}"
        cells += [_format_mean(score.mean, score.deviation), p]
    return cells


def _format_mean(mean: float, deviation: float | None) -> str:
    return f"{mean:.2f}" if deviation is None else f"{mean:.2f} ± {deviation:.2f}"


def list_notes(table: ExperimentTable) -> list[str]:
    """Return what a reader of the table must know."""
    notes = []
    baselines = dict.fromkeys(row.baseline for row in table.rows)
    if baselines:
        notes.append(
            "p: approximate randomization over all seeds against"
            f" {', '.join(baselines)}; ±: standard deviation over seeds"
        )
    if interrupted := [row.label for row in table.rows if row.interruptions]:
        notes.append(
            "interrupted and continued, without the time of what was repeated:"
            f" {', '.join(interrupted)}"
        )
    if table.unfinished:
        more = len(table.unfinished) - _MOST_LABELS
        shown = [*table.unfinished[:_MOST_LABELS], *([f"and {more} more"] if more > 0 else [])]
        notes.append(f"not finished: {', '.join(shown)}")
    return notes
