"""Hypotheses without ids: every N lines are one sentence (``flat:N``).

A line is the text, or the text and numbers behind tabs. An empty line is a hypothesis without
words. The numbers are ``score``, or ``score1``, ``score2``, ...; ``--names`` or ``--columns`` name
them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import fspath

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.entry import Place
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import iter_line_blocks, join_sentences
from formats.nbest.table_columns import check_columns
from formats.nbest.tables import SKIPPED, TableForm, parse_table, split_line
from formats.text import StrPath


def read_groups(
    path: StrPath, columns: Sequence[str] | None, options: ListOptions, name: str
) -> Iterator[NBestList]:
    """Yield a file of ``options.group_size`` lines per sentence in blocks.

    Each block has whole sentences.

    Args:
        columns: the names of the columns; None: those of the first line.
        options: see ``ListOptions``.

    Raises:
        FormatError: a line does not have these columns, or the last sentence lacks hypotheses.
    """
    return join_sentences(_parse(fspath(path), columns, options, name))


def _parse(
    path: str, columns: Sequence[str] | None, options: ListOptions, name: str
) -> Iterator[NBestList]:
    """Yield blocks that may end within a sentence."""
    if (group_size := options.group_size) is None:
        raise FormatError(
            "the list has no sentence ids, and the number of hypotheses of a sentence is unknown",
            path=path,
            remedy=f"Give it: --format {name}:N",
        )
    form: TableForm | None = None
    n_lines = 0
    for text, first_line in iter_line_blocks(path):
        if form is None:
            first = text.partition(b"\n")[0]
            columns = columns or _columns(first, options, Place(path, 1))
            form = TableForm(tuple(columns), None, group_size, keeps_empty=True)
        block = parse_table(text, form, path, first_line, SentenceIds(), n_lines)
        n_lines += len(block)
        yield block
    if n_lines % group_size:
        raise FormatError(
            f"the list has {n_lines} lines, which is not a multiple of {group_size}",
            path=path,
            line=n_lines,
            remedy="Every sentence needs the same number of hypotheses: fill up with empty lines, "
            "or use a format with ids (tsv, jsonl)",
        )


def _columns(line: bytes, options: ListOptions, place: Place) -> Sequence[str]:
    """Return the names of the columns of a list whose first line is this one."""
    if options.columns is not None:
        check_columns(options.columns, place)
        return options.columns
    n_values = len(split_line(line)) - 1
    if options.names is None:
        numbered = [f"score{number}" for number in range(1, n_values + 1)]
        return ["hyp", *(["score"] if n_values == 1 else numbered)]
    if len(options.names) != n_values:
        raise place.error(
            f"the line has {n_values} numbers behind the text, but {len(options.names)} names "
            "were given",
            "Give one name for each number (--names), separated by one tab each",
        )
    check_columns([name for name in options.names if name != SKIPPED], place)
    return ["hyp", *options.names]


def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    return read_groups(path, None, options, "flat")


LIST_FORMATS = (
    ListFormat(
        name="flat",
        summary="flat:N: N lines a sentence: the text, tabs and numbers",
        recognizes=lambda lines: False,
        read_blocks=_read_blocks,
        is_sized=True,
    ),
)
