"""The report of a run: one self-contained HTML file.

The page is for screens of any width and for paper.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from html import escape
from typing import Literal

import numpy as np

from mosesplug.errors import Message, count_noun
from mosesplug.metrics.error_rates import display_score, is_error_rate
from mosesplug.results.render.record import tabulate
from mosesplug.results.render.tables import format_score, render_table
from mosesplug.results.report.data import (
    FeatureFacts,
    ReportData,
    SentenceFacts,
    WatchedScores,
    tabulate_iterations,
)
from mosesplug.results.report.document import (
    Script,
    render_document,
    render_section,
    render_terms,
)
from mosesplug.results.report.figures import (
    has_times,
    label_score,
    label_sentence_score,
    render_surface_svgs,
    render_svg,
)
from mosesplug.results.report.scatter import SCATTER_STYLE, Axis, Mark, render_scatter
from mosesplug.results.scores.trade_offs import find_front

_COLUMNS = {
    "iteration": "One decoding of the tuning set, and the optimization after it. In an online run, "
    "one epoch.",
    "in lists": "Score that the optimizer reached in the merged lists of all iterations so far, or "
    "an online learner in its mini-batches. It is optimistic: with the new weights, the decoder "
    "finds other hypotheses.",
    "oracle": "Score of the best choice among all hypotheses so far, by greedy search: about the "
    "most that any weights can reach in these lists.",
    "held out": "Best score of the held-out text in the iteration.",
    "hypotheses": "Number of hypotheses in the n-best lists of the iteration.",
    "new": "Number of hypotheses that no earlier iteration had. If it is small, further iterations "
    "change little.",
    "listed": "Number of hypotheses that the decoder listed. Those that the score budget left out "
    "have no score, and are not used.",
    "winners scored": "Share of the hypotheses with a score among those that win for some weights: "
    "along an axis, or between the weights of two decodings.",
    "left out": "Number of sentences in which the new weights choose a hypothesis without a score.",
    "decoding": "Wall time of the decoder.",
    "optimizing": "Wall time of the optimizer.",
}

_ITERATION_FIELDS = (
    "number score optimum oracle held_out hypotheses new_hypotheses listed winners_scored left_out "
    "seconds_decoding "
    "seconds_optimizing"
)

_FEATURE_COLUMNS = {
    "weight": "Weight in the result, divided by the sum of the absolute dense weights (L1 norm).",
    "mean": "Mean value over all distinct hypotheses.",
    "spread": "Standard deviation of the values within a list, mean over the sentences. A feature "
    "matters as much as its weight times its spread.",
    "active": "Share of the hypotheses whose value is not 0.",
    "correlation": "Correlation of the value with the sentence score of a hypothesis, within "
    "sentences, from -1 to +1.",
}

_LATTICE_COLUMNS = {
    "line": "Number of the translation's line in the figure.",
    "translation": "The words along a path of the drawn edges.",
    "from weight, to weight": "The translation has the highest model score if the feature's weight "
    "is between these two, and no other weight changes.",
}

_SCORES = (
    (
        "Scores",
        "scores",
        "Scores of the decoder's translations, scores that the optimizer reached in the lists, and "
        "scores of the oracle.",
    ),
    (
        "Weights",
        "weights",
        "The weights that each iteration was decoded with, divided by their L1 norm.",
    ),
)

_LISTS = (
    (
        "Lists",
        "growth",
        "Hypotheses in the lists of each iteration, and how many no earlier iteration had.",
    ),
    (
        "Coverage",
        "coverage",
        "Score of the oracle (greedy search) if the lists of the last iteration are cut after so "
        "many hypotheses.",
    ),
    ("Time", "times", "Wall time of decoder and optimizer."),
)

_SURFACES = 24
"""Largest number of error surfaces: a page of hundreds is slow to write and to print."""

_FigureSections = Sequence[tuple[str, str, str]]


def render_pages(
    reports: Sequence[ReportData], names: Sequence[str], title: str, script: Script | None
) -> str:
    """Return the reports of several runs as one HTML page.

    Args:
        reports: the data of each report.
        names: the title of each report.
        title: the title of the page.
        script: the scripts that show the runs in a browser; None: the reports only.

    Raises:
        UsageError: matplotlib is missing.
    """
    parts = [_render_sections(data, name) for data, name in zip(reports, names, strict=True)]
    sections = parts[0] + [
        _rename_ids(section, place)
        for place, part in enumerate(parts[1:], start=2)
        for section in part
    ]
    if len(parts) > 1:
        sections.insert(0, f"<h1>{escape(title)}</h1>")
    style = SCATTER_STYLE if any(data.watched_scores for data in reports) else ""
    return render_document(title, sections, style, script)


_TAG = re.compile("<[^<>]+>")
_ID = re.compile(r'(\bid="|href="#|url\(#)([^")]*)')


def _rename_ids(section: str, place: int) -> str:
    """Add the number of a report to its ids, so that each is unique on the page."""
    return _TAG.sub(lambda tag: _ID.sub(rf"\g<1>\g<2>-{place}", tag[0]), section)


def _render_sections(data: ReportData, title: str) -> list[str]:
    sections = [_render_head(data, title), _render_iterations(data)]
    if data.watched_scores:
        sections.append(_render_watched(data))
    sections.append(_render_figures(_SCORES, data))
    if data.surfaces:
        sections.append(_render_surfaces(data))
    sections.append(_render_figures(_LISTS, data))
    if data.features:
        sections.append(_render_features(data))
    if data.coverage is None:
        sections.append(
            f'<p class="note">The lists of this run are {Message(data.where_lists_are)}. This page '
            "has no statistics of lists.</p>"
        )
    if data.sparse:
        sections.append(_render_sparse(data))
    if data.lattice is not None:
        sections.append(_render_lattice(data))
    if data.worst:
        sections.append(_render_sentences("Worst", data, data.worst))
        sections.append(_render_sentences("Best", data, data.best))
    sections.append(_render_configuration(data))
    return sections


def _render_head(data: ReportData, title: str) -> str:
    facts = {}
    warnings: tuple[str, ...] = ()
    if data.outcome is not None:
        facts["algorithm"] = data.outcome.algorithm
        facts["ended"] = data.outcome.reason
        facts["resulting weights"] = data.outcome.weights
        warnings = data.outcome.warnings
    facts["metric"] = data.signature
    known = {name: text for name, text in facts.items() if text}
    shown = [
        f'<h1 id="run">{escape(title)}</h1>',
        f'<p class="note">{count_noun(len(data.iterations), "iteration")}. {escape(data.metric)} '
        f"of the decoder's own translations: {_summarize_scores(data)}.</p>",
        *(f'<p class="warning"><b>Warning:</b> {escape(warning)}</p>' for warning in warnings),
        render_terms(known, "facts"),
    ]
    return "\n".join(shown)


def _summarize_scores(data: ReportData) -> str:
    """Return the scores of the first, the best and the last iteration, in this order."""
    best = max(data.iterations, key=lambda facts: facts.score)
    extreme = "lowest" if is_error_rate(data.signature) else "highest"
    shown = {facts.number: facts for facts in (data.iterations[0], best, data.iterations[-1])}
    words = [
        f"{format_score(display_score(data.signature, facts.score))} in iteration {number}"
        + (f" (the {extreme})" if facts is best and len(shown) > 1 else "")
        for number, facts in sorted(shown.items())
    ]
    return ", ".join(words)


def _render_iterations(data: ReportData) -> str:
    table = tabulate_iterations(data.iterations, _ITERATION_FIELDS, data.metric, data.signature)
    rows = table.plain
    less = "; less is better" if is_error_rate(data.signature) else ""
    known = {
        data.metric: f"Score of the decoder's own translations of the tuning set{less}.",
        **_COLUMNS,
    }
    monitored = "A monitor: translated with the weights after the iteration; selects nothing."
    meanings = {name: known.get(name, monitored) for name in rows[0]}
    return render_section(
        "Iterations", "", render_table(rows[0], rows[1:]) + render_terms(meanings, "columns")
    )


def _render_figures(figures: _FigureSections, data: ReportData) -> str:
    """Return sections with a figure each, beside each other on wide screens."""
    left_out = set() if data.names else {"weights"}
    left_out |= set() if data.coverage is not None else {"coverage"}
    left_out |= set() if has_times(data) else {"times"}
    parts = [
        render_section(heading, note, _render_figure(name, data))
        for heading, name, note in figures
        if name not in left_out
    ]
    return f'<div class="figures">\n{chr(10).join(parts)}\n</div>'


def _render_surfaces(data: ReportData) -> str:
    note = (
        f"{label_score(data)} of the merged lists as one weight changes and all others stay. Red: "
        "the weight in the result. A flat line: the weight does not matter. A narrow peak: the "
        "gain may not hold on other text."
    )
    if len(data.surfaces) > _SURFACES:
        sizes = [abs(feature.weight * feature.spread) for feature in data.features]
        largest = sorted(np.argsort(sizes)[::-1][:_SURFACES].tolist())
        data = replace(data, surfaces=tuple(data.surfaces[place] for place in largest))
        note += f" Of {len(sizes)} features, the {_SURFACES} with the largest weight times spread."
    drawn = "\n".join(f'<figure class="wide">{svg}</figure>' for svg in render_surface_svgs(data))
    return render_section(
        "Error surfaces", note, f'<div class="small" id="surfaces">\n{drawn}\n</div>'
    )


def _render_watched(data: ReportData) -> str:
    """Return the scores by metrics that were not optimized, and their trade-offs."""
    note = (
        "Scores of the decoder's translations of the tuning set; those of held-out text and of "
        "monitors are with the weights after the iteration. In the plots, better is to the right "
        "and up; the Pareto-optimal iterations, which no other beats by both metrics, are joined "
        "by a line."
    )
    head = (
        "iteration",
        data.metric,
        *(watched_score.label for watched_score in data.watched_scores),
    )
    columns = [watched.scores for watched in (_objective(data), *data.watched_scores)]
    rows = [
        (str(facts.number), *map(format_score, values))
        for facts, values in zip(data.iterations, zip(*columns, strict=True), strict=True)
    ]
    plots = "".join(
        _render_trade_off(data, score) for score in data.watched_scores if not score.text
    )
    plots = f'<div class="figures">\n{plots}</div>'
    return render_section("Metrics that were not optimized", note, render_table(head, rows) + plots)


def _objective(data: ReportData) -> WatchedScores:
    scores = tuple(display_score(data.signature, facts.score) for facts in data.iterations)
    return WatchedScores(data.metric, is_error_rate(data.signature), scores)


def _render_trade_off(data: ReportData, watched: WatchedScores) -> str:
    objective = _objective(data)
    both = (objective, watched)
    signs = [-1.0 if scored.is_error_rate else 1.0 for scored in both]
    points = [
        (facts, x, y)
        for facts, x, y in zip(data.iterations, objective.scores, watched.scores, strict=True)
        if x is not None and y is not None
    ]
    front = set(find_front(np.array([(x, y) for _, x, y in points]) * signs))
    marks = [
        Mark(
            x,
            y,
            "learned" if facts is data.iterations[-1] else "between",
            f"iteration {facts.number}: {objective.metric} {x:.4f}, {watched.metric} {y:.4f}",
            5.0,
            place in front,
        )
        for place, (facts, x, y) in enumerate(points)
    ]
    axes = [Axis(scored.metric, scored.is_error_rate) for scored in both]
    heading = f"<h3>{escape(objective.metric)} and {escape(watched.metric)}</h3>\n"
    return f"<div>{heading}{render_scatter(marks, axes[0], axes[1])}</div>\n"


def _render_features(data: ReportData) -> str:
    note = (
        "Statistics of all distinct hypotheses. Correlations are those with "
        f"{label_sentence_score(data)}."
    )
    head, *rows = tabulate(FeatureFacts, data.features).plain
    cells = [(*row[:-1], row[-1] or "never varies") for row in rows]
    content = _render_figure("features", data) + render_table(head, cells, {0})
    return render_section("Features", note, content + render_terms(_FEATURE_COLUMNS, "columns"))


def _render_sparse(data: ReportData) -> str:
    note = (
        f"The {len(data.sparse)} largest of {data.n_sparse} sparse weights that are not 0, on the "
        "scale on which the dense weights have an L1 norm of 1."
    )
    rows = [(name, f"{weight:.5g}") for name, weight in data.sparse]
    return render_section("Sparse weights", note, render_table(("feature", "weight"), rows, {0}))


def _render_lattice(data: ReportData) -> str:
    if (facts := data.lattice) is None:
        return ""
    note = (
        f"Sentence {facts.sentence} (counted from 0): the best {len(facts.edges)} of {facts.whole} "
        "edges of its newest search graph, to be read from the top, and the translations that win "
        f"among them as the weight of {facts.feature} changes. Dotted: its weight in the result."
    )
    rows = [
        (str(number), line.text, f"{line.start:.4g}", f"{line.end:.4g}", format_score(line.score))
        for number, line in enumerate(facts.lines, start=1)
    ]
    head = ("line", "translation", "from weight", "to weight", label_sentence_score(data))
    meanings = {
        **_LATTICE_COLUMNS,
        label_sentence_score(data): "Sentence score, if it is in the lists.",
    }
    drawn = _render_figure("lattice", data) if facts.edges else ""
    figures = f'<div class="graph">\n{drawn}{_render_figure("envelope", data)}</div>\n'
    table = render_table(head, rows, {0, 1})
    return render_section("Search graph", note, figures + table + render_terms(meanings, "columns"))


def _render_sentences(
    which: Literal["Worst", "Best"], data: ReportData, sentences: Sequence[SentenceFacts]
) -> str:
    score = label_sentence_score(data)
    note = (
        f"Sentences whose 1-best has the {'lowest' if which == 'Worst' else 'highest'} {score}. "
        "The weights of the result choose it from the merged lists; the oracle is the hypothesis "
        f"with the highest {score}."
    )
    return render_section(f"{which} sentences", note, "\n".join(map(_render_sentence, sentences)))


def _render_sentence(facts: SentenceFacts) -> str:
    parts = [("source", facts.source)] if facts.source is not None else []
    parts += [("reference", text) for text in facts.references]
    parts.append((f"1-best, {facts.chosen_score:.4f}", facts.first_best))
    parts.append((f"oracle, {facts.oracle_score:.4f}", facts.oracle))
    terms = "".join(f"<dt>{escape(what)}</dt><dd>{escape(text)}</dd>" for what, text in parts)
    return f'<div class="sentence"><b>sentence {facts.number}</b><dl>{terms}</dl></div>'


def _render_configuration(data: ReportData) -> str:
    return render_section("Configuration", "", render_terms(data.facts, "facts"))


def _render_figure(name: str, data: ReportData) -> str:
    return f'<figure class="wide" id="{name}">{render_svg(name, data)}</figure>\n'
