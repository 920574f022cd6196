"""Write the report of a run."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from formats.text import write_atomic
from mosesplug.api.progress import Progress, open_progress
from mosesplug.inspection.report import STEPS, gather_report_steps
from mosesplug.inspection.run import open_run
from mosesplug.inspection.texts import ParallelText, mark_invalid_utf8
from mosesplug.reporting.figures import check_figure, render_png, require_matplotlib
from mosesplug.reporting.page import render_page

__all__ = ["report"]


def report(
    working_dir: str | PathLike[str],
    output: str | PathLike[str] | None = None,
    *,
    figure: str | None = None,
    references: str | PathLike[str] | None = None,
    source: str | PathLike[str] | None = None,
    sentences: int = 5,
    sentence: int | None = None,
    dpi: int = 300,
    title: str | None = None,
    progress: Progress = None,
) -> Path:
    """Write one HTML page about a run: scores, weights, features, lists and sentences.

    Args:
        working_dir: the working directory of the run, or its store. It is only read, and the run
            may be in progress.
        output: the file; None writes ``report.html``, or the figure's name with ``.png``.
        figure: write this figure as PNG instead of the page; see ``Run.plot`` for the names.
        references: file of the references, or their prefix; None leaves them out.
        source: file of the source sentences; None leaves them out.
        sentences: number of the worst and of the best sentences to show.
        sentence: the sentence whose search graph is drawn; None selects a small one.
        dpi: dots per inch of a PNG.
        title: title of the page; None names the working directory.
        progress: None, True for a bar on stderr, or a function that is called with the parts done,
            the number of parts, and a description.

    Returns:
        The path of the file.

    Raises:
        UsageError: there is no such figure, the run has no data for it, or matplotlib is missing
            (``mosesplug[report]``).
        StoreError: there is no store, or it cannot be read.
        DataError: the run has no finished iteration yet, or the source or the references are not
            those of the run.
        FormatError: the source or the references cannot be read.

    Example:
        >>> import mosesplug
        >>> mosesplug.report("mert-work", "page.html", sentences=1).name
        'page.html'
    """
    if figure is not None:
        check_figure(figure)
    require_matplotlib()
    text = ParallelText.read(
        None if source is None else Path(source), None if references is None else Path(references)
    )
    with open_run(Path(working_dir)) as run, open_progress(progress) as show_progress:
        steps = enumerate(gather_report_steps(run, text, sentences, sentence), start=1)
        for done, data in steps:  # noqa: B007 - the last one is complete
            show_progress(done, len(STEPS), "parts of the report")
    if figure is not None:
        path, content = Path(output or f"{figure}.png"), render_png(figure, data, dpi)
    else:
        path = Path(output or "report.html")
        page = render_page(data, title or f"Tuning in {working_dir}")
        content = mark_invalid_utf8(page).encode()
    write_atomic(path, content)
    return path
