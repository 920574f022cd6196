"""The analysis of systems as one self-contained HTML page.

The page is light or dark as the reader prefers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from html import escape
from itertools import groupby

from mosesplug.results.analysis.analysis import SystemAnalysis
from mosesplug.results.analysis.examples import Example
from mosesplug.results.render.analysis_tables import (
    KINDS,
    describe_example,
    group_examples,
    list_texts,
    tabulate_ngrams,
    tabulate_sentences,
    tabulate_systems,
    tabulate_words,
)
from mosesplug.results.render.record import format_count
from mosesplug.results.render.tables import TextTable, format_ratio, layout_table, render_table
from mosesplug.results.report.bars import BAR_STYLE, BarGroup, render_bars, render_legend
from mosesplug.results.report.document import render_document, render_section
from mosesplug.results.scores.comparison import SystemScore
from mosesplug.results.views.texts import decode_text

_NONE = '<p class="note">none</p>\n'

_STYLE = (
    """
body { max-width: 78rem; }
.pair { display: grid; grid-template-columns: minmax(0, 1fr); gap: 0 2rem; align-items: start; }
@media (min-width: 64rem) { .pair { grid-template-columns: minmax(0, 4fr) minmax(0, 5fr); } }
.chart svg { margin-bottom: .75rem; } .chart td:first-child { white-space: nowrap; }
td:nth-child(2):not(.n) { min-width: 6rem; }
h3 { font-size: 1rem; margin: 1.25rem 0 .4rem; overflow-wrap: anywhere; }
dd mark { background: none; color: inherit; text-decoration: underline wavy #ef4444;
  text-underline-offset: .2em; }
"""
    + BAR_STYLE
)


def render_analysis(
    analysis: SystemAnalysis,
    title: str,
    scores: Sequence[SystemScore] = (),
    warnings: Sequence[str] = (),
) -> str:
    """Return the page of an analysis.

    Args:
        scores: the scores of the same systems, shown first.
        warnings: how the analysis differs from these scores, shown in the head.
    """
    sections = [_render_head(analysis, title, warnings)]
    if scores:
        sections.append(_render_scores(scores))
    return render_document(title, [*sections, *_render_body(analysis)], _STYLE)


def _render_body(analysis: SystemAnalysis) -> Iterator[str]:
    """Yield the sections below the scores."""
    legend = render_legend(analysis.systems)
    if analysis.words:
        words = tabulate_words(analysis)
        pairs = ((word.bucket, word.f1) for word in analysis.words)
        content = _pair(_draw(pairs, format_ratio, "F1 of words by frequency"), words)
        yield render_section(words.title, f"{words.note} The bars show F1.", legend + content)
    for kind in KINDS:
        table = tabulate_sentences(analysis, kind)
        if len(table.rows) == 1:
            continue
        metric = analysis.metrics[0]
        buckets = [one for one in analysis.sentences if (one.kind, one.metric) == (kind, metric)]
        if kind == "length":
            note = f"The bars show {metric}."
            scores = ((bucket.bucket, bucket.score) for bucket in buckets)
            chart = _draw(scores, format_ratio, f"{metric} by length of the reference")
        else:
            note = "The bars show the number of sentences."
            sizes = ((bucket.bucket, bucket.sentences) for bucket in buckets)
            chart = _draw(sizes, format_count, f"number of sentences by {kind}")
        yield render_section(table.title, note, legend + _pair(chart, table))
    if ngrams := list(tabulate_ngrams(analysis)):
        content = "".join(map(_render_ngrams, ngrams))
        yield render_section("N-grams", ngrams[0].note, f'<div class="pair">{content}</div>')
    note = f"By {analysis.sentence_metric}."
    if analysis.words:
        note += " Underlined: words that no reference has."
    for title, examples in group_examples(analysis):
        content = "\n".join(map(_render_example, examples)) or _NONE
        yield render_section(title, note, content)


def _render_head(analysis: SystemAnalysis, title: str, warnings: Sequence[str]) -> str:
    baseline, *others = analysis.systems
    notes = "".join(f"\n<p class=note>{escape(warning)}</p>" for warning in warnings)
    return (
        f"<h1>{escape(title)}</h1>\n<p class=note>{escape(', '.join(others))} against the baseline "
        f"{escape(baseline)}, {analysis.n_sentences} sentences</p>{notes}"
    )


def _render_scores(scores: Sequence[SystemScore]) -> str:
    [table] = layout_table(tabulate_systems(scores), "html")
    signatures = "".join(
        f"<p class=note><code>{escape(signature)}</code></p>\n"
        for signature in dict.fromkeys(score.signature for score in scores)
    )
    return render_section("Scores", "", table + signatures)


def _pair(chart: str, table: TextTable) -> str:
    [shown] = layout_table(table, "html")
    return f'<div class="pair chart"><div>{chart}</div><div>{shown}</div></div>'


def _draw(
    pairs: Iterable[tuple[str, float]], format_value: Callable[[float], str], title: str
) -> str:
    """Return bars of the values of all systems for each bucket."""
    groups = []
    for bucket, group in groupby(pairs, lambda pair: pair[0]):
        values = tuple(value for _, value in group)
        groups.append(BarGroup(bucket, values, tuple(map(format_value, values))))
    return render_bars(groups, title)


def _render_ngrams(table: TextTable) -> str:
    head, *rows = table.plain
    shown = render_table(head, rows, table.texts) if rows else _NONE
    return f"<div><h3>{escape(table.title)}</h3>\n{shown}</div>\n"


def _render_example(example: Example) -> str:
    known = None
    if example.references:
        known = {word for text in example.references for word in text.split(b" ")}
    terms = "".join(
        f"<dt>{escape(what)}</dt><dd>{_mark_words(text, known) if is_output else _show(text)}</dd>"
        for what, text, is_output in list_texts(example)
    )
    return f'<div class="sentence"><b>{escape(describe_example(example))}</b><dl>{terms}</dl></div>'


def _show(text: bytes) -> str:
    return escape(decode_text(text))


def _mark_words(text: bytes, known: set[bytes] | None) -> str:
    """Return a translation as HTML with marks around words that are not ``known``."""
    if known is None:
        return _show(text)
    words = (word for word in text.split(b" ") if word)
    return " ".join(
        _show(word) if word in known else f"<mark>{_show(word)}</mark>" for word in words
    )
