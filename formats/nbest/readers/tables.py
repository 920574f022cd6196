"""Tables: columns with tabs, commas or semicolons, and lists without ids.

::

    tsv     columns with tabs, without quotes
    csv     columns with commas or semicolons, and quotes around fields with them
    flat:N  without ids: every N lines are one sentence, the text and numbers behind tabs

``formats.nbest.tables`` names the columns of ``tsv`` and ``csv``. In ``csv``, a quote within
quotes is written twice (RFC 4180), as spreadsheets and data frames write it, and a line break
within a text is a blank. In ``flat``, an empty line is a hypothesis without words; the numbers are
``score``, or ``score1``, ``score2``, ..., unless ``--names`` or ``--columns`` name them.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from os import fspath

import numpy as np

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, Place
from formats.nbest.list_format import ID_NAMES, ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import iter_line_blocks, join_sentences, whole_sentences
from formats.nbest.tables import (
    SKIPPED,
    TableForm,
    check_columns,
    explain_columns,
    find_columns,
    find_form,
    has_id_column,
    parse_at_once,
    parse_rows,
    parse_table,
    split_line,
)
from formats.text import StrPath


def _recognizes_tsv(lines: Sequence[bytes]) -> bool:
    return has_id_column(split_line(lines[0]))


def _explain_tsv(lines: Sequence[bytes], options: ListOptions) -> str:
    return explain_columns(split_line(lines[0]), options)


@whole_sentences
def _read_tsv(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    name = fspath(path)
    columns: tuple[str, ...] | None = None
    form: TableForm | None = None
    for text, first_line in iter_line_blocks(path):
        while text and form is None:
            line, _, rest = text.partition(b"\n")
            if line.strip(BLANKS):
                place = Place(name, first_line)
                fields = split_line(line)
                if columns is None:
                    columns, is_header = find_columns(fields, options, place)
                    if is_header:
                        text, first_line = rest, first_line + 1
                        continue
                form = find_form(fields, columns, options, place)
                break
            text, first_line = rest, first_line + 1
        if text and form is not None:
            yield parse_table(text, form, name, first_line, ids, 0)


BLOCK_ROWS = 20_000
_SEPARATORS = {",": "comma", ";": "semicolon"}


def _split(text: str, separator: str) -> list[str]:
    """Return the fields of a line; quotes are part of the text if the line is not CSV."""
    try:
        return next(csv.reader([text], delimiter=separator), [])
    except csv.Error:
        return text.split(separator)


def _split_first(line: bytes) -> tuple[list[bytes], str]:
    """Return the fields of a first line, and what separates them."""
    text = line.decode("utf-8", "surrogateescape").rstrip("\r\n")
    names = {*ID_NAMES}
    for separator in _SEPARATORS:
        fields = _split(text, separator)
        if len(fields) > 1 and names & {field.strip() for field in fields}:
            break
    else:
        separator = max(_SEPARATORS, key=text.count)
        fields = _split(text, separator)
    return [field.encode("utf-8", "surrogateescape") for field in fields], separator


def _recognizes_csv(lines: Sequence[bytes]) -> bool:
    return has_id_column(_split_first(lines[0])[0])


def _explain_csv(lines: Sequence[bytes], options: ListOptions) -> str:
    return explain_columns(_split_first(lines[0])[0], options)


@whole_sentences
def _read_csv(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    name = fspath(path)
    lines = _Texts(path)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return
    place = Place(name, lines.number)
    header, separator = _split_first(first.encode("utf-8", "surrogateescape"))
    columns, is_header = find_columns(header, options, place, separator)
    rows = _rows(lines if is_header else lines.again(first), separator, lines, name)
    row = next(rows, None)
    if row is None:
        return
    number, fields = row
    form = find_form(fields, columns, options, Place(name, number), _SEPARATORS[separator])
    form = replace(
        form, remedy=f"{form.remedy}; put texts with a {_SEPARATORS[separator]} in quotes"
    )
    waiting = [row, *islice(rows, BLOCK_ROWS - 1)]
    while waiting:
        yield _parse_block(waiting, form, name, ids)
        waiting = list(islice(rows, BLOCK_ROWS))


def _parse_block(
    rows: Sequence[tuple[int, Sequence[bytes]]], form: TableForm, path: str, ids: SentenceIds
) -> NBestList:
    """Parse rows at once as a table with tabs, or one by one if a text has a tab."""
    n_tabs = len(rows) * (len(form.columns) - 1)
    if all(len(cells) == len(form.columns) for _, cells in rows):
        text = b"".join(b"%b\n" % b"\t".join(cells) for _, cells in rows)
        if text.count(b"\t") == n_tabs:
            block = parse_at_once(text, form, path, 1, ids)
            if block is not None:
                return replace(block, lines=np.array([number for number, _ in rows]))
    return parse_rows(rows, form, path, ids)


class _Texts:
    """The lines of a file as texts."""

    def __init__(self, path: StrPath) -> None:
        self.number = 0
        self._lines = self._read(path)

    def _read(self, path: StrPath) -> Iterator[str]:
        for block, first_line in iter_line_blocks(path):
            for number, line in enumerate(block.removesuffix(b"\n").split(b"\n"), start=first_line):
                self.number = number
                yield line.decode("utf-8", "surrogateescape") + "\n"

    def again(self, line: str) -> Iterator[str]:
        """Yield a line that was read, and then the others."""
        yield line
        yield from self._lines

    def __iter__(self) -> Iterator[str]:
        return self._lines


def _rows(
    texts: Iterable[str], separator: str, lines: _Texts, path: str
) -> Iterator[tuple[int, list[bytes]]]:
    """Yield the fields of each row, with the number of its first line."""
    last = lines.number - (texts is not lines)
    reader = csv.reader(texts, delimiter=separator, strict=True)
    while True:
        try:
            fields = next(reader, None)
        except csv.Error as error:
            raise Place(path, last + 1).error(
                f"the row is not CSV: {error}",
                'Put a field with a quote in quotes, and write that quote twice: "a ""b"" c"',
            ) from None
        if fields is None:
            return
        first, last = last + 1, lines.number
        cells = [field.encode("utf-8", "surrogateescape") for field in fields]
        if any(cell.strip(BLANKS) for cell in cells):
            yield first, [cell.replace(b"\n", b" ").replace(b"\r", b" ") for cell in cells]


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
    return join_sentences(_parse_groups(fspath(path), columns, options, name))


def _parse_groups(
    path: str, columns: Sequence[str] | None, options: ListOptions, name: str
) -> Iterator[NBestList]:
    """Yield blocks that may end within a sentence."""
    if (group_size := options.group_size) is None:
        raise FormatError(
            "the list has no sentence ids, and the number of hypotheses of a sentence is unknown",
            path=path,
            remedy=f"Give it: {{--format}} {name}:N",
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
            "Give one name for each number ({--names}), separated by one tab each",
        )
    check_columns([name for name in options.names if name != SKIPPED], place)
    return ["hyp", *options.names]


def _read_flat(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    return read_groups(path, None, options, "flat")


LIST_FORMATS = (
    ListFormat(
        name="tsv",
        summary="columns with tabs, named by the first line or {--columns}",
        recognizes=_recognizes_tsv,
        read_blocks=_read_tsv,
        explain=_explain_tsv,
    ),
    ListFormat(
        name="csv",
        summary="columns with commas, named by the first line or {--columns}",
        recognizes=_recognizes_csv,
        read_blocks=_read_csv,
        explain=_explain_csv,
    ),
    ListFormat(
        name="flat",
        summary="flat:N: N lines a sentence: the text, tabs and numbers",
        recognizes=lambda lines: False,
        read_blocks=_read_flat,
        is_sized=True,
    ),
)
