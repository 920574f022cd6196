"""``mosesplug bench-optimizers``: compare algorithms on the same lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from formats.pipes import wrap_files
from mosesplug.cli.learn.options import BenchOptimizersCommand
from mosesplug.cli.shared.layouts import TableLayout, current_layout
from mosesplug.cli.shared.output import print_formats, progress_bar
from mosesplug.cli.shared.tables import print_record, print_table
from mosesplug.errors import UsageError
from mosesplug.learning.benchmark import (
    OPTIMUM,
    BenchmarkResult,
    BenchmarkTask,
    Refusal,
    SeedValues,
    bind_settings,
    find_optimum,
    make_tasks,
    measure_optimizer,
    read_earlier,
    score_tasks,
)
from mosesplug.learning.data import read_data
from mosesplug.learning.inputs import GivenData, LearningData
from mosesplug.metrics.error_rates import display_score, explain_shown_scores
from mosesplug.optimizers import algorithm, algorithms
from mosesplug.results.render.tables import format_row
from mosesplug.settings.learning import make_learning_settings

_WIDTH = 15
"""Width of a number in a plain table."""


@dataclass(frozen=True)
class StartScores:
    """The scores of the starting weights."""

    score: float
    held_out: float | None


@dataclass(frozen=True)
class BenchmarkReport:
    """The measurements of several algorithms on the same hypotheses.

    Attributes:
        seeds: number of seeds of each.
        optimum: the scores of the best weights of all, if they were searched.
    """

    JSON_KEYS: ClassVar = (
        "signature sentences held_out_sentences hypotheses seeds start optimum? algorithms"
    )

    signature: str
    sentences: int
    held_out_sentences: int
    hypotheses: int
    seeds: int
    start: StartScores
    algorithms: tuple[BenchmarkResult | Refusal, ...]
    optimum: BenchmarkResult | Refusal | None = None


def bench_optimizers(options: BenchOptimizersCommand) -> None:
    """Compare the scores of algorithms on the same lists and starting weights."""
    values, places = dict(options.settings or {}), options.places
    is_quiet = options.quiet or options.json
    if "list-format" in values:
        values["format"] = values.pop("list-format")
    if len(places) == 1 and places[0].is_dir():
        if "names" in values:
            raise UsageError("--names requires n-best lists: a store has its own names")
        values["from"] = places[0]
    else:
        values["nbest"] = places
    settings = make_learning_settings(values)
    wanted = (
        [name.strip() for name in options.algorithms.split(",")]
        if options.algorithms
        else list(algorithms())
    )
    optimizers = bind_settings([algorithm(name) for name in wanted], settings.options)
    for path in settings.input_paths:
        path.stat()
    lists = wrap_files(settings.nbest)
    print_formats(lists, settings.lists, quiet=is_quiet)
    sources = GivenData(lists=lists)
    with progress_bar(is_quiet) as progress:
        data = read_data(settings, progress, sources)
        earlier = read_earlier(settings, progress, sources) if options.in_turn else []
    tasks = make_tasks(
        data,
        earlier,
        held_out_share=settings.held_out or 0.0,
        folds=settings.folds or 0,
        seed=options.split_seed,
    )
    table = _Table(wanted, data.signature, has_gaps=options.optimum)
    if not options.json:
        _print_head(data, tasks, options.seeds)
        table.begin(*score_tasks(tasks))
    optimum = None
    if options.optimum:
        with progress_bar(is_quiet) as progress:
            optimum = find_optimum(tasks, progress)
        if not options.json:
            table.add(optimum)
    results: list[BenchmarkResult | Refusal] = []
    for optimizer in optimizers:
        # A bar for each algorithm, since rows of the table are printed between them.
        with progress_bar(is_quiet) as progress:
            result = measure_optimizer(tasks, optimizer, options.seeds, progress)
        results.append(result.compare(optimum) if isinstance(result, BenchmarkResult) else result)
        if not options.json:
            table.add(results[-1])
    table.end()
    if options.json:
        print_record(
            BenchmarkReport(
                data.signature,
                len(data.sentences),
                sum(task.n_held_out for task in tasks),
                data.problem.tuning_set.n_hyps,
                options.seeds,
                StartScores(*score_tasks(tasks)),
                tuple(results),
                optimum,
            )
        )


def _print_head(data: LearningData, tasks: Sequence[BenchmarkTask], seeds: int) -> None:
    """Print the task."""
    print(f"{data.description}; seeds 1 to {seeds}\n{explain_shown_scores(data.signature)}")
    if tasks[0].earlier:
        print(f"learned from {len(tasks[0].earlier) + 1} decodings in turn")
    if len(tasks) > 1:
        print(f"held out: {len(tasks)} folds, each scored with weights from the others")
    elif tasks[0].n_held_out:
        print(f"held out: {tasks[0].n_held_out} of the sentences")
    print()


class _Table:
    """The table of results: as text each row at once, since the next may take minutes."""

    def __init__(self, names: Sequence[str], signature: str, *, has_gaps: bool) -> None:
        self._width = max(map(len, ["algorithm", *([OPTIMUM] if has_gaps else []), *names]))
        self._has_gaps = has_gaps
        self._signature = signature
        self._rows: list[Sequence[str]] = []

    def begin(self, score: float, held_out: float | None) -> None:
        """Print the head and the scores of the starting weights."""
        scores = [score] if held_out is None else [score, held_out]
        heads = ["score", "held out"][: len(scores)]
        last = ["CPU s", "active", *(["gap"] if self._has_gaps else [])]
        self._add(["algorithm", *heads, *last])
        shown = [_format_score(self._signature, value) for value in scores]
        self._add(["(start)", *shown, *[""] * len(last)])

    def add(self, result: BenchmarkResult | Refusal) -> None:
        """Print the scores of an algorithm."""
        cells = _cells(result, self._signature)
        if self._has_gaps and isinstance(result, BenchmarkResult):
            gap = result.gap
            cells.append("" if gap is None else _join_deviation(f"{gap.mean:.4f}", gap))
        self._add(cells)

    def end(self) -> None:
        """Print the whole table, if its layout is not text."""
        if self._rows:
            head, *rows = self._rows
            print_table(head, [[*row, *[""] * (len(head) - len(row))] for row in rows], left=1)

    def _add(self, cells: Sequence[str]) -> None:
        if current_layout() is not TableLayout.TEXT:
            self._rows.append(cells)
            return
        widths = [self._width, *[_WIDTH] * (len(cells) - 1)]
        print(format_row(cells, widths, left=1, last=1 if len(cells) == 2 else 0), flush=True)


def _cells(result: BenchmarkResult | Refusal, signature: str) -> list[str]:
    """Return a row of the table: two cells if the algorithm rejected the lists."""
    if isinstance(result, Refusal):
        return [result.algorithm, f"refused: {result.refusal}"]
    scores = [values for values in (result.score, result.held_out) if values is not None]
    cells = [result.algorithm, *(_format_mean(signature, values) for values in scores)]
    return [*cells, f"{result.cpu_seconds.mean:.1f}", f"{result.active.mean:.0f}"]


def _format_mean(signature: str, values: SeedValues) -> str:
    """Return ``mean ± deviation``, or the mean alone for one seed."""
    return _join_deviation(_format_score(signature, values.mean), values)


def _join_deviation(mean: str, values: SeedValues) -> str:
    return mean if values.deviation is None else f"{mean} ± {values.deviation:.4f}"


def _format_score(signature: str, score: float) -> str:
    return f"{display_score(signature, score):.4f}"
