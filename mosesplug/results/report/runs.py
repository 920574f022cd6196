"""The page of one run or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from mosesplug.escapes import mark_invalid_utf8
from mosesplug.metrics import Metric
from mosesplug.results.report.explorer.page import make_script
from mosesplug.results.report.explorer.run_data import gather_explorer
from mosesplug.results.report.gather import STEPS, gather_report_steps
from mosesplug.results.report.page import render_pages
from mosesplug.results.views.importing import open_as_store
from mosesplug.results.views.run import StoredRun, open_run
from mosesplug.results.views.texts import ParallelText
from mosesplug.store import NBestStore
from mosesplug.tuning.workdir.workspace import Workspace

_STEPS = (*STEPS, "lists to explore")
"""The steps of the report of a run, in order."""


@dataclass(frozen=True)
class RunSource:
    """A run of a report, with the texts of its tuning set.

    Attributes:
        path: its working directory or store, or the working directory of ``mert-moses.pl``.
        opened: the store, if this process has it open.
        references, source: files of the texts; None if they are unknown.
        ids: whether their lines begin with sentence ids; None: if they look so.
    """

    path: Path
    opened: NBestStore | None = None
    references: Path | None = None
    source: Path | None = None
    ids: bool | None = None

    @contextmanager
    def open(self) -> Iterator[tuple[StoredRun, ParallelText]]:
        """Open the run with its texts.

        Raises:
            StoreError, DataError: the run cannot be read.
            FormatError: the texts cannot be read.
        """
        with (
            open_as_store(self.path, self.references, self.source) as place,
            open_run(place, opened=self.opened) as stored,
        ):
            yield stored, ParallelText.read(self.source, self.references, stored.store, self.ids)


def render_runs(
    runs: Sequence[RunSource],
    title: str | None,
    show_progress: Callable[[int, int, str], None],
    *,
    examples: int,
    lattice: int | None,
    watched: Sequence[str | Metric],
    sentences: int | None,
    most_bytes: float | None,
) -> str:
    """Return the page of runs as HTML.

    Args:
        runs: at least one.
        title: title of the page; None names the working directories.
        show_progress: is called with the steps done, their number, and a description.
        examples, lattice, watched: as for ``gather_report_steps``.
        sentences: number of sentences whose lists the page holds; None holds all.
        most_bytes: largest size of the lists of all runs; None: unlimited.

    Raises:
        UsageError: a metric cannot be reported, or the size has no room for the hypotheses that
            scores need.
        StoreError, DataError, FormatError: a run or its texts cannot be read.
    """
    names = _name_runs([run.path for run in runs])
    most = None if most_bytes is None else most_bytes / len(runs)
    reports, explorers = [], []
    for number, run in enumerate(runs):
        parts = range(number * len(_STEPS), len(runs) * len(_STEPS))
        with run.open() as (stored, text):
            steps = gather_report_steps(stored, text, examples, lattice, watched)
            for done, data in enumerate(steps, start=parts.start + 1):  # noqa: B007 - the last one
                show_progress(done, parts.stop, "parts of the report")
            reports.append(data)
            explorers.append(gather_explorer(stored, text, data, names[number], most, sentences))
            show_progress(parts.start + len(_STEPS), parts.stop, "parts of the report")
    titles = [f"Tuning in {run.path}" for run in runs]
    whole = title or (titles[0] if len(runs) == 1 else f"Tuning in {', '.join(names)}")
    titles = [whole] if len(runs) == 1 else titles
    return render_pages(reports, titles, whole, make_script(explorers))


def _name_runs(paths: Sequence[Path]) -> list[str]:
    """Return distinct names of runs: those of their directories, or their paths."""
    workspaces = [Workspace(path.parent, 0) for path in paths]
    directories = [
        path.parent if workspace.store == path else path
        for path, workspace in zip(paths, workspaces, strict=True)
    ]
    names = [directory.resolve().name or str(directory) for directory in directories]
    if len(set(names)) < len(names):
        names = [str(path) for path in paths]
    if len(set(names)) < len(names):
        names = [f"{name} ({number})" for number, name in enumerate(names, start=1)]
    return [mark_invalid_utf8(name) for name in names]
