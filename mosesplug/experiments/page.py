"""The page of an experiment: its table, and figures of scores, cost and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape

from mosesplug.experiments.table import (
    ExperimentRow,
    ExperimentTable,
    list_notes,
    tabulate_experiment,
)
from mosesplug.results.render.tables import layout_table
from mosesplug.results.report.bars import BAR_STYLE, BarGroup, render_bars, render_legend
from mosesplug.results.report.document import render_document, render_section
from mosesplug.results.report.scatter import SCATTER_STYLE, Axis, Mark, render_scatter

_STYLE = BAR_STYLE + SCATTER_STYLE + "body { max-width: 78rem; }\n"


def render_experiment(table: ExperimentTable, title: str) -> str:
    """Return the page."""
    notes = "".join(f'<p class="note">{escape(note)}</p>\n' for note in list_notes(table))
    head = f"<h1>{escape(title)}</h1>\n{notes}"
    sections = [head]
    if table.rows:
        [shown] = layout_table(tabulate_experiment(table), "html")
        signatures = "".join(
            f'<p class="note"><code>{escape(text)}</code></p>\n' for text in table.signatures
        )
        sections.append(render_section("Scores and cost", "", shown + signatures))
        sections += _draw(table)
    return render_document(title, sections, _STYLE)


def _draw(table: ExperimentTable) -> Iterator[str]:
    """Yield the sections with figures."""
    metric = table.rows[0].tests[0].metric
    groups = [
        BarGroup(
            test,
            tuple(row.tests[place].mean for row in table.rows),
            tuple(f"{row.tests[place].mean:.2f}" for row in table.rows),
        )
        for place, test in enumerate(table.tests)
    ]
    names = [
        " ".join(getattr(row, part) for part in ("system", *table.varying)) for row in table.rows
    ]
    bars = render_legend(names) + render_bars(groups, f"{metric} of each test set")
    yield render_section(f"{metric} of each test set", "Means over the seeds.", bars)
    score = Axis(f"mean {metric}", table.is_error_rate)
    for heading, note, attribute in (
        ("Score and CPU time", "CPU seconds of the tuning, mean over the seeds.", "cpu"),
        ("Score and active features", "Number of weights that are not 0.", "active"),
        ("Score and size of the tuning set", "Number of source sentences.", "sentences"),
    ):
        values = [float(getattr(row, attribute)) for row in table.rows]
        if len(set(values)) > 1:
            label = {"cpu": "CPU s", "active": "active", "sentences": "sentences"}[attribute]
            marks = _mark(table.rows, names, values, label)
            plot = render_scatter(marks, Axis(label, attribute == "cpu"), score)
            yield render_section(heading, note, plot)


def _mark(
    rows: Sequence[ExperimentRow], names: Sequence[str], values: Sequence[float], label: str
) -> list[Mark]:
    return [
        Mark(
            value,
            row.mean,
            "start" if row.label == row.baseline else "learned",
            f"{name}: {row.mean:.2f}, {value:.0f} {label}",
            5.0,
        )
        for row, name, value in zip(rows, names, values, strict=True)
    ]
