"""The gains of learned weights as a table, and as one self-contained HTML page."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from mosesplug.errors import count_noun
from mosesplug.results.render.record import tabulate
from mosesplug.results.render.tables import TextTable, format_blocks, layout_table, render_table
from mosesplug.results.report.document import render_document, render_section
from mosesplug.results.report.scatter import SCATTER_STYLE, Axis, Mark, render_scatter
from mosesplug.results.scores.gains import Gain, MetricGain
from mosesplug.results.scores.trade_offs import TradeOffs

_TESTS = (
    "95 % interval of the difference and p(boot): paired bootstrap; p(AR): approximate "
    "randomization; 1,000 samples each. Not significant: p(AR) is 0.05 or more. Scores on "
    "sentences that weights were learned from are optimistic."
)

_LEGEND = (
    '<p class="legend"><span class="start">● starting weights</span><span class="learned">'
    '● learned weights</span><span class="between">● between them</span><span class="changed">'
    '● one learned weight changed</span><span class="front">○ Pareto-optimal</span></p>\n'
)

_SIZES = {"start": 6.0, "learned": 6.0}


def tabulate_gain(gain: Gain) -> list[str]:
    """Return the lines of a table; the heading describes the sentences."""
    return format_blocks(list_gain(gain)).splitlines()


def list_gain(gain: Gain) -> tuple[str, TextTable]:
    """Return a heading, which describes the sentences, and a table."""
    return _describe_sentences(gain), _tabulate(gain.metrics)


def render_gain(gain: Gain) -> str:
    """Return a table as HTML, with the sentences as its heading."""
    heading = escape(_describe_sentences(gain).rstrip(":"))
    [table] = layout_table(_tabulate(gain.metrics), "html")
    return f"<h3>{heading}</h3>\n{table}"


def _describe_sentences(gain: Gain) -> str:
    """Return the heading of a table."""
    which = {
        "learned from": f"on the {count_noun(gain.sentences, 'sentence')} learned from",
        "held out": f"on {count_noun(gain.sentences, 'held-out sentence')}",
        "folds": f"on {count_noun(gain.sentences, 'sentence')}, each with weights of the other "
        "folds",
    }.get(gain.data, f"on the {count_noun(gain.sentences, 'sentence')} of {gain.data}")
    return f"gain {which}:"


def _tabulate(metrics: Sequence[MetricGain]) -> TextTable:
    columns = "metric start end difference interval p_bootstrap p_randomization verdict"
    return tabulate(MetricGain, metrics, columns)


def render_gains(
    title: str,
    summary: str,
    gains: Sequence[Gain],
    weights: Sequence[tuple[str, float, float]],
    trade_offs: TradeOffs | None,
    warnings: Sequence[str] = (),
) -> str:
    """Return the page of learned weights.

    Args:
        gains: what was gained, on each kind of sentences.
        weights: name, starting weight and learned weight of each feature.
        trade_offs: scores of weights near the learned ones; None without watched metrics.
    """
    parts = [f"<h1>{escape(title)}</h1>", f'<p class="note">{escape(summary)}</p>']
    parts += [f'<p class="warning"><b>Warning:</b> {escape(warning)}</p>' for warning in warnings]
    if gains:
        tables = "".join(map(render_gain, gains))
        parts.append(render_section("Gains", _TESTS, tables))
    if trade_offs is not None:
        parts.append(_render_trade_offs(trade_offs))
    rows = [(name, f"{start:.6g}", f"{end:.6g}") for name, start, end in weights]
    parts.append(
        render_section("Weights", "", render_table(("feature", "start", "learned"), rows, {0}))
    )
    return render_document(title, parts, SCATTER_STYLE)


def _render_trade_offs(trade_offs: TradeOffs) -> str:
    note = (
        f"Scores on {trade_offs.sentences}. Better is to the right and up. No weights shown are "
        "better by both metrics than Pareto-optimal ones."
    )
    plots = "\n".join(
        f"<div><h3>{escape(trade_offs.metrics[0])} and {escape(trade_offs.metrics[metric])}</h3>\n"
        f"{_render_plot(trade_offs, metric)}</div>"
        for metric in range(1, len(trade_offs.metrics))
    )
    return render_section("Trade-offs", note, f'{_LEGEND}<div class="figures">\n{plots}\n</div>')


def _render_plot(trade_offs: TradeOffs, metric: int) -> str:
    front = set(trade_offs.find_front(metric))
    names = trade_offs.metrics[0], trade_offs.metrics[metric]
    marks = [
        Mark(
            point.scores[0],
            point.scores[metric],
            point.kind,
            f"{point.label}: {names[0]} {point.scores[0]:.4f}, "
            f"{names[1]} {point.scores[metric]:.4f}",
            _SIZES.get(point.kind, 3.0),
            number in front,
        )
        for number, point in enumerate(trade_offs.points)
    ]
    marks.sort(key=lambda mark: (mark.kind in _SIZES, mark.is_optimal))
    return render_scatter(
        marks,
        Axis(names[0], trade_offs.is_error_rate[0]),
        Axis(names[1], trade_offs.is_error_rate[metric]),
    )
