"""Parse tables: one hypothesis a line, its columns separated by tabs, no quotes.

The first line names the columns, or the caller.

``parse_table`` finds all tabs of a block at once. A block in which something is unusual is parsed
again line by line, which either succeeds or names the line and the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from formats.decimals import parse_integers, parse_number, parse_numbers
from formats.errors import FormatError, quote
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, FLOAT32_LIMIT, Place, parse_value
from formats.nbest.list_format import (
    ID_NAMES,
    INTEGER_ID_NAMES,
    TEXT_NAMES,
    ListOptions,
    SentenceIds,
)
from formats.nbest.regroup import make_block, pack_texts
from formats.words import (
    PAD,
    Bytes,
    Positions,
    are_same_bytes,
    hash_tokens,
    pad_with_newlines,
    strip_blanks,
)

SKIPPED = "-"
"""The name of a column that is not read."""

_ID_DIGITS = 18


@dataclass(frozen=True)
class TableForm:
    """The columns of a table.

    Attributes:
        columns: the name of each column; ``-`` is not read.
        ids: whether sentence ids are integers or texts; None: every ``group_size`` lines are one
            sentence.
        group_size: number of hypotheses of each sentence.
        keeps_empty: whether an empty line is a hypothesis without words.
        remedy: what to do about a wrong number of columns.
    """

    columns: tuple[str, ...]
    ids: Literal["integers", "texts"] | None
    group_size: int = 1
    keeps_empty: bool = False
    remedy: str = "Give every line the columns of the first one, separated by one tab"

    @property
    def id_column(self) -> int | None:
        """The column of the sentence id."""
        return self._find(ID_NAMES) if self.ids is not None else None

    @property
    def text_column(self) -> int | None:
        """The column of the hypothesis."""
        return self._find(TEXT_NAMES)

    @property
    def value_columns(self) -> tuple[int, ...]:
        """The columns of the features."""
        others = (SKIPPED, *ID_NAMES, *TEXT_NAMES)
        return tuple(i for i, name in enumerate(self.columns) if name not in others)

    @property
    def names(self) -> tuple[str, ...]:
        """The features."""
        return tuple(self.columns[column] for column in self.value_columns)

    def _find(self, names: Sequence[str]) -> int | None:
        return next((i for i, name in enumerate(self.columns) if name in names), None)


def split_line(line: bytes) -> list[bytes]:
    """Return the columns of a line without its line end."""
    return line.removesuffix(b"\n").removesuffix(b"\r").split(b"\t")


def parse_table(
    text: bytes, form: TableForm, path: str, first_line: int, ids: SentenceIds, n_before: int
) -> NBestList:
    """Parse whole lines.

    Args:
        text: lines, each with its ``\\n``.
    """
    block = parse_at_once(text, form, path, first_line, ids, n_before)
    if block is None:
        return _parse_slowly(text, form, path, first_line, ids, n_before)
    return block


def parse_at_once(
    text: bytes, form: TableForm, path: str, first_line: int, ids: SentenceIds, n_before: int = 0
) -> NBestList | None:
    """Parse whole lines at once; None if a line has anything unusual.

    Arguments are those of ``parse_table``.
    """
    padded = pad_with_newlines(text)
    newlines = np.flatnonzero(padded[PAD - 1 : -PAD] == ord("\n")) + (PAD - 1)
    line_starts, line_ends = newlines[:-1] + 1, newlines[1:]
    line_ends = line_ends - (padded[line_ends - 1] == ord("\r"))
    n, n_columns = len(line_starts), len(form.columns)
    tabs = np.flatnonzero(padded == ord("\t"))
    if len(tabs) != n * (n_columns - 1) or (
        not form.keeps_empty and (line_starts >= line_ends).any()
    ):
        return None
    cuts = tabs.reshape(n, n_columns - 1)
    starts = np.column_stack([line_starts, cuts + 1])
    ends = np.column_stack([cuts, line_ends])
    if (starts[:, -1] > line_ends).any() or (cuts[:, :1] < line_starts[:, None]).any():
        return None
    dense = np.empty((n, len(form.names)))
    for place, column in enumerate(form.value_columns):
        dense[:, place] = parse_numbers(
            padded, *strip_blanks(padded, starts[:, column], ends[:, column])
        )
    if not (np.abs(dense) < FLOAT32_LIMIT).all():
        return None
    sentences = _sentences(padded, starts, ends, form, ids, n_before)
    if sentences is None:
        return None
    texts = None
    if form.text_column is not None:
        begin, end = strip_blanks(padded, starts[:, form.text_column], ends[:, form.text_column])
        texts = (padded[PAD:-PAD], begin - PAD, end - PAD)
    lines = np.arange(first_line, first_line + n)
    return make_block(path, sentences, texts, form.names, dense, lines)


def _sentences(
    padded: Bytes,
    starts: Positions,
    ends: Positions,
    form: TableForm,
    ids: SentenceIds,
    n_before: int,
) -> Positions | None:
    """Return the sentence of each line; None if an id is unusual."""
    n = len(starts)
    if form.id_column is None:
        return np.arange(n_before, n_before + n) // form.group_size
    begin, end = strip_blanks(padded, starts[:, form.id_column], ends[:, form.id_column])
    if form.ids == "integers":
        parsed = parse_integers(padded, begin, end)
        return None if (parsed < 0).any() or (end - begin > _ID_DIGITS).any() else parsed
    if (begin == end).any():
        return None
    hashes = hash_tokens(padded, begin, end)
    firsts = np.flatnonzero(np.append(True, hashes[1:] != hashes[:-1]))
    if not are_same_bytes(padded, begin, end, np.repeat(firsts, np.diff(firsts, append=n))):
        return None
    names = (padded[begin[row] : end[row]].tobytes() for row in firsts.tolist())
    numbers = [ids.number(name.decode("utf-8", "surrogateescape")) for name in names]
    return np.repeat(np.array(numbers, dtype=np.int64), np.diff(firsts, append=n))


def _parse_slowly(
    text: bytes, form: TableForm, path: str, first_line: int, ids: SentenceIds, n_before: int
) -> NBestList:
    """Parse line by line, and raise the error of the first invalid line."""
    lines = enumerate(text.removesuffix(b"\n").split(b"\n"), start=first_line)
    rows = (
        (number, split_line(line))
        for number, line in lines
        if line.strip(BLANKS) or form.keeps_empty
    )
    return parse_rows(rows, form, path, ids, n_before)


def parse_rows(
    rows: Iterable[tuple[int, Sequence[bytes]]],
    form: TableForm,
    path: str,
    ids: SentenceIds,
    n_before: int = 0,
) -> NBestList:
    """Parse rows that are split into columns, each with the number of its line.

    Other arguments and errors are as for ``parse_table``.
    """
    sentences: list[int] = []
    texts: list[bytes] = []
    values: list[list[float]] = []
    lines: list[int] = []
    for number, fields in rows:
        place = Place(path, number)
        if len(fields) != len(form.columns):
            raise place.error(
                f"the line has {len(fields)} columns, not {len(form.columns)} "
                f"({', '.join(form.columns)})",
                form.remedy,
            )
        if form.id_column is None:
            sentences.append((n_before + len(sentences)) // form.group_size)
        else:
            sentences.append(_sentence(fields[form.id_column].strip(BLANKS), form, ids, place))
        if form.text_column is not None:
            texts.append(fields[form.text_column].strip(BLANKS))
        values.append(
            [_number(fields[i].strip(BLANKS), form.columns[i], place) for i in form.value_columns]
        )
        lines.append(number)
    dense = np.array(values, dtype=np.float64).reshape(len(lines), len(form.names))
    return make_block(
        path,
        np.array(sentences, dtype=np.int64),
        None if form.text_column is None else pack_texts(texts),
        form.names,
        dense,
        np.array(lines, dtype=np.int64),
    )


def _sentence(field: bytes, form: TableForm, ids: SentenceIds, place: Place) -> int:
    if form.ids == "texts" and field:
        return ids.number(field.decode("utf-8", "surrogateescape"))
    if field.isdigit() and len(field) <= _ID_DIGITS:
        return int(field)
    expected = "an integer, as in the first line" if form.ids == "integers" else "a sentence id"
    raise place.error(
        f"the id is {quote(field)}, not {expected}",
        "Use ids of one kind: line numbers of the references from 0, or names",
    )


def _number(field: bytes, name: str, place: Place) -> float:
    remedy = f"Correct it, or ignore the column: name it {SKIPPED} ({{--columns}})"
    return parse_value(field, f"the value of {quote(name)[1:-1]}", place, remedy)


_ANY_ID = f"{', '.join(ID_NAMES[:-1])} or {ID_NAMES[-1]}"
_EXAMPLE = "A table begins with a line like: {}; or name its columns ({{--columns}})"


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
            "Name the column of the sentence id; lists without ids: {--format} flat:N",
        )
    field = fields[column].strip(BLANKS) if column < len(fields) else b""
    remedy = f"Give every line the columns of the first one, separated by one {separator}"
    form = TableForm(columns, "texts", remedy=remedy)
    values = [fields[i] for i in form.value_columns if i < len(fields)]
    if values and columns == options.columns and not any(map(_is_number, values)):
        raise place.error(
            f"none of the columns {', '.join(form.names)} has a number: this seems to be a line of "
            "names",
            "Remove it, or name the columns as it does ({--columns})",
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
                f"Choose one: name the other {SKIPPED} ({{--columns}})",
            )
    for name in columns:
        if not name or any(character.isspace() or character < " " for character in name):
            raise place.error(
                f"the name of a column is empty or has a blank: {quote(name)}",
                example or "Give each column a name without blanks",
            )
        if name != SKIPPED and list(columns).count(name) > 1:
            raise place.error(
                f"two columns are called {quote(name)[1:-1]}", "Name each column once ({--columns})"
            )


def _is_number(field: bytes) -> bool:
    value = parse_number(field.strip(BLANKS))
    return value == value
