"""``mosesplug report``: a run as one HTML page, or one of its figures as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mosesplug.errors import UsageError

__all__ = ["report"]


def report(
    store: Annotated[
        Path, typer.Argument(metavar="STORE", help="A working directory, or the store in it.")
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="The page [report.html]."),
    ] = None,
    png: Annotated[
        str | None,
        typer.Option(
            metavar="FIGURE",
            help="Write this figure as a PNG instead: scores, weights, features, surfaces, growth, "
            "coverage, times, lattice or envelope [FIGURE.png].",
        ),
    ] = None,
    refs: Annotated[
        Path | None, typer.Option(help="The references, to be shown: a file, or a prefix.")
    ] = None,
    source: Annotated[Path | None, typer.Option(help="The input, to be shown.")] = None,
    sentences: Annotated[
        int, typer.Option(min=0, help="How many of the worst and of the best sentences to show.")
    ] = 5,
    sentence: Annotated[
        int | None,
        typer.Option(min=0, help="Whose search graph to draw, counted from 0; else a clear one."),
    ] = None,
    dpi: Annotated[int, typer.Option(min=50, help="Of a PNG, dots per inch.")] = 300,
    title: Annotated[str | None, typer.Option(help="Of the page; else the store's path.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="Print errors only.")] = False,
) -> None:
    """A run as one HTML page that needs nothing else: curves, weights, features, sentences.

    The store is read and not changed; a run may be going on. Figures need matplotlib: install
    mosesplug[report].

    Example: mosesplug report tuning --source dev.de --refs dev.en -o report.html
    """
    from formats.references import read_references
    from formats.text import read_lines, write_atomic
    from mosesplug.cli.shared.output import progress_bar
    from mosesplug.inspection.report import STEPS, report_steps
    from mosesplug.inspection.run import opened
    from mosesplug.inspection.texts import Texts, mark_invalid_utf8
    from mosesplug.report.figures import FIGURES, available
    from mosesplug.report.figures import png as drawn
    from mosesplug.report.page import page

    if png is not None and png not in FIGURES:
        raise UsageError(f"there is no figure {png!r}: there are {', '.join(FIGURES)}")
    if not available():
        raise UsageError("figures need matplotlib: pip install 'mosesplug[report]'")
    texts = Texts(
        read_lines(source) if source is not None else (),
        read_references(refs) if refs is not None else (),
    )
    with opened(store) as run, progress_bar(quiet) as progress:
        steps = enumerate(report_steps(run, texts, sentences, sentence), start=1)
        for done, data in steps:  # noqa: B007 - the last one is whole
            progress(done, len(STEPS), "parts of the report")
    if png is not None:
        path, content = output or Path(f"{png}.png"), drawn(png, data, dpi)
    else:
        path = output or Path("report.html")
        content = mark_invalid_utf8(page(data, title or f"Tuning in {store}")).encode()
    write_atomic(path, content)
    if not quiet:
        print(path)
