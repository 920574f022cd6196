"""``mosesplug report``: a run as one HTML page, or one figure as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.shared.completion import complete_metrics
from mosesplug.cli.shared.inputs import OUTPUT
from mosesplug.cli.shared.parameters import Quiet, References, SentenceIdsOfLines, Source, Store


def report(
    store: Store,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page [report.html]."),
        OUTPUT,
    ] = None,
    png: Annotated[
        str | None,
        typer.Option(metavar="FIGURE", help="Write this figure as PNG instead [FIGURE.png]."),
    ] = None,
    refs: References = None,
    source: Source = None,
    ids: SentenceIdsOfLines = None,
    sentences: Annotated[
        int, typer.Option(min=0, help="Number of worst and of best sentences to show.")
    ] = 5,
    sentence: Annotated[
        int | None, typer.Option(min=0, help="The sentence whose search graph is drawn.")
    ] = None,
    dpi: Annotated[int, typer.Option(min=50, help="Dots per inch of a PNG.")] = 300,
    report_metric: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Show a metric that was not optimized; repeatable.",
            autocompletion=complete_metrics,
        ),
    ] = None,
    title: Annotated[str | None, typer.Option(help="Title of the page [the store's path].")] = None,
    quiet: Quiet = False,
) -> None:
    """Write an HTML report of a run.

    Figures: scores, weights, features, surfaces, growth, coverage, times, lattice, envelope. They
    need matplotlib: install mosesplug[report]. The store is only read; a run may be in progress.

    Example: mosesplug report tuning --source dev.de --refs dev.en -o report.html
    """
    from mosesplug.api.run import report as write_report
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.cli.shared.stdout_files import goes_to_stdout

    with progress_bar(quiet) as progress:
        path = write_report(
            store,
            output,
            figure=png,
            references=refs,
            source=source,
            ids=ids,
            sentences=sentences,
            sentence=sentence,
            dpi=dpi,
            title=title,
            report_metrics=report_metric or (),
            progress=progress,
        )
    if not (quiet or goes_to_stdout(output)):
        print(path)
