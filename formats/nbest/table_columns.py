"""The columns of a table: their names, and what they hold.

The first line names them, or the caller.

The columns are the sentence id (``ID_NAMES``), the hypothesis (``TEXT_NAMES``), and features; ``-``
is not read. Ids are texts unless the first one of a column ``id`` or ``sentence_id`` is an integer.
The first column may lack a name: it is the index of a data frame, and not read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from formats.decimals import parse_number
from formats.errors import FormatError, quote
from formats.nbest.entry import BLANKS, Place
from formats.nbest.list_format import ID_NAMES, INTEGER_ID_NAMES, TEXT_NAMES, ListOptions
from formats.nbest.tables import SKIPPED, TableForm

_ANY_ID = f"{', '.join(ID_NAMES[:-1])} or {ID_NAMES[-1]}"
_EXAMPLE = "A table begins with a line like: {}; or name its columns (--columns)"


def has_id_column(fields: Sequence[bytes]) -> bool:
    """Return whether the fields of a first line name a table with sentence ids."""
    header = [field.strip(BLANKS).decode("utf-8", "replace") for field in fields]
    return len(header) > 1 and any(name in header for name in ID_NAMES)


def explain_columns(fields: Sequence[bytes], options: ListOptions) -> str:
    """Return which columns are id, hypothesis and features, by the first line."""
    try:
        columns, _ = find_columns(fields, options, Place("", 1))
    except FormatError:
        return ""  # the reader says it, with the file
    form = TableForm(columns, "texts")
    parts = [("id", form.id_column), ("hypothesis", form.text_column)]
    words = [f"{what} in column {columns[at]}" for what, at in parts if at is not None]
    return ", ".join(words + [f"features {' '.join(form.names)}"] * bool(form.names))


def find_columns(
    fields: Sequence[bytes], options: ListOptions, place: Place, separator: str = "<TAB>"
) -> tuple[tuple[str, ...], bool]:
    """Return the names of the columns, and whether the first line is a header.

    Args:
        options: see ``ListOptions``.
        separator: what separates columns, as messages show it.

    Raises:
        FormatError: no column is the sentence id, or a name cannot be used.
    """
    header = [field.strip(BLANKS).decode("utf-8", "surrogateescape") for field in fields]
    example = _EXAMPLE.format(separator.join(("id", "hyp", "lm")))
    wanted = options.columns
    if wanted is None:
        if not any(name in header for name in ID_NAMES):
            raise place.error(
                f"no column of the first line is called {_ANY_ID}: {quote(', '.join(header))}",
                example,
            )
        if not header[0]:
            header[0] = SKIPPED
        check_columns(header, place, example)
        return tuple(header), True
    if not {name for name in wanted if name != SKIPPED} <= set(header):
        check_columns(wanted, place, example)
        return wanted, False
    chosen = [name if name in wanted else SKIPPED for name in header]
    check_columns(chosen, place, example)
    return tuple(chosen), True


def find_form(
    fields: Sequence[bytes],
    columns: tuple[str, ...],
    options: ListOptions,
    place: Place,
    separator: str = "tab",
) -> TableForm:
    """Return the form of a table whose first line of data has these fields.

    Args:
        options: see ``ListOptions``.

    Raises:
        FormatError: no column is the sentence id, or the line seems to be one of names.
    """
    column = next((i for i, name in enumerate(columns) if name in ID_NAMES), None)
    if column is None:
        raise place.error(
            f"no column is called {_ANY_ID}: {', '.join(columns)}",
            "Name the column of the sentence id; lists without ids: --format flat:N",
        )
    field = fields[column].strip(BLANKS) if column < len(fields) else b""
    remedy = f"Give every line the columns of the first one, separated by one {separator}"
    form = TableForm(columns, "texts", remedy=remedy)
    values = [fields[i] for i in form.value_columns if i < len(fields)]
    if values and columns == options.columns and not any(map(_is_number, values)):
        raise place.error(
            f"none of the columns {', '.join(form.names)} has a number: this seems to be a line of "
            "names",
            "Remove it, or name the columns as it does (--columns)",
        )
    is_integer = columns[column] in INTEGER_ID_NAMES and field.isdigit()
    return replace(form, ids="integers") if is_integer else form


def check_columns(columns: Sequence[str], place: Place, example: str = "") -> None:
    """Reject names that no feature may have, and columns with one name.

    Args:
        example: what to do about an empty name; empty: give each a name.
    """
    for kinds in (ID_NAMES, TEXT_NAMES):
        if len(same := [name for name in columns if name in kinds]) > 1:
            raise place.error(
                f"the columns {' and '.join(same)} have the same meaning",
                f"Choose one: name the other {SKIPPED} (--columns)",
            )
    for name in columns:
        if not name or any(character.isspace() or character < " " for character in name):
            raise place.error(
                f"the name of a column is empty or has a blank: {quote(name)}",
                example or "Give each column a name without blanks",
            )
        if name != SKIPPED and list(columns).count(name) > 1:
            raise place.error(
                f"two columns are called {quote(name)[1:-1]}", "Name each column once (--columns)"
            )


def _is_number(field: bytes) -> bool:
    value = parse_number(field.strip(BLANKS))
    return value == value
