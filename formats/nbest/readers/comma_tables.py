"""Tables with commas or semicolons (CSV), and quotes around fields with them.

Columns are those of ``formats.nbest.table_columns``. A quote within quotes is written twice (RFC
4180), as spreadsheets and data frames write it. A line break within a text is a blank.
"""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import islice
from os import fspath

import numpy as np

from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, Place
from formats.nbest.list_format import ID_NAMES, ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import iter_line_blocks, whole_sentences
from formats.nbest.table_columns import explain_columns, find_columns, find_form, has_id_column
from formats.nbest.tables import TableForm, parse_at_once, parse_rows
from formats.text import StrPath

BLOCK_ROWS = 20_000
_SEPARATORS = {",": "comma", ";": "semicolon"}


def _split(text: str, separator: str) -> list[str]:
    """Return the fields of a line; quotes are part of the text if the line is not CSV."""
    try:
        return next(csv.reader([text], delimiter=separator), [])
    except csv.Error:
        return text.split(separator)


def _split_line(line: bytes) -> tuple[list[bytes], str]:
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


def _recognizes(lines: Sequence[bytes]) -> bool:
    return has_id_column(_split_line(lines[0])[0])


def _explain(lines: Sequence[bytes], options: ListOptions) -> str:
    return explain_columns(_split_line(lines[0])[0], options)


@whole_sentences
def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    name = fspath(path)
    lines = _Lines(path)
    first = next((line for line in lines if line.strip()), None)
    if first is None:
        return
    place = Place(name, lines.number)
    header, separator = _split_line(first.encode("utf-8", "surrogateescape"))
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


class _Lines:
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
    texts: Iterable[str], separator: str, lines: _Lines, path: str
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


LIST_FORMATS = (
    ListFormat(
        name="csv",
        summary="columns with commas, named by the first line or --columns",
        recognizes=_recognizes,
        read_blocks=_read_blocks,
        explain=_explain,
    ),
)
