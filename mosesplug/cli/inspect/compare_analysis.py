"""Print the analysis of ``compare --analysis`` in the formats of its table."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TextIO

from mosesplug.cli.shared.layouts import output_stream
from mosesplug.cli.shared.tables import (
    escape_latex,
    escape_markdown,
    format_latex,
    format_markdown,
    print_table,
)
from mosesplug.results.render.analysis_tables import (
    KINDS,
    AnalysisTable,
    describe_example,
    describe_examples,
    group_examples,
    list_texts,
    tabulate_ngrams,
    tabulate_sentences,
    tabulate_words,
)
from mosesplug.results.views.texts import decode_text

if TYPE_CHECKING:
    from mosesplug.results.analysis import Example, SystemAnalysis


def describe_analysis(analysis: SystemAnalysis) -> dict[str, Any]:
    """Return the records of an analysis as JSON has them."""
    records: dict[str, Sequence[Any]] = {
        "words": analysis.words,
        "sentences": analysis.sentences,
        "ngrams": analysis.ngrams,
        "examples": analysis.examples,
    }
    return {
        name: [{key: _decode(value) for key, value in asdict(each).items()} for each in found]
        for name, found in records.items()
    }


def _decode(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_decode(each) for each in value]
    return decode_text(value) if isinstance(value, bytes) else value


def _list_tables(analysis: SystemAnalysis) -> Iterator[AnalysisTable]:
    tables = [tabulate_words(analysis), *(tabulate_sentences(analysis, kind) for kind in KINDS)]
    # Without references there are only sentence scores.
    yield from (table for table in tables if table.rows)
    yield from tabulate_ngrams(analysis)


def print_analysis(analysis: SystemAnalysis) -> None:
    """Print tables and examples as text."""

    def print_heading(title: str, note: str) -> None:
        print(f"\n{title}")
        for line in wrap(note, _width(), break_on_hyphens=False):
            print(line)
        print()

    for table in _list_tables(analysis):
        print_heading(table.title, table.note)
        if table.rows:
            print_table(table.head, table.rows, left=table.left, last=table.last)
        else:
            print("none")
    for names, examples in group_examples(analysis):
        print_heading(describe_examples(*names), "")
        print("\n\n".join(map(_format_example, examples)) or "none")


def _width() -> int:
    return max(40, shutil.get_terminal_size().columns)


def _format_example(example: Example) -> str:
    texts = list(list_texts(example))
    left = min(max(len(what) for what, _, _ in texts), 16) + 4
    lines = [describe_example(example)]
    for what, text, _ in texts:
        words = wrap(decode_text(text), _width() - left, break_on_hyphens=False) or [""]
        label = f"  {what}"
        if len(label) + 2 > left:
            lines.append(label)
            label = ""
        lines.append(f"{label:{left}}{words[0]}".rstrip())
        lines += [f"{'':{left}}{line}" for line in words[1:]]
    return "\n".join(lines)


def print_markdown(analysis: SystemAnalysis) -> None:
    """Print tables and examples as Markdown."""
    for table in _list_tables(analysis):
        _print_lines(f"### {escape_markdown(table.title)}", escape_markdown(table.note))
        head, *rows = _put_text_first(table, escape_markdown)
        print("\n".join(format_markdown(head, rows, table.left + table.last)))
    for names, examples in group_examples(analysis):
        _print_lines(f"### {escape_markdown(describe_examples(*names))}")
        for example in examples:
            print(f"{escape_markdown(describe_example(example))}\n")
            for what, text, _ in list_texts(example):
                print(f"- {escape_markdown(what)}: {escape_markdown(decode_text(text))}")
            print()


def print_latex(analysis: SystemAnalysis) -> None:
    """Print tables and examples as LaTeX."""
    stream = output_stream()
    for table in _list_tables(analysis):
        _print_lines(
            rf"\paragraph{{{escape_latex(table.title)}}}", escape_latex(table.note), stream=stream
        )
        head, *rows = _put_text_first(table, str)
        print("\n".join(format_latex(head, rows, table.left + table.last)), file=stream)
    for names, examples in group_examples(analysis):
        title = escape_latex(describe_examples(*names))
        _print_lines(rf"\paragraph{{{title}}}", stream=stream)
        for example in examples:
            lines = [rf"\noindent {escape_latex(describe_example(example))}"]
            lines.append(r"\begin{description}")
            for what, text, _ in list_texts(example):
                lines.append(rf"\item[{escape_latex(what)}] {escape_latex(decode_text(text))}")
            print("\n".join([*lines, r"\end{description}"]), file=stream)


def _print_lines(*lines: str, stream: TextIO | None = None) -> None:
    """Print paragraphs, with blank lines around them."""
    print("".join(f"\n{line}\n" for line in lines if line), file=stream)


def _put_text_first(
    table: AnalysisTable, escape: Callable[[str], str]
) -> Iterator[tuple[str, ...]]:
    """Yield the head and the rows with the last columns first, if these hold text."""
    for row in (table.head, *table.rows):
        cells = tuple(map(escape, row))
        yield (*cells[len(cells) - table.last :], *cells[: len(cells) - table.last])
