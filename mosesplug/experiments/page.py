"""The page of an experiment: its table, and figures of scores, cost and sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from html import escape

import numpy as np

from mosesplug.experiments.table import (
    ExperimentRow,
    ExperimentTable,
    list_notes,
    tabulate_experiment,
)
from mosesplug.results.render.tables import layout_table
from mosesplug.results.report.bars import (
    BAR_STYLE,
    N_COLORS,
    BarGroup,
    render_bars,
    render_legend,
)
from mosesplug.results.report.document import render_document, render_section
from mosesplug.results.report.scatter import SCATTER_STYLE, Axis, Mark, render_scatter
from mosesplug.results.scores.trade_offs import find_front

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
    for heading, note, axis, values in (
        (
            "Score and CPU time",
            "CPU seconds of the tuning, mean over the seeds. Baselines are red.",
            Axis("CPU s", is_turned=True),
            [row.cpu for row in table.rows],
        ),
        (
            "Score and active features",
            "Number of weights that are not 0. Baselines are red.",
            Axis("active"),
            [row.active for row in table.rows],
        ),
    ):
        if len(set(values)) > 1:
            kinds = ["start" if row.label == row.baseline else "learned" for row in table.rows]
            marks = [
                replace(mark, label=name)
                for mark, name in zip(
                    _mark(table.rows, names, values, kinds, axis), names, strict=True
                )
            ]
            yield render_section(heading, note, render_scatter(marks, axis, score))
    yield from _draw_decoding_time(table, names, score)
    yield from _draw_learning_curves(table, names, score)


def _draw_decoding_time(table: ExperimentTable, names: Sequence[str], score: Axis) -> Iterator[str]:
    """Yield the scores by the time of decoding, unless it is unknown."""
    known = [
        (row, name, row.test_cpu)
        for row, name in zip(table.rows, names, strict=True)
        if row.test_cpu is not None
    ]
    if len({seconds for _, _, seconds in known}) < 2:
        return
    axis = Axis("test CPU s", is_turned=True)
    sign = -1.0 if table.is_error_rate else 1.0
    front = find_front(np.array([(sign * row.mean, -seconds) for row, _, seconds in known]))
    marks = []
    for place, (row, name, seconds) in enumerate(known):
        kind = "start" if row.label == row.baseline else "learned"
        text = f"{name}: {row.mean:.2f}, {seconds:.1f} {axis.label}"
        marks.append(Mark(seconds, row.mean, kind, text, 5.0, place in front, name))
    yield render_section(
        "Score and decoding time",
        "CPU seconds of translating all test sets, mean over the seeds, model loading included. The"
        " line connects rows that no other one beats in both. Baselines are red.",
        render_scatter(marks, axis, score),
    )


def _draw_learning_curves(
    table: ExperimentTable, names: Sequence[str], score: Axis
) -> Iterator[str]:
    """Yield the scores by the size of the tuning set, unless all have one size."""
    if len({row.sentences for row in table.rows}) == 1:
        return
    series = [
        f"{row.system} {row.features}" if "features" in table.varying else row.system
        for row in table.rows
    ]
    order = list(dict.fromkeys(series))
    axis = Axis("sentences")
    kinds = [f"c{order.index(name) % N_COLORS}" for name in series]
    sizes = [float(row.sentences) for row in table.rows]
    marks = _mark(table.rows, names, sizes, kinds, axis)
    curves: dict[tuple[str, str], list[Mark]] = {}
    for row, name, mark in zip(table.rows, series, marks, strict=True):
        curves.setdefault((name, row.input), []).append(mark)
    lines = [sorted(curve, key=lambda mark: mark.x) for curve in curves.values()]
    plot = render_scatter(marks, axis, score, [line for line in lines if len(line) > 1])
    yield render_section(
        "Learning curves",
        "Number of source sentences of the tuning set. Lines connect tuning sets from one file.",
        render_legend(order) + plot,
    )


def _mark(
    rows: Sequence[ExperimentRow],
    names: Sequence[str],
    values: Sequence[float],
    kinds: Sequence[str],
    axis: Axis,
) -> list[Mark]:
    return [
        Mark(value, row.mean, kind, f"{name}: {row.mean:.2f}, {value:.0f} {axis.label}", 5.0)
        for row, name, value, kind in zip(rows, names, values, kinds, strict=True)
    ]
