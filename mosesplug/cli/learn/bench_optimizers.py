"""``mosesplug bench-optimizers``: all algorithms on the same lists, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mosesplug.cli.shared.parameters import (
    THREADS,
    Json,
    Lists,
    MetricName,
    MetricSettings,
    Threads,
)
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.cli.learn.optimize_input import Given
    from mosesplug.learning.benchmark import Outcome, Task
    from mosesplug.optimizers import Progress

__all__ = ["bench_optimizers", "given_places"]

_WIDTH = 15
"""Of a figure in a plain table."""


def bench_optimizers(
    places: Lists,
    refs: Annotated[
        Path | None, typer.Option(help="The reference; or the prefix of several: REFS0, ...")
    ] = None,
    chosen: Annotated[
        str | None,
        typer.Option("--algorithms", metavar="A,B,...", help="Which, in this order [all]."),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, metavar="N", help="Run each with seeds 1 to N.")] = 3,
    held_out: Annotated[
        float | None,
        typer.Option(
            "--held-out",
            metavar="SHARE",
            help="Keep this share of the sentences, as 0.2, out of the learning, the same for all, "
            "and score on it, too.",
        ),
    ] = None,
    split_seed: Annotated[
        int, typer.Option(min=0, metavar="N", help="With --held-out, of the draw of sentences.")
    ] = 1,
    init: Annotated[
        Path | None,
        typer.Option(
            help="Starting weights [of lists: all equal; of a store: those of its first iteration]."
        ),
    ] = None,
    sparse_init: Annotated[
        Path | None, typer.Option(help="Starting weights of sparse features, name value a line.")
    ] = None,
    names: Annotated[
        str | None, typer.Option(help="Names of the values of unlabelled lists, comma-separated.")
    ] = None,
    metric: MetricName = None,
    metric_settings: MetricSettings = "",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="NAME=VALUE",
            help="A setting, for every algorithm that has it, as epochs=3; may be repeated [each "
            "has its defaults].",
        ),
    ] = None,
    threads: Threads = THREADS,
    format_: Annotated[
        Literal["plain", "markdown"],
        typer.Option("--format", metavar="plain|markdown", help="Of the table."),
    ] = "plain",
    json: Json = False,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print the table only.")] = False,
) -> None:
    """Run every algorithm on the same lists, from the same start, and compare what they reach.

    Scores are those of decoding the merged lists, mean and standard deviation over the seeds;
    seconds are CPU seconds of all threads for one run, loading and compiling left out; "active" are
    weights that are not 0. An algorithm that refuses the lists is listed with its reason. Rows
    appear as they are found.

    Examples: mosesplug bench-optimizers tuning --seeds 5 --held-out 0.2;
    mosesplug bench-optimizers run*.best100.out.gz --refs dev.en --init run1.dense
    --algorithms mert,kbmira,pro --format markdown
    """
    if json and format_ != "plain":
        raise UsageError("--json and --format exclude each other")

    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.learning.benchmark import measured, options_of
    from mosesplug.optimizers import algorithm, algorithms

    wanted = [each.strip() for each in chosen.split(",")] if chosen else list(algorithms())
    tuners = [algorithm(name) for name in wanted]
    options = options_of(tuners, _settings(option or []))
    with progress_bar(quiet or json) as told:
        given = given_places(
            places, refs, metric, metric_settings, init, sparse_init, names, threads, told
        )
    task = _task(given, held_out, split_seed)
    before = task.start_scores
    found = []
    if not json:
        _print_head(given, task, seeds, wanted, format_)
    for each in tuners:
        with progress_bar(
            quiet or json
        ) as told:  # its console takes what is printed while it is shown
            found.append(measured(task, each, options[each.name], seeds, told))
        if not json:
            _print_row(_cells(found[-1], before[1] is not None), wanted, format_)
    if json:
        print_json(
            {
                "signature": given.signature,
                "sentences": len(given.listed),
                "held_out_sentences": task.n_held_out,
                "hypotheses": given.problem.tuning_set.n_hyps,
                "seeds": seeds,
                "start": {"score": before[0], "held_out": before[1]},
                "algorithms": [outcome.as_record() for outcome in found],
            }
        )


def given_places(
    places: Sequence[Path],
    refs: Path | None,
    metric: str | None,
    settings: str,
    init: Path | None,
    sparse_init: Path | None,
    names: str | None,
    threads: int,
    told: Progress,
) -> Given:
    """The lists of a store, or of files.

    Raises:
        UsageError: files without references.
        MosesplugError: they cannot be read.
    """
    from mosesplug.cli.learn.optimize_input import Files, given_lists
    from mosesplug.cli.learn.optimize_store import given_store
    from mosesplug.metrics import metric as find_metric

    for path in (*places, init, sparse_init):
        if path is not None:
            path.stat()
    if len(places) == 1 and places[0].is_dir():
        if names is not None:
            raise UsageError("--names belongs to n-best lists: a store has its names")
        return given_store(
            places[0],
            None,
            metric=metric,
            settings=settings,
            references=refs,
            init=init,
            sparse_init=sparse_init,
            threads=threads,
            told=told,
        )
    if refs is None:
        raise UsageError("no reference is given: use --refs FILE")
    columns = None if names is None else [name.strip() for name in names.split(",")]
    files = Files(places, refs, init, sparse_init, columns)
    return given_lists(files, find_metric(metric or "BLEU", settings), threads, told)


def _settings(options: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` texts."""
    found = {}
    for text in options:
        name, equals, value = text.partition("=")
        if not (name and equals):
            raise UsageError(f"--option is NAME=VALUE, not {text!r}")
        found[name] = value
    return found


