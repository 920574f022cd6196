"""The report of a run: one self-contained HTML file.

The page is for screens of any width and for paper.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

import numpy as np

from mosesplug.errors import count_noun
from mosesplug.evaluation.error_rates import display_score, is_error_rate
from mosesplug.evaluation.trade_offs import find_front
from mosesplug.reporting.data import ReportData, SentenceFacts, WatchedScores
from mosesplug.reporting.document import render_document, render_section
from mosesplug.reporting.figures import render_svg
from mosesplug.reporting.scatter import SCATTER_STYLE, Axis, Mark, render_scatter
from mosesplug.reporting.tables import format_score, render_table

__all__ = ["render_page"]

_HELD_OUT = 4
"""Column of the held-out score in the table of iterations."""

_FIGURES = (
    ("Scores", "scores", "The oracle is found by a greedy search over all hypotheses so far."),
    ("Weights", "weights", "Those that each iteration was decoded with, over their L1 norm."),
    (
        "Error surfaces",
        "surfaces",
        "The score of the merged lists as one weight changes and all others stay; red: the result.",
    ),
    ("Lists", "growth", ""),
    (
        "Coverage",
        "coverage",
        "The best choice (greedy) among the first hypotheses of the last iteration's lists.",
    ),
    ("Time", "times", ""),
)


def render_page(data: ReportData, title: str) -> str:
    """Return the report of a run as an HTML page.

    Raises:
        UsageError: matplotlib is missing.
    """
    sections = [_render_head(data, title), _render_iterations(data)]
    left_out = set() if data.names else {"weights"}
    left_out |= set() if data.features else {"surfaces"}
    left_out |= set() if data.coverage is not None else {"coverage"}
    if data.watched_scores:
        sections.append(_render_watched(data))
    for heading, name, note in _FIGURES:
        if name not in left_out:
            sections.append(render_section(heading, note, _render_figure(name, data)))
    if data.features:
        sections.append(_render_features(data))
    if data.coverage is None:
        sections.append(
            '<p class="note">The lists of this run are in the stores of its shards. This page '
            "has no statistics of lists.</p>"
        )
    if data.sparse:
        sections.append(_render_sparse(data))
    if data.lattice is not None:
        sections.append(_render_lattice(data))
    if data.worst:
        sections.append(_render_sentences("Worst sentences", data, data.worst))
        sections.append(_render_sentences("Best sentences", data, data.best))
    sections.append(_render_configuration(data))
    return render_document(title, sections, SCATTER_STYLE if data.watched_scores else "")


def _render_head(data: ReportData, title: str) -> str:
    last = data.iterations[-1]
    best = max(facts.score for facts in data.iterations)
    return (
        f"<h1>{escape(title)}</h1>\n<p class=note>"
        f"{count_noun(len(data.iterations), 'iteration')}, "
        f"{data.metric} of the decoder's own translations from {data.iterations[0].score:.4f} to "
        f"{last.score:.4f} (best {best:.4f})</p>\n<p class=note><code>{escape(data.signature)}"
        "</code></p>"
    )


def _render_iterations(data: ReportData) -> str:
    head = ("iteration", data.metric, "in lists", "oracle", "held out", "hypotheses", "new")
    rows: list[tuple[str, ...]] = [
        (
            str(facts.number),
            f"{facts.score:.4f}",
            format_score(facts.optimum),
            format_score(facts.oracle),
            format_score(facts.held_out),
            str(facts.hypotheses),
            str(facts.new_hypotheses),
            f"{facts.seconds_decoding:.1f} s",
            f"{facts.seconds_optimizing:.1f} s",
        )
        for facts in data.iterations
    ]
    rows = [(*head, "decoding", "optimizing"), *rows]
    if not any(row[_HELD_OUT] for row in rows[1:]):
        rows = [row[:_HELD_OUT] + row[_HELD_OUT + 1 :] for row in rows]
    return render_section("Iterations", "", render_table(rows[0], rows[1:]))


def _render_watched(data: ReportData) -> str:
    """Return the scores by metrics that were not optimized, and their trade-offs."""
    note = (
        "Of the decoder's translations. In the plots, better is to the right and up; the "
        "Pareto-optimal iterations, which no other beats by both metrics, are joined by a line."
    )
    head = ("iteration", data.metric, *(each.metric for each in data.watched_scores))
    columns = [each.scores for each in (_objective(data), *data.watched_scores)]
    rows = [
        (str(facts.number), *(f"{value:.4f}" for value in values))
        for facts, values in zip(data.iterations, zip(*columns, strict=True), strict=True)
    ]
    plots = "".join(_render_trade_off(data, each) for each in data.watched_scores)
    return render_section("Metrics that were not optimized", note, render_table(head, rows) + plots)


def _objective(data: ReportData) -> WatchedScores:
    scores = tuple(display_score(data.signature, facts.score) for facts in data.iterations)
    return WatchedScores(data.metric, is_error_rate(data.signature), scores)


def _render_trade_off(data: ReportData, watched: WatchedScores) -> str:
    objective = _objective(data)
    both = (objective, watched)
    signs = [-1.0 if each.is_error_rate else 1.0 for each in both]
    front = set(find_front(np.array([each.scores for each in both]).T * signs))
    marks = [
        Mark(
            x,
            y,
            "learned" if facts is data.iterations[-1] else "between",
            f"iteration {facts.number}: {objective.metric} {x:.4f}, {watched.metric} {y:.4f}",
            5.0,
            place in front,
        )
        for place, (facts, x, y) in enumerate(
            zip(data.iterations, objective.scores, watched.scores, strict=True)
        )
    ]
    axes = [Axis(each.metric, each.is_error_rate) for each in both]
    heading = f"<h3>{escape(objective.metric)} and {escape(watched.metric)}</h3>\n"
    return heading + render_scatter(marks, axes[0], axes[1])


def _render_features(data: ReportData) -> str:
    note = (
        "Over all distinct hypotheses. Spread: mean standard deviation in a sentence. Correlation: "
        f"with {data.sentence_metric} of the hypothesis, in a sentence."
    )
    head = ("feature", "weight", "mean", "spread", "active", "correlation")
    rows = [
        (
            facts.name,
            f"{facts.weight:.4f}",
            f"{facts.mean:.4g}",
            f"{facts.spread:.4g}",
            f"{100 * facts.active:.1f}%",
            "never varies" if math.isnan(facts.correlation) else f"{facts.correlation:+.3f}",
        )
        for facts in data.features
    ]
    return render_section(
        "Features", note, _render_figure("features", data) + render_table(head, rows, left=1)
    )


def _render_sparse(data: ReportData) -> str:
    note = f"The largest of {data.n_sparse} that are not 0; dense weights have an L1 norm of 1."
    rows = [(name, f"{weight:.5g}") for name, weight in data.sparse]
    return render_section("Sparse weights", note, render_table(("feature", "weight"), rows, left=1))


def _render_lattice(data: ReportData) -> str:
    if (facts := data.lattice) is None:
        return ""
    note = (
        f"Sentence {facts.sentence} (counted from 0): the best edges of its newest search graph, "
        "and the translations that win among them as one weight changes."
    )
    rows = [
        (line.text, f"{line.start:.4g}", f"{line.end:.4g}", format_score(line.score))
        for line in facts.lines
    ]
    head = ("translation", "from weight", "to weight", data.sentence_metric)
    drawn = _render_figure("lattice", data) if facts.edges else ""
    return render_section(
        "Search graph",
        note,
        drawn + _render_figure("envelope", data) + render_table(head, rows, 1),
    )


def _render_sentences(heading: str, data: ReportData, sentences: Sequence[SentenceFacts]) -> str:
    note = f"By {data.sentence_metric} of what the result's weights choose in the merged lists."
    return render_section(heading, note, "\n".join(map(_render_sentence, sentences)))


def _render_sentence(facts: SentenceFacts) -> str:
    parts = [("source", facts.source)] if facts.source is not None else []
    parts += [("reference", text) for text in facts.references]
    parts.append((f"chosen, {facts.chosen_score:.4f}", facts.first_best))
    parts.append((f"best in its lists, {facts.oracle_score:.4f}", facts.oracle))
    terms = "".join(f"<dt>{escape(what)}</dt><dd>{escape(text)}</dd>" for what, text in parts)
    return f'<div class="sentence"><b>{facts.number}</b><dl>{terms}</dl></div>'


def _render_configuration(data: ReportData) -> str:
    facts = {"store": data.store, **data.facts}
    return render_section(
        "Configuration", "", render_table(("setting", "value"), facts.items(), left=2)
    )


def _render_figure(name: str, data: ReportData) -> str:
    return f'<figure class="wide" id="{name}">{render_svg(name, data)}</figure>\n'
