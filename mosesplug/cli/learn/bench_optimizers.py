"""``mosesplug bench-optimizers``: compare algorithms on the same lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mosesplug.cli.shared.completion import complete_algorithms
from mosesplug.cli.shared.parameters import Json, Lists, Quiet
from mosesplug.cli.shared.setting_options import (
    add_parameters,
    make_parameters,
    print_formats,
    take_values,
)
from mosesplug.errors import UsageError
from mosesplug.options import list_options
from mosesplug.settings.learning import LearningSettings, make_learning_settings
from mosesplug.settings.lists import ListSettings

if TYPE_CHECKING:
    from mosesplug.learning.benchmark import BenchmarkResult, BenchmarkTask
    from mosesplug.learning.inputs import LearningData

__all__ = ["bench_optimizers"]

_WIDTH = 15
"""Width of a number in a plain table."""

_SHARED = frozenset(
    {"refs", "init", "sparse-init", "metric", "metric-settings", "option", "threads"}
    | {"held-out", "folds", "iterations"}
    | {each.name for each in list_options(ListSettings)}
)
_HELP = {
    "iterations": "Iterations of STORE; -N: the newest N",
    "folds": "Score each of K folds with weights from the others",
}
_SETTINGS = tuple(
    # --format is that of the table.
    replace(each, name="list-format")
    if each.name == "format"
    else replace(each, help=_HELP.get(each.name, each.help))
    for each in list_options(LearningSettings)
    if each.name in _SHARED
)
"""Settings of ``optimize`` that make sense here."""


def _bench_optimizers(
    places: Lists,
    chosen: Annotated[
        str | None,
        typer.Option(
            "--algorithms",
            metavar="NAME,...",
            help="The algorithms to run [all]",
            autocompletion=complete_algorithms,
            rich_help_panel="Learning",
        ),
    ] = None,
    seeds: Annotated[
        int,
        typer.Option(
            min=1, metavar="N", help="Run each with seeds 1 to N", rich_help_panel="Learning"
        ),
    ] = 3,
    in_turn: Annotated[
        bool,
        typer.Option(
            "--in-turn",
            help="Learn after each list or iteration, as a run does",
            rich_help_panel="Learning",
        ),
    ] = False,
    split_seed: Annotated[
        int,
        typer.Option(
            min=0,
            metavar="N",
            help="Seed of the choice of held-out sentences or folds",
            rich_help_panel="Held-out",
        ),
    ] = 1,
    json: Json = False,
    quiet: Quiet = False,
    **given: Any,
) -> None:
    """Compare the scores of algorithms on the same lists and starting weights.

    The table has the mean and standard deviation over the seeds of the score on the merged lists,
    the CPU seconds of one run in all threads, without loading and compiling, and the number of
    weights that are not 0. An algorithm that rejects the lists is listed with its reason. --option
    applies to every algorithm that has it. As in a run, the starting weights are divided by their
    L1 norm. With --in-turn, each list is learned from with the lists before it, from the weights
    of the list before. With --folds, weights are learned without each fold and scored on it.

    Examples: mosesplug bench-optimizers tuning --seeds 5 --held-out 0.2;
    mosesplug bench-optimizers run*.best100.out.gz --refs dev.en --init run1.dense
    --algorithms mert,kbmira,pro --format markdown
    """
    # Loaded here, since --help needs none of it.
    from formats.pipes import copy_pipes
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.learning.benchmark import (
        bind_settings,
        make_tasks,
        measure_optimizer,
        read_earlier,
        score_tasks,
    )
    from mosesplug.learning.data import read_data
    from mosesplug.learning.inputs import GivenData
    from mosesplug.optimizers import algorithm, algorithms

    values = take_values(_SETTINGS, given)
    if "list-format" in values:
        values["format"] = values.pop("list-format")
    if len(places) == 1 and places[0].is_dir():
        if "names" in values:
            raise UsageError("--names requires n-best lists: a store has its own names")
        values["from"] = places[0]
    else:
        values["nbest"] = places
    settings = make_learning_settings(values)
    wanted = [name.strip() for name in chosen.split(",")] if chosen else list(algorithms())
    optimizers = bind_settings([algorithm(name) for name in wanted], settings.options)
    for path in settings.input_paths:
        path.stat()
    lists = copy_pipes(settings.nbest)
    print_formats(lists, settings.lists, quiet=quiet or json)
    found = GivenData(lists=lists)
    with progress_bar(quiet or json) as progress:
        data = read_data(settings, progress, found)
        earlier = read_earlier(settings, progress, found) if in_turn else []
    tasks = make_tasks(
        data,
        earlier,
        held_out_share=settings.held_out or 0.0,
        folds=settings.folds or 0,
        seed=split_seed,
    )
    table = _Table(wanted, data.signature, has_held_out=tasks[0].held_out is not None)
    if not json:
        _print_head(data, tasks, seeds)
        table.begin(*score_tasks(tasks))
    results = []
    for optimizer in optimizers:
        # The console of each bar prints what is printed while the bar is shown.
        with progress_bar(quiet or json) as progress:
            results.append(measure_optimizer(tasks, optimizer, seeds, progress))
        if not json:
            table.add(results[-1])
    table.end()
    if json:
        score, held_out_score = score_tasks(tasks)
        print_json(
            {
                "signature": data.signature,
                "sentences": len(data.sentences),
                "held_out_sentences": sum(task.n_held_out for task in tasks),
                "hypotheses": data.problem.tuning_set.n_hyps,
                "seeds": seeds,
                "start": {"score": score, "held_out": held_out_score},
                "algorithms": [result.as_record() for result in results],
            }
        )


bench_optimizers = add_parameters(_bench_optimizers, make_parameters(_SETTINGS))


def _print_head(
    data: LearningData,
    tasks: Sequence[BenchmarkTask],
    seeds: int,
) -> None:
    """Print the task."""
    from mosesplug.metrics.error_rates import explain_shown_scores

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

    def __init__(self, names: Sequence[str], signature: str, *, has_held_out: bool) -> None:
        self._width = max(map(len, ["algorithm", *names]))
        self._signature = signature
        self._has_held_out = has_held_out
        self._rows: list[Sequence[str]] = []

    def begin(self, score: float, held_out: float | None) -> None:
        """Print the head and the scores of the starting weights."""
        self._add(["algorithm", "score", *(["held out"] * self._has_held_out), "CPU s", "active"])
        scores = [score] if held_out is None else [score, held_out]
        self._add(["(start)", *(_format_score(self._signature, each) for each in scores), "", ""])

    def add(self, result: BenchmarkResult) -> None:
        """Print the scores of an algorithm."""
        self._add(_cells(result, self._signature, self._has_held_out))

    def end(self) -> None:
        """Print the whole table, if its layout is not text."""
        from mosesplug.cli.shared.tables import print_table

        if self._rows:
            head, *rows = self._rows
            print_table(head, [[*row, *[""] * (len(head) - len(row))] for row in rows], left=1)

    def _add(self, cells: Sequence[str]) -> None:
        from mosesplug.cli.shared.layouts import TableLayout, current_layout
        from mosesplug.results.render.tables import format_row

        if current_layout() is not TableLayout.TEXT:
            self._rows.append(cells)
            return
        widths = [self._width, *[_WIDTH] * (len(cells) - 1)]
        print(format_row(cells, widths, left=1, last=1 if len(cells) == 2 else 0), flush=True)


def _cells(result: BenchmarkResult, signature: str, held_out: bool) -> list[str]:
    """Return a row of the table: two cells if the algorithm rejected the lists."""
    if result.refusal is not None:
        return [result.algorithm, f"refused: {result.refusal}"]
    record: dict[str, Any] = result.as_record()
    cells = [result.algorithm, _format_mean(signature, record["score"])]
    if held_out:
        cells.append(_format_mean(signature, record["held_out"]))
    return [*cells, f"{record['cpu_seconds']['mean']:.1f}", f"{record['active']['mean']:.0f}"]


def _format_mean(signature: str, values: dict[str, Any]) -> str:
    """Return ``mean ± deviation``, or the mean alone for one seed."""
    mean, deviation = _format_score(signature, values["mean"]), values["deviation"]
    return mean if deviation is None else f"{mean} ± {deviation:.4f}"


def _format_score(signature: str, score: float) -> str:
    from mosesplug.metrics.error_rates import display_score

    return f"{display_score(signature, score):.4f}"
