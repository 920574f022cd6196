"""``mosesplug compare``: test whether systems differ by more than chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from mosesplug.cli.shared.parameters import (
    BootstrapSamples,
    Metrics,
    Quiet,
    RequiredReferences,
    Seed,
)
from mosesplug.errors import UsageError

if TYPE_CHECKING:
    from mosesplug.evaluation.comparison import SystemScore

__all__ = ["compare"]


class TableFormat(StrEnum):
    """The format of the table."""

    TEXT = "text"
    MARKDOWN = "markdown"
    LATEX = "latex"
    JSON = "json"


def compare(
    systems: Annotated[
        list[str],
        typer.Argument(
            metavar="SYSTEM...",
            help="The baseline first: FILE,... or NAME=FILE,... or a working directory.",
        ),
    ],
    refs: RequiredReferences,
    metric: Metrics = None,
    samples: BootstrapSamples = 1000,
    trials: Annotated[
        int, typer.Option(min=1, help="Trials of approximate randomisation.")
    ] = 10_000,
    seed: Seed = 1,
    layout: Annotated[
        TableFormat, typer.Option("--format", help="The format of the table.")
    ] = TableFormat.TEXT,
    quiet: Quiet = False,
) -> None:
    """Test whether systems differ from the first by more than chance.

    Several files of one system are runs with different optimizer seeds. A working directory stands
    for its tuned translations of the tuning set, one for each of its runs.

    p(AR) is from approximate randomisation (Riezler & Maxwell 2005), stratified for several runs
    (Clark et al. 2011). p(boot) is from the paired bootstrap, and wins is the share of its samples
    in which the system is better (Koehn 2004), for systems of one run each. s_sel is the standard
    deviation over texts drawn from this one, s_opt that over the runs. For error rates (TER, WER,
    CER, MER, PER, CDER), less is better.

    Example: mosesplug compare base=b1.en,b2.en,b3.en new=n1.en,n2.en,n3.en --refs test.en
    """
    from formats.references import read_references
    from mosesplug.api.scoring import compare_all
    from mosesplug.cli.shared.output import print_json, progress_bar
    from mosesplug.evaluation.comparison import parse_systems
    from mosesplug.evaluation.scoring import DEFAULT_METRICS

    if len(systems) < 2:
        raise UsageError("give two systems or more, the baseline first")
    if not samples:
        raise UsageError("--samples must be at least 1")
    compared, lines = parse_systems(systems), read_references(refs)
    with progress_bar(quiet) as progress:
        scores = compare_all(
            compared,
            lines,
            metric or DEFAULT_METRICS,
            samples=samples,
            trials=trials,
            seed=seed,
            progress=progress,
        )
    if layout is TableFormat.JSON:
        print_json([asdict(score) for score in scores])
    else:
        _print(scores, layout)


def _print(scores: Sequence[SystemScore], layout: TableFormat) -> None:
    """Print the table, then the signatures."""
    from mosesplug.cli.shared.tables import format_latex, format_markdown, print_table
    from mosesplug.reporting.comparison import tabulate_systems

    head, rows = tabulate_systems(scores)
    signatures = dict.fromkeys(score.signature for score in scores)
    match layout:
        case TableFormat.MARKDOWN:
            lines = [*format_markdown(head, rows, 2), "", *(f"`{each}`" for each in signatures)]
            print("\n".join(lines))
        case TableFormat.LATEX:
            lines = [*format_latex(head, rows, 2), *(f"% {each}" for each in signatures)]
            print("\n".join(lines))
        case _:
            print_table(head, rows, left=2)
            print("\n".join(["", *signatures]))
