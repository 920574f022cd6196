"""Scores and analyses of systems as tables for terminals, papers and pages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from textwrap import wrap
from typing import Any

from mosesplug.escapes import mark_invalid_utf8
from mosesplug.results.analysis.analysis import SystemAnalysis
from mosesplug.results.analysis.examples import Example
from mosesplug.results.analysis.ngrams import NgramDifference
from mosesplug.results.analysis.sentences import BucketKind
from mosesplug.results.analysis.words import WordAccuracy
from mosesplug.results.render.record import format_count, tabulate
from mosesplug.results.render.render import Medium
from mosesplug.results.render.tables import (
    Block,
    TextTable,
    Verbatim,
    escape_latex,
    escape_markdown,
    format_latex,
    format_markdown,
    format_ratio,
)
from mosesplug.results.scores.alignments import list_edits
from mosesplug.results.scores.comparison import SystemScore
from mosesplug.results.views.texts import decode_text

_SCORES = (
    "metric system runs score interval s_sel s_opt difference difference_interval p_randomization "
    "p_bootstrap wins"
)

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


@dataclass(frozen=True)
class SystemReport:
    """The scores of systems, and how they differ.

    Attributes:
        analysis: None for the scores alone.
    """

    scores: tuple[SystemScore, ...]
    analysis: SystemAnalysis | None = None

    @property
    def document(self) -> Any:
        """A list of scores; with an analysis, an object of both."""
        if self.analysis is None:
            return self.scores
        kinds = ("words", "sentences", "ngrams", "examples")
        return {"scores": self.scores} | {kind: getattr(self.analysis, kind) for kind in kinds}

    def blocks(self, medium: Medium) -> Iterator[Block]:
        """Yield a table of scores, signatures, edits if counted, and the analysis."""
        signatures = dict.fromkeys(score.signature for score in self.scores)
        yield tabulate_systems(self.scores)
        match medium.layout:
            case "markdown":
                yield from (f"`{signature}`" for signature in signatures)
            case "latex":
                yield from (Verbatim(f"% {signature}") for signature in signatures)
            case _:
                yield from ["", *signatures]
        edits = [((score.metric, score.system), score.edits) for score in self.scores]
        yield from list_edits(("metric", "system"), edits, medium)
        if self.analysis is not None:
            yield from _list_analysis(self.analysis, medium)


def tabulate_systems(scores: Sequence[SystemScore]) -> TextTable:
    """Return the scores of systems, without columns that are empty for all of them."""
    several_runs = any(score.runs > 1 for score in scores)
    table = tabulate(SystemScore, scores, _SCORES if several_runs else _SCORES.replace("runs ", ""))
    kept = [n for n, column in enumerate(zip(*table.plain[1:], strict=True)) if any(column)]
    return replace(table, rows=[[row[place] for place in kept] for row in table.rows])


def tabulate_words(analysis: SystemAnalysis) -> TextTable:
    """Return the accuracy of words by their frequency."""
    table = tabulate(WordAccuracy, analysis.words)
    return replace(
        table,
        rows=tuple(_drop_repeated(table.plain)),
        title="Word accuracy by frequency",
        note=f"Frequency in {mark_invalid_utf8(analysis.frequencies)}.",
    )


def tabulate_sentences(analysis: SystemAnalysis, kind: BucketKind) -> TextTable:
    """Return the scores of sentences by one kind of buckets."""
    title, first = _SENTENCES[kind]
    records = [record for record in analysis.sentences if record.kind == kind]
    rows: list[tuple[str, ...]] = [(first, "system", "sentences", *analysis.metrics)]
    for (bucket, system), group in groupby(records, lambda record: (record.bucket, record.system)):
        metrics = list(group)
        scores = (format_ratio(record.score) for record in metrics)
        rows.append((bucket, system, format_count(metrics[0].sentences), *scores))
    return TextTable(
        tuple(_drop_repeated(rows)),
        left=2,
        title=title.format(metric=f"sentence score ({analysis.sentence_metric})"),
    )


def _drop_repeated(rows: Sequence[tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    """Yield the rows, with an empty first cell if it is that of the row before."""
    before = None
    for row in rows:
        yield ("", *row[1:]) if row[0] == before else row
        before = row[0]


def tabulate_ngrams(analysis: SystemAnalysis) -> Iterator[TextTable]:
    """Yield tables of n-grams for pairs of systems.

    There is one for each pair, kind of n-grams, and system that has more of them. The first one
    has a note on all tables. Without references, nothing is yielded.
    """
    if not analysis.words:
        return
    baseline, note = analysis.systems[0], _NGRAMS
    for system in analysis.systems[1:]:
        labels = {"baseline_count": baseline, "system_count": system}
        for kind, verb in (("right", "gets right"), ("wrong", "produces wrongly")):
            for more, less in ((system, baseline), (baseline, system)):
                records = [
                    record
                    for record in analysis.ngrams
                    if (record.system, record.kind, record.more) == (system, kind, more)
                ]
                columns = "ratio baseline_count system_count ngram"
                yield replace(
                    tabulate(NgramDifference, records, columns, labels),
                    title=f"N-grams that {more} {verb} more often than {less}",
                    note=note,
                )
                note = ""


def group_examples(
    analysis: SystemAnalysis,
) -> Iterator[tuple[str, tuple[Example, ...]]]:
    """Yield a heading with the sentences where one system is better than another."""
    baseline = analysis.systems[0]
    for system in analysis.systems[1:]:
        for better, worse in ((system, baseline), (baseline, system)):
            examples = tuple(
                example
                for example in analysis.examples
                if (example.system, example.better) == (system, better)
            )
            yield f"Sentences where {better} is better than {worse}", examples


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


def _list_tables(analysis: SystemAnalysis) -> Iterator[TextTable]:
    tables = [tabulate_words(analysis), *(tabulate_sentences(analysis, kind) for kind in KINDS)]
    # Without references there are only sentence scores.
    yield from (table for table in tables if len(table.rows) > 1)
    yield from tabulate_ngrams(analysis)


def _list_analysis(analysis: SystemAnalysis, medium: Medium) -> Iterator[Block]:
    """Yield tables and examples."""
    if medium.layout in ("markdown", "latex"):
        is_markdown = medium.layout == "markdown"
        list_lines = _format_markdown_analysis if is_markdown else _format_latex_analysis
        yield from map(Verbatim, list_lines(analysis))
        return
    width = max(40, medium.width)

    def head(title: str, note: str) -> list[str]:
        return [f"\n{title}", *wrap(note, width, break_on_hyphens=False), ""]

    for table in _list_tables(analysis):
        yield from head(table.title, table.note)
        yield table if len(table.rows) > 1 else "none"
    for title, examples in group_examples(analysis):
        yield from head(title, "")
        yield "\n\n".join(_format_example(example, width) for example in examples) or "none"


def _format_example(example: Example, width: int) -> str:
    texts = list(list_texts(example))
    left = min(max(len(what) for what, _, _ in texts), 16) + 4
    lines = [describe_example(example)]
    for what, text, _ in texts:
        words = wrap(decode_text(text), width - left, break_on_hyphens=False) or [""]
        label = f"  {what}"
        if len(label) + 2 > left:
            lines.append(label)
            label = ""
        lines.append(f"{label:{left}}{words[0]}".rstrip())
        lines += [f"{'':{left}}{line}" for line in words[1:]]
    return "\n".join(lines)


def _format_markdown_analysis(analysis: SystemAnalysis) -> Iterator[str]:
    """Yield the lines of tables and examples as Markdown."""
    for table in _list_tables(analysis):
        yield from _space(f"### {escape_markdown(table.title)}", escape_markdown(table.note))
        head, *rows = (tuple(map(escape_markdown, row)) for row in table.plain)
        yield from format_markdown(head, rows, table.texts)
    for title, examples in group_examples(analysis):
        yield from _space(f"### {escape_markdown(title)}")
        for example in examples:
            yield f"{escape_markdown(describe_example(example))}\n"
            for what, text, _ in list_texts(example):
                yield f"- {escape_markdown(what)}: {escape_markdown(decode_text(text))}"
            yield ""


def _format_latex_analysis(analysis: SystemAnalysis) -> Iterator[str]:
    """Yield the lines of tables and examples as LaTeX."""
    for table in _list_tables(analysis):
        title = rf"\paragraph{{{escape_latex(table.title)}}}"
        yield from _space(title, escape_latex(table.note))
        head, *rows = table.plain
        yield from format_latex(head, rows, table.texts)
    for title, examples in group_examples(analysis):
        yield from _space(rf"\paragraph{{{escape_latex(title)}}}")
        for example in examples:
            yield rf"\noindent {escape_latex(describe_example(example))}"
            yield r"\begin{description}"
            for what, text, _ in list_texts(example):
                yield rf"\item[{escape_latex(what)}] {escape_latex(decode_text(text))}"
            yield r"\end{description}"


def _space(*paragraphs: str) -> list[str]:
    """Return paragraphs with blank lines around them."""
    return ["".join(f"\n{paragraph}\n" for paragraph in paragraphs if paragraph)]
