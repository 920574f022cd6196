"""Write the table of an experiment as text, Markdown, LaTeX, JSON and a page."""

from __future__ import annotations

import json
from pathlib import Path

from formats.text import write_atomic
from mosesplug.experiments.page import render_experiment
from mosesplug.experiments.planning import ExperimentPlan
from mosesplug.experiments.table import ExperimentTable, list_notes, tabulate_experiment
from mosesplug.results.render.tables import escape_latex, escape_markdown, layout_table


def write_table(table: ExperimentTable, plan: ExperimentPlan) -> Path:
    """Write ``table.txt``, ``.md``, ``.tex`` and ``.json``, and ``index.html``.

    Returns:
        The page.
    """
    directory = plan.experiment.directory
    rows, notes = tabulate_experiment(table), [*list_notes(table), *table.signatures]
    texts = {
        "table.txt": [*layout_table(rows, "text"), "", *notes],
        "table.md": [
            *layout_table(rows, "markdown"),
            *(line for note in notes for line in ("", escape_markdown(note))),
        ],
        "table.tex": [*layout_table(rows, "latex"), *(f"% {escape_latex(note)}" for note in notes)],
        "table.json": [json.dumps(table.as_json(), indent=1)],
    }
    directory.mkdir(parents=True, exist_ok=True)
    for name, lines in texts.items():
        write_atomic(directory / name, "".join(f"{line}\n" for line in lines).encode())
    page = directory / "index.html"
    write_atomic(page, render_experiment(table, plan.experiment.path.stem).encode())
    return page