def _task(given: Given, share: float | None, seed: int) -> Task:
    from mosesplug.learning.benchmark import Task
    from mosesplug.learning.cross_validation import divided

    left_out = None if share is None else divided(given.listed, share, seed)[1]
    return Task.of(given.problem, given.start.weights, left_out)


def _print_head(given: Given, task: Task, seeds: int, names: Sequence[str], style: str) -> None:
    """What is compared, and what the start scores."""
    from mosesplug.evaluation.error_rates import explain_signature

    score, held_out = task.start_scores
    print(f"{given.summary}; seeds 1 to {seeds}\n{explain_signature(given.signature)}")
    if task.n_held_out:
        print(f"held out: {task.n_held_out} of the sentences")
    print()
    head = ["algorithm", "score", "held out", "CPU s", "active"]
    row = ["(start)", f"{score:.4f}", "" if held_out is None else f"{held_out:.4f}", "", ""]
    if held_out is None:
        del head[2], row[2]
    if style == "markdown":
        print(f"| {' | '.join(head)} |\n|{'---|' * len(head)}")
    else:
        _print_row(head, names, style)
    _print_row(row, names, style)


def _cells(outcome: Outcome, held_out: bool) -> list[str]:
    """A row of the table; of an algorithm that did not run, two cells."""
    if outcome.refusal is not None:
        return [outcome.algorithm, f"refused: {outcome.refusal}"]
    record: dict[str, Any] = outcome.as_record()
    cells = [outcome.algorithm, _spread(record["score"])]
    if held_out:
        cells.append(_spread(record["held_out"]))
    return [*cells, f"{record['cpu_seconds']['mean']:.1f}", f"{record['active']['mean']:.0f}"]


def _spread(figures: dict[str, Any]) -> str:
    """``mean ± deviation``, or one score alone."""
    deviation = figures["deviation"]
    return f"{figures['mean']:.4f}" + ("" if deviation is None else f" ± {deviation:.4f}")


def _print_row(cells: Sequence[str], names: Sequence[str], style: str) -> None:
    """One line at once: the next may take minutes."""
    if style == "markdown":
        print(f"| {' | '.join(cells)} |", flush=True)
        return
    first = max(map(len, ["algorithm", *names]))
    rest = cells[1:] if len(cells) == 2 else [cell.rjust(_WIDTH) for cell in cells[1:]]
    print("  ".join([cells[0].ljust(first), *rest]).rstrip(), flush=True)
