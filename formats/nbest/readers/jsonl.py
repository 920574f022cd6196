"""Lists in JSON lines: one object a line; see ``formats.nbest.json_objects``."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from os import fspath
from typing import Any

from formats.errors import FormatError
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, Place
from formats.nbest.json_objects import JsonHypothesis, ListForm, iter_hypotheses, make_json_block
from formats.nbest.json_values import read_integer
from formats.nbest.list_format import TEXT_NAMES, ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import iter_line_blocks, whole_sentences
from formats.text import StrPath

_FROM_PYTHON = (
    "python3 -c 'import ast, json, sys; "
    "[print(json.dumps(ast.literal_eval(line))) for line in sys.stdin]'"
)


def _recognizes(lines: Sequence[bytes]) -> bool:
    return lines[0].lstrip(BLANKS).startswith(b"{")


@whole_sentences
def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    from formats.nbest.json_structs import StructParser, make_parser  # msgspec takes 10 ms

    name = fspath(path)
    form: ListForm | None = None
    parser: StructParser | None = None
    n_objects = 0
    for text, first_line in iter_line_blocks(path):
        if form is None and (first := _first_object(text, name, first_line)) is not None:
            form = ListForm.of_object(*first[:1], options, first[1])
            parser = make_parser(first[0], form, name)
        if form is None:
            continue
        block = None if parser is None else parser.parse(text, first_line, ids)
        if block is None:
            block = _parse_slowly(text, form, Place(name, first_line), n_objects, ids)
        if form.id_key is None:
            n_objects = int(block.sentence_ids[-1]) + 1 if len(block) else n_objects
        yield block


def _first_object(text: bytes, path: str, first_line: int) -> tuple[Any, Place] | None:
    """Return what the first line holds that is not empty, and its place."""
    for number, line in enumerate(text.split(b"\n"), start=first_line):
        if line.strip(BLANKS):
            place = Place(path, number)
            return _decode(line, place), place
    return None


def _decode(line: bytes, place: Place) -> Any:
    """Return what a line holds; bytes that are no UTF-8 are kept."""
    try:
        return json.loads(line.decode("utf-8", "surrogateescape"), parse_int=read_integer)
    except (ValueError, RecursionError) as error:
        reason = (
            str(error) if isinstance(error, json.JSONDecodeError) else "it is nested too deeply"
        )
        remedy = 'Each line is one object, as {"id": "utt-1", "hyp": "a b", "scores": {"lm": -3.5}}'
        if line.lstrip(BLANKS).startswith(b"{'"):
            reason = "it is a dictionary as Python prints it"
            remedy = f"Convert it: {_FROM_PYTHON} < {shlex.quote(place.path)} > list.jsonl"
        raise place.error(f"the line is not JSON: {reason}", remedy) from None


def _parse_slowly(
    text: bytes, form: ListForm, first: Place, n_objects: int, ids: SentenceIds
) -> NBestList:
    """Parse line by line, and raise the error of the first invalid line."""
    rows: list[JsonHypothesis] = []
    lines: list[int] = []
    for number, line in enumerate(text.split(b"\n"), start=first.line):
        if line.strip(BLANKS):
            place = Place(first.path, number)
            hypotheses = list(iter_hypotheses(_decode(line, place), form, n_objects, place))
            rows += hypotheses
            lines += [number] * len(hypotheses)
            n_objects += 1
    return make_json_block(first.path, rows, lines, form, ids)


def _explain(lines: Sequence[bytes], options: ListOptions) -> str:
    """Return which key is the hypothesis where several could be."""
    try:
        parsed = _decode(lines[0], Place("", 1))
        form = ListForm.of_object(parsed, options, Place("", 1))
    except FormatError:
        return ""  # the reader says it, with the file
    if form.is_sockeye:
        return "the output of Sockeye: costs, whose signs are changed"
    row = parsed if form.list_key is None else parsed[form.list_key][0]
    others = [key for key in TEXT_NAMES if key in row and key != form.text_key]
    return f"hypothesis in key {form.text_key}, not {', '.join(others)}" if others else ""


LIST_FORMATS = (
    ListFormat(
        name="jsonl",
        summary='{"id": "utt-1", "hyp": "a b", "scores": {"lm": -3.5}}',
        recognizes=_recognizes,
        read_blocks=_read_blocks,
        explain=_explain,
    ),
)
