"""Scores and analyses of systems as tables for terminals, papers and pages."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from mosesplug.escapes import mark_invalid_utf8
from mosesplug.results.analysis import Example, NgramDifference, SystemAnalysis
from mosesplug.results.analysis.sentences import BucketKind
from mosesplug.results.render.tables import format_score
from mosesplug.results.scores.comparison import SystemScore
from mosesplug.results.views.texts import decode_text

_SCORES_HEAD = ("metric", "system", "runs", "score", "95 % interval", "s_sel", "s_opt")
_COMPARED = ("difference", "interval of difference", "p(AR)", "p(boot)", "wins")


@dataclass(frozen=True)
class AnalysisTable:
    """A table of an analysis.

    Attributes:
        title: the heading.
        note: a sentence on what is counted; may be empty.
        head: names of the columns.
        rows: the cells; a row that has the same bucket as the one before leaves it out.
        left: number of leading columns that hold text.
        last: number of trailing columns that hold text.
    """

    title: str
    note: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    left: int = 0
    last: int = 0


KINDS: tuple[BucketKind, ...] = ("length", "difference", "score")
"""The kinds of buckets of sentences, in their order."""

_NGRAMS = (
    "Ratio: the share of the system that has the n-gram more often, (more + 1) / (both + 2). An "
    "n-gram is right if a reference of the sentence has it."
)

_SENTENCES: dict[BucketKind, tuple[str, str]] = {
    "length": ("Sentences by length of the reference", "words"),
    "difference": ("Sentences by difference of length from the reference", "words"),
    "score": ("Sentences by {metric}", "score"),
}
"""Title and first column of each kind of buckets."""


def format_count(value: float) -> str:
    """Return a number of things; a mean over runs has one decimal."""
    return f"{value:.0f}" if value.is_integer() else f"{value:.1f}"


def format_ratio(value: float) -> str:
    """Return a score or ratio with 4 decimals, empty if unknown."""
    return "" if math.isnan(value) else f"{value:.4f}"


def tabulate_words(analysis: SystemAnalysis) -> AnalysisTable:
    """Return the accuracy of words by their frequency."""
    rows = [
        (
            each.bucket,
            each.system,
            *map(format_count, (each.expected, each.produced, each.correct)),
            *map(format_ratio, (each.precision, each.recall, each.f1)),
        )
        for each in analysis.words
    ]
    return AnalysisTable(
        title="Word accuracy by frequency",
        note=f"Frequency in {mark_invalid_utf8(analysis.frequencies)}.",
        head=("frequency", "system", "expected", "produced", "correct", "prec.", "recall", "F1"),
        rows=tuple(_drop_repeated(rows)),
        left=2,
    )


def tabulate_sentences(analysis: SystemAnalysis, kind: BucketKind) -> AnalysisTable:
    """Return the scores of sentences by one kind of buckets."""
    title, first = _SENTENCES[kind]
    records = [each for each in analysis.sentences if each.kind == kind]
    rows = []
    for (bucket, system), group in groupby(records, lambda each: (each.bucket, each.system)):
        found = list(group)
        scores = (format_ratio(each.score) for each in found)
        rows.append((bucket, system, format_count(found[0].sentences), *scores))
    return AnalysisTable(
        title=title.format(metric=f"sentence score ({analysis.sentence_metric})"),
        note="",
        head=(first, "system", "sentences", *analysis.metrics),
        rows=tuple(_drop_repeated(rows)),
        left=2,
    )


def _drop_repeated(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows, with an empty first cell if it is that of the row before."""
    before = None
    for row in rows:
        yield ("", *row[1:]) if row[0] == before else row
        before = row[0]


def tabulate_ngrams(analysis: SystemAnalysis) -> Iterator[AnalysisTable]:
    """Yield tables of n-grams for pairs of systems.

    There is one for each pair, kind of n-grams, and system that has more of them. The first one
    has a note on all tables. Without references, nothing is yielded.
    """
    if not analysis.words:
        return
    baseline, note = analysis.systems[0], _NGRAMS
    for system in analysis.systems[1:]:
        for kind, verb in (("right", "gets right"), ("wrong", "produces wrongly")):
            for more, less in ((system, baseline), (baseline, system)):
                found = [
                    each
                    for each in analysis.ngrams
                    if (each.system, each.kind, each.more) == (system, kind, more)
                ]
                yield AnalysisTable(
                    title=f"N-grams that {more} {verb} more often than {less}",
                    note=note,
                    head=("ratio", baseline, system, "n-gram"),
                    rows=tuple(map(_list_cells, found)),
                    last=1,
                )
                note = ""


def _list_cells(each: NgramDifference) -> tuple[str, ...]:
    counts = map(format_count, (each.baseline_count, each.system_count))
    return (f"{each.ratio:.4f}", *counts, decode_text(each.ngram))


def group_examples(
    analysis: SystemAnalysis,
) -> Iterator[tuple[tuple[str, str], tuple[Example, ...]]]:
    """Yield the better and the worse system with the sentences that show it."""
    baseline = analysis.systems[0]
    for system in analysis.systems[1:]:
        for better, worse in ((system, baseline), (baseline, system)):
            yield (
                (better, worse),
                tuple(
                    each
                    for each in analysis.examples
                    if (each.system, each.better) == (system, better)
                ),
            )


def describe_examples(better: str, worse: str) -> str:
    """Return the heading of sentences where one system is better than another."""
    return f"Sentences where {better} is better than {worse}"


def describe_example(example: Example) -> str:
    """Return the sentence id and the scores of an example."""
    return (
        f"sentence {example.sentence}: {example.metric} {example.baseline_score:.4f} to "
        f"{example.system_score:.4f} ({example.difference:+.4f})"
    )


def list_texts(example: Example) -> Iterator[tuple[str, bytes, bool]]:
    """Yield what each text of an example is, the text, and whether a system wrote it."""
    if example.source is not None:
        yield "source", example.source, False
    for text in example.references:
        yield "reference", text, False
    yield example.baseline, example.baseline_text, True
    yield example.system, example.system_text, True


def tabulate_systems(scores: Sequence[SystemScore]) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows, without columns that are empty for all systems.

    The first two columns hold text.
    """
    several_runs = any(score.runs > 1 for score in scores)
    rows = [_list_scores(score, several_runs) for score in scores]
    kept = [place for place, column in enumerate(zip(*rows, strict=True)) if any(column)]
    head = [(*_SCORES_HEAD, *_COMPARED)[place] for place in kept]
    return head, [[row[place] for place in kept] for row in rows]


def _list_scores(score: SystemScore, several_runs: bool) -> list[str]:
    return [
        score.metric,
        score.system,
        str(score.runs) if several_runs else "",
        format_score(score.score),
        "{:.4f} to {:.4f}".format(*score.interval),
        format_score(score.s_sel),
        "" if math.isnan(score.s_opt) else format_score(score.s_opt),
        "" if score.difference is None else f"{score.difference:+.4f}",
        _format_interval(score.difference_interval),
        format_score(score.p_randomization),
        format_score(score.p_bootstrap),
        "" if score.wins is None else f"{100 * score.wins:.1f}%",
    ]


def _format_interval(interval: tuple[float, float] | None) -> str:
    """Return an interval as ``+0.0100 to +0.0200``; empty for None."""
    return "" if interval is None else "{:+.4f} to {:+.4f}".format(*interval)
