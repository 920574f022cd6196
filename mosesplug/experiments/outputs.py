"""Write the table of an experiment as text, Markdown, LaTeX, JSON and a page."""

from __future__ import annotations

from pathlib import Path

from formats.text import write_atomic
from mosesplug.experiments.page import render_experiment
from mosesplug.experiments.planning import ExperimentPlan
from mosesplug.experiments.table import ExperimentTable
from mosesplug.results.render.render import Layout, render

_FILES: dict[str, Layout] = {
    "table.txt": "text",
    "table.md": "markdown",
    "table.tex": "latex",
    "table.json": "json",
}


def write_table(table: ExperimentTable, plan: ExperimentPlan) -> Path:
    """Write ``table.txt``, ``.md``, ``.tex`` and ``.json``, and ``index.html``.

    Returns:
        The page.
    """
    directory = plan.experiment.directory
    directory.mkdir(parents=True, exist_ok=True)
    for name, layout in _FILES.items():
        text = render(table, layout).lstrip("\n")
        write_atomic(directory / name, text.encode())
    page = directory / "index.html"
    write_atomic(page, render_experiment(table, plan.experiment.path.stem).encode())
    return page
