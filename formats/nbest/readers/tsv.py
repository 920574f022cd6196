"""Tables with tabs: a header line names the columns, or the caller does.

The columns are the sentence id (``ID_NAMES``), the hypothesis (``TEXT_NAMES``), and features; ``-``
is not read. Ids are texts unless the first one of a column ``id`` is an integer.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from os import fspath

from formats.decimals import parse_number
from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, Place
from formats.nbest.list_format import (
    ID_NAMES,
    TEXT_NAMES,
    ListFormat,
    ListOptions,
    SentenceIds,
)
from formats.nbest.regroup import iter_line_blocks, join_sentences
from formats.nbest.tables import SKIPPED, TableForm, parse_table, split_line
from formats.text import StrPath

__all__ = ["LIST_FORMAT", "check_columns"]

_ANY_ID = f"{', '.join(ID_NAMES[:-1])} or {ID_NAMES[-1]}"
_EXAMPLE = "A table begins with a line like: id<TAB>hyp<TAB>lm; or name its columns (--columns)"


def _recognizes(lines: Sequence[bytes]) -> bool:
    header = [field.strip(BLANKS).decode("utf-8", "replace") for field in split_line(lines[0])]
    return len(header) > 1 and any(name in header for name in ID_NAMES)


def _explain(lines: Sequence[bytes], options: ListOptions) -> str:
    """Return which columns are the id, the hypothesis and the features."""
    try:
        columns, _ = _columns(lines[0], options, Place("", 1))
    except FormatError:
        return ""  # the reader says it, with the file
    form = TableForm(columns, "texts")
    parts = [("id", form.id_column), ("hypothesis", form.text_column)]
    words = [f"{what} in column {columns[at]}" for what, at in parts if at is not None]
    return ", ".join(words + [f"features {' '.join(form.names)}"] * bool(form.names))


def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    return join_sentences(_parse(path, options, ids))


def _parse(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    """Yield blocks that may end within a sentence."""
    name = fspath(path)
    columns: tuple[str, ...] | None = None
    form: TableForm | None = None
    for text, first_line in iter_line_blocks(path):
        while text and form is None:
            line, _, rest = text.partition(b"\n")
            if line.strip(BLANKS):
                place = Place(name, first_line)
                if columns is None:
                    columns, is_header = _columns(line, options, place)
                    if is_header:
                        text, first_line = rest, first_line + 1
                        continue
                form = _form(line, columns, options, place)
                break
            text, first_line = rest, first_line + 1
        if text and form is not None:
            yield parse_table(text, form, name, first_line, ids, 0)


def _columns(line: bytes, options: ListOptions, place: Place) -> tuple[tuple[str, ...], bool]:
    """Return the names of the columns, and whether the first line is a header."""
    header = [field.strip(BLANKS).decode("utf-8", "surrogateescape") for field in split_line(line)]
    wanted = options.columns
    if wanted is None:
        if not any(name in header for name in ID_NAMES):
            raise place.error(
                f"no column of the first line is called {_ANY_ID}: {quote(', '.join(header))}",
                _EXAMPLE,
            )
        check_columns(header, place)
        return tuple(header), True
    if not {name for name in wanted if name != SKIPPED} <= set(header):
        check_columns(wanted, place)
        return wanted, False
    chosen = [name if name in wanted else SKIPPED for name in header]
    check_columns(chosen, place)
    return tuple(chosen), True


def _form(line: bytes, columns: tuple[str, ...], options: ListOptions, place: Place) -> TableForm:
    """Return the form of a table whose first line of data is this one."""
    column = next((i for i, name in enumerate(columns) if name in ID_NAMES), None)
    if column is None:
        raise place.error(
            f"no column is called {_ANY_ID}: {', '.join(columns)}",
            "Name the column of the sentence id; lists without ids: --format flat:N",
        )
    fields = split_line(line)
    field = fields[column].strip(BLANKS) if column < len(fields) else b""
    form = TableForm(columns, "texts")
    values = [fields[i] for i in form.value_columns if i < len(fields)]
    if values and columns == options.columns and not any(map(_is_number, values)):
        raise place.error(
            f"none of the columns {', '.join(form.names)} has a number: this seems to be a line of "
            "names",
            "Remove it, or name the columns as it does (--columns)",
        )
    is_integer = columns[column] == ID_NAMES[0] and field.isdigit()
    return replace(form, ids="integers") if is_integer else form


def check_columns(columns: Sequence[str], place: Place) -> None:
    """Reject names that no feature may have, and columns with one name.

    Raises:
        FormatError: with the place of the first line.
    """
    for kinds in (ID_NAMES, TEXT_NAMES):
        if len(found := [name for name in columns if name in kinds]) > 1:
            raise place.error(
                f"the columns {' and '.join(found)} have the same meaning",
                f"Choose one: name the other {SKIPPED} (--columns)",
            )
    for name in columns:
        if not name or any(each.isspace() or each < " " for each in name):
            raise place.error(
                f"the name of a column is empty or has a blank: {quote(name)}", _EXAMPLE
            )
        if name != SKIPPED and list(columns).count(name) > 1:
            raise place.error(
                f"two columns are called {quote(name)[1:-1]}", "Name each column once (--columns)"
            )


def _is_number(field: bytes) -> bool:
    value = parse_number(field.strip(BLANKS))
    return value == value


LIST_FORMAT = ListFormat(
    name="tsv",
    summary="columns with tabs, named by the first line or --columns",
    recognizes=_recognizes,
    read_blocks=_read_blocks,
    explain=_explain,
)
