"""``mosesplug report``: a run as one HTML page, or one figure as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mosesplug.cli.shared.parameters import Quiet, References, Source, Store
from mosesplug.errors import UsageError

__all__ = ["report"]


def report(
    store: Store,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page [report.html]."),
    ] = None,
    png: Annotated[
        str | None,
        typer.Option(metavar="FIGURE", help="Write this figure as PNG instead [FIGURE.png]."),
    ] = None,
    refs: References = None,
    source: Source = None,
    sentences: Annotated[
        int, typer.Option(min=0, help="Number of worst and of best sentences to show.")
    ] = 5,
    sentence: Annotated[
        int | None, typer.Option(min=0, help="The sentence whose search graph is drawn.")
    ] = None,
    dpi: Annotated[int, typer.Option(min=50, help="Dots per inch of a PNG.")] = 300,
    title: Annotated[str | None, typer.Option(help="Title of the page [the store's path].")] = None,
    quiet: Quiet = False,
) -> None:
    """Write an HTML report of a run.

    Figures: scores, weights, features, surfaces, growth, coverage, times, lattice, envelope. They
    need matplotlib: install mosesplug[report]. The store is only read; a run may be in progress.

    Example: mosesplug report tuning --source dev.de --refs dev.en -o report.html
    """
    from formats.text import write_atomic
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.inspection.report import STEPS, gather_report_steps
    from mosesplug.inspection.run import open_run
    from mosesplug.inspection.texts import ParallelText, mark_invalid_utf8
    from mosesplug.reporting.figures import FIGURES, has_matplotlib, render_png
    from mosesplug.reporting.page import render_page

    if png is not None and png not in FIGURES:
        raise UsageError(f"there is no figure {png!r}: there are {', '.join(FIGURES)}")
    if not has_matplotlib():
        raise UsageError("figures need matplotlib: pip install 'mosesplug[report]'")
    text = ParallelText.read(source, refs)
    with open_run(store) as run, progress_bar(quiet) as progress:
        steps = enumerate(gather_report_steps(run, text, sentences, sentence), start=1)
        for done, data in steps:  # noqa: B007 - the last one is complete
            progress(done, len(STEPS), "parts of the report")
    if png is not None:
        path, content = output or Path(f"{png}.png"), render_png(png, data, dpi)
    else:
        path = output or Path("report.html")
        content = mark_invalid_utf8(render_page(data, title or f"Tuning in {store}")).encode()
    write_atomic(path, content)
    if not quiet:
        print(path)
