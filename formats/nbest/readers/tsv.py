"""Tables with tabs, without quotes; see ``formats.nbest.table_columns``."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from os import fspath

from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, Place
from formats.nbest.list_format import ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import iter_line_blocks, whole_sentences
from formats.nbest.table_columns import explain_columns, find_columns, find_form, has_id_column
from formats.nbest.tables import TableForm, parse_table, split_line
from formats.text import StrPath


def _recognizes(lines: Sequence[bytes]) -> bool:
    return has_id_column(split_line(lines[0]))


def _explain(lines: Sequence[bytes], options: ListOptions) -> str:
    return explain_columns(split_line(lines[0]), options)


@whole_sentences
def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
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


LIST_FORMATS = (
    ListFormat(
        name="tsv",
        summary="columns with tabs, named by the first line or --columns",
        recognizes=_recognizes,
        read_blocks=_read_blocks,
        explain=_explain,
    ),
)
