"""JSON that is not one object a line: nested arrays, objects of columns, ...

Any of these is a list::

    [["a b", "a c"], ["d"]]
    [[{"text": "a b", "avg_logprob": -0.2}, {"text": "a c", "avg_logprob": -0.3}], [...]]
    [[["a b", -0.2], ["a c", -0.3]], [["d", -0.1]]]
    [{"id": "utt-1", "hyp": "a b", "lm": -3.5}, {"id": "utt-1", "hyp": "a c", "lm": -4}]
    [{"id": "utt-1", "hyps": [{"text": "a b", "lm": -3.5}]}]
    {"utt-1": ["a b", "a c"], "utt-2": ["d"]}
    {"hypotheses": [["a b", "a c"], ["d"]], "scores": [[-0.2, -0.3], [-0.1]]}
    {"id": ["utt-1", "utt-1"], "hyp": ["a b", "a c"], "lm": [-3.5, -4]}

A file may hold several arrays or objects, one for each sentence or hypothesis. An array of all
hypotheses of all sentences, as ``generate`` of Hugging Face returns them, needs their number for
each sentence (``json:N``). Objects are those of ``formats.nbest.json_objects``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from formats.errors import FormatError, quote
from formats.nbest.block import NBestList, concatenate
from formats.nbest.entry import BLANKS, Place
from formats.nbest.json_objects import (
    LIST_KEYS,
    JsonHypothesis,
    ListForm,
    find_key,
    iter_hypotheses,
    make_json_block,
)
from formats.nbest.json_values import JsonReader, is_number, read_integer
from formats.nbest.list_format import ID_NAMES, TEXT_NAMES, ListFormat, ListOptions, SentenceIds
from formats.nbest.regroup import join_sentences, whole_sentences
from formats.nbest.sockeye import is_sentence_of_sockeye
from formats.text import StrPath

BLOCK_ROWS = 20_000
_ARRAY = re.compile(rb'\[\s*(?:["\[{]|$)')
_CUT_COLUMNS = re.compile(rb'"(?:%b)"\s*:\s*\[\s*\[' % "|".join((*LIST_KEYS, *TEXT_NAMES)).encode())
_LINES = "as JSON lines: pandas.DataFrame.to_json(path, orient='records', lines=True)"

_PlacedObject = tuple[dict[str, Any], Place]
"""An object of ``formats.nbest.json_objects``, and its place."""


def _recognizes(lines: Sequence[bytes]) -> bool:
    head = lines[0].lstrip(BLANKS)
    if not head.startswith(b"{"):
        return _ARRAY.match(head) is not None
    try:
        document = json.loads(head.decode("utf-8", "surrogateescape"), parse_int=read_integer)
    except (ValueError, RecursionError):
        if head.endswith(b"\n"):
            return not head.rstrip().endswith(b"}")  # which may be a line with an error
        return len(lines) == 1 and _CUT_COLUMNS.search(head) is not None
    return len(lines) == 1 and isinstance(document, dict) and not _is_object_of_lines(document)


def _is_object_of_lines(document: Mapping[str, Any]) -> bool:
    """Return whether an object is one hypothesis or one sentence."""
    if is_sentence_of_sockeye(document):
        return True
    id_key = find_key(ID_NAMES, document)
    has_id = id_key is not None and not isinstance(document[id_key], list | dict)
    key = find_key((*LIST_KEYS, *TEXT_NAMES), document)
    if key is None or not isinstance(document[key], list):
        return has_id
    rows = document[key]
    first = rows[0] if rows else None
    is_list = key in LIST_KEYS and (not isinstance(first, list) or _is_pair(first))
    # Texts without an id may be those of many sentences.
    return is_list and (has_id or not isinstance(first, str))


def parse_values(
    values: Iterable[Any], name: str, options: ListOptions, ids: SentenceIds
) -> NBestList:
    """Return the lists of values in memory, which are the elements of an array.

    Args:
        name: what errors call them; the line is the number of the sentence, from 1.
        options, ids: as for ``ListFormat.read_blocks``.

    Raises:
        FormatError: a sentence has another form than the first one.
    """
    places = ((value, Place(name, number)) for number, value in enumerate(values, start=1))
    objects = _sentences(places, options.group_size)
    blocks = list(join_sentences(_blocks(objects, name, options, ids)))
    if not blocks:
        raise FormatError("there are no hypotheses", path=name, remedy="Give one sentence or more")
    return concatenate(blocks)


@whole_sentences
def _read_blocks(path: StrPath, options: ListOptions, ids: SentenceIds) -> Iterator[NBestList]:
    reader = JsonReader(path)
    yield from _blocks(_objects(reader, options.group_size), reader.path, options, ids)


def _blocks(
    objects: Iterable[_PlacedObject], name: str, options: ListOptions, ids: SentenceIds
) -> Iterator[NBestList]:
    """Yield blocks of about ``BLOCK_ROWS`` hypotheses."""
    form: ListForm | None = None
    rows: list[JsonHypothesis] = []
    lines: list[int] = []
    for number, (element, place) in enumerate(objects):
        form = form or ListForm.of_object(element, options, place)
        hypotheses = list(iter_hypotheses(element, form, number, place))
        rows += hypotheses
        lines += [place.line] * len(hypotheses)
        if len(rows) >= BLOCK_ROWS:
            yield make_json_block(name, rows, lines, form, ids)
            rows, lines = [], []
    if rows and form is not None:
        yield make_json_block(name, rows, lines, form, ids)


def _objects(reader: JsonReader, group_size: int | None) -> Iterator[_PlacedObject]:
    """Yield the sentences or hypotheses of a document as objects."""
    is_first = True
    while start := reader.peek():
        place = reader.place
        if start == "[":
            yield from _array(reader, group_size, is_first=is_first)
        else:
            element = reader.value()
            if not isinstance(element, dict):
                raise place.error(
                    "the document is a JSON value, not an array or an object",
                    'Write an array for each sentence: [["a b", "a c"], ["d"]]',
                )
            is_only = is_first and not reader.peek()
            yield from _object(element, place, group_size) if is_only else [(element, place)]
        is_first = False


def _array(
    reader: JsonReader, group_size: int | None, *, is_first: bool
) -> Iterator[_PlacedObject]:
    """Yield the sentences of an array, or the array as a sentence."""
    begin = reader.place
    own: list[Any] = []
    yield from _sentences(reader.items(), group_size, own)
    if not own:
        return
    if is_first and not reader.peek():
        raise _without_sentences(len(own), begin)
    yield {LIST_KEYS[0]: own}, begin


def _sentences(
    elements: Iterable[tuple[Any, Place]], group_size: int | None, own: list[Any] | None = None
) -> Iterator[_PlacedObject]:
    """Yield the sentences of an array.

    Args:
        group_size: number of hypotheses of each sentence, if elements are hypotheses.
        own: takes hypotheses that name no sentence; None: they are errors.
    """
    waiting: list[Any] = []
    for element, place in elements:
        if not _is_hypothesis(element):
            if waiting or group_size is not None:
                raise place.error(
                    "the array has a sentence where json:N has hypotheses"
                    if group_size is not None
                    else "the array has a sentence after a hypothesis",
                    "Write one array for each sentence, without a number ({--format json})",
                )
            yield _wrap(element, place), place
            continue
        waiting.append(element)
        if len(waiting) == group_size:
            yield {LIST_KEYS[0]: waiting}, place
            waiting = []
        elif own is None and group_size is None:
            raise _without_sentences(1, place)
    if group_size is not None and waiting:
        raise _not_a_multiple(group_size, place)
    if own is not None:
        own += waiting


def _without_sentences(count: int, place: Place) -> FormatError:
    return place.error(
        f"the array has {count} hypotheses, and nothing says of which sentences",
        "Give the number for each sentence ({--format} json:N), or write an array for each: "
        '[["a b", "a c"], ["d"]]',
    )


def _not_a_multiple(group_size: int, place: Place) -> FormatError:
    return place.error(
        f"the number of hypotheses is not a multiple of {group_size}",
        "Every sentence needs the same number of hypotheses with json:N; otherwise write an array "
        "for each sentence",
    )


def _is_hypothesis(element: Any) -> bool:
    """Return whether an element is a hypothesis that does not name its sentence."""
    if isinstance(element, list):
        return _is_pair(element)
    if not isinstance(element, dict):
        return True
    keys = (*ID_NAMES, *LIST_KEYS)
    return find_key(keys, element) is None and not is_sentence_of_sockeye(element)


def _is_pair(element: Sequence[Any]) -> bool:
    """Return whether an array is a text with numbers."""
    has_text = len(element) > 1 and isinstance(element[0], str)
    return has_text and all(map(is_number, element[1:]))


def _wrap(element: Any, place: Place) -> dict[str, Any]:
    """Return a sentence as an object, with the id that all its hypotheses have."""
    if isinstance(element, dict):
        return element
    rows = element
    sentence = {LIST_KEYS[0]: rows}
    if rows and all(isinstance(row, dict) for row in rows):
        key = find_key(ID_NAMES, rows[0])
        if key is not None:
            names = [row.get(key) for row in rows]
            is_named = isinstance(names[0], str)
            if any(name != names[0] for name in names):
                if is_named:
                    raise place.error(
                        f"the hypotheses of one array have several ids: {quote(str(names[0]))} ...",
                        "Write one array for each sentence",
                    )
                return sentence  # ranks, such as 0, 1, 2
            if is_named or len(rows) > 1:
                sentence[key] = names[0]
    return sentence


def _object(
    document: dict[str, Any], place: Place, group_size: int | None
) -> Iterator[_PlacedObject]:
    """Yield what the only object of a document holds."""
    if _is_object_of_lines(document) and group_size is None:
        yield document, place
        return
    _refuse_other_layouts(document, place)
    key = find_key((*LIST_KEYS, *TEXT_NAMES), document)
    if key is not None and isinstance(document[key], list):
        for row in _rows_of_columns(document, key, place, group_size):
            yield row, place
    elif document and all(isinstance(rows, list) for rows in document.values()):
        for name, rows in document.items():
            yield {"id": name, LIST_KEYS[0]: rows}, place
    else:
        yield document, place  # the error is that of an object without id


def _refuse_other_layouts(document: Mapping[str, Any], place: Place) -> None:
    """Reject documents of other programs, with what makes a list of them."""
    if "segments" in document:
        raise place.error(
            "this is a transcript of Whisper: one hypothesis without alternatives",
            "Decode with several temperatures or beams, and write an array of results for each "
            'utterance: [[{"text": "a b", "avg_logprob": -0.2}, ...], ...]',
        )
    if isinstance(document.get("utts"), dict):
        raise place.error(
            "this is data.json of ESPnet 1",
            "Convert it: jq -c '.utts | to_entries[] | {id: .key, hyps: [.value.output[] | "
            "{text: .rec_text, score: .score}]}'",
        )
    if {"columns", "data"} <= document.keys():
        raise place.error("this is a data frame in the orientation split or table", _write(_LINES))
    if document and all(isinstance(column, dict) for column in document.values()):
        raise place.error("this is a data frame in the orientation columns", _write(_LINES))


def _write(how: str) -> str:
    return f"Write it {how}"


def _rows_of_columns(
    document: Mapping[str, Any], key: str, place: Place, group_size: int | None
) -> Iterator[dict[str, Any]]:
    """Yield the sentences or hypotheses of an object with an array for each column."""
    texts = document[key]
    values = dict(document)
    if isinstance(scores := values.pop("scores", None), dict):
        values |= scores
    elif scores is not None:
        values["score"] = scores
    columns = {name: listed for name, listed in values.items() if isinstance(listed, list)}
    for name, column in columns.items():
        if len(column) != len(texts):
            raise place.error(
                f"{quote(name)[1:-1]} has {len(column)} values, and {key} has {len(texts)}",
                "Give one value a hypothesis, or one array a sentence",
            )
    is_nested = bool(texts) and isinstance(texts[0], list)
    columns = {LIST_KEYS[0] if is_nested else TEXT_NAMES[0]: columns.pop(key), **columns}
    rows = [
        {name: column[number] for name, column in columns.items()} for number in range(len(texts))
    ]
    id_key = find_key(ID_NAMES, columns)
    if is_nested or id_key is not None:
        yield from rows
    elif group_size is None:
        raise place.error(
            f"{key} has {len(texts)} hypotheses, and nothing says of which sentences",
            "Give the number for each sentence ({--format} json:N), their ids, or an array for "
            "each",
        )
    elif len(rows) % group_size:
        raise _not_a_multiple(group_size, place)
    else:
        for begin in range(0, len(rows), group_size):
            yield {LIST_KEYS[0]: rows[begin : begin + group_size]}


LIST_FORMATS = (
    ListFormat(
        name="json",
        summary='[["a b", "a c"], ["d"]], and other arrays of hypotheses',
        recognizes=_recognizes,
        read_blocks=_read_blocks,
        may_be_sized=True,
    ),
)
