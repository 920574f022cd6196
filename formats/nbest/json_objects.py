"""The grammar of n-best lists in JSON.

A line holds one object, which is one hypothesis or one sentence::

    {"id": "utt-1", "hyp": "a b", "scores": {"asr": -3.5, "lm": {"forward": -7, "backward": -8}}}
    {"id": "utt-1", "hyp": "a b", "asr": -3.5, "lm": -7}
    {"id": "utt-1", "hyps": [{"text": "a b", "scores": {"asr": -3.5}}, {"text": "a c", ...}]}
    {"id": "utt-1", "hyps": ["a b", "a c"], "scores": {"asr": [-3.5, -4]}}
    {"id": "utt-1", "hyps": [["a b", -3.5], ["a c", -4]]}

The first line sets the form. With an object ``scores``, all numbers in it are features, and a
number ``score`` beside it is the model score. Without it, all numbers of the object are features,
and other values are ignored. Scores of scores have names with points (``lm.forward``). A list of
numbers holds the scores of words, whose number varies. Every hypothesis must have the features of
the first one, unless the caller names the dense ones: the value of a missing log probability is
not 0.

The output of Sockeye has such a form, too (``formats.nbest.sockeye``).

``formats.nbest.json_structs`` parses whole blocks faster and leaves all errors to this module.
"""

from __future__ import annotations

import json
import math
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from formats.errors import quote
from formats.nbest.block import NBestList
from formats.nbest.entry import BLANKS, FLOAT32_LIMIT, Place
from formats.nbest.json_values import is_number
from formats.nbest.list_format import ID_NAMES, TEXT_NAMES, ListOptions, SentenceIds
from formats.nbest.regroup import make_block, pack_texts
from formats.nbest.sockeye import convert_sockeye, is_sentence_of_sockeye

LIST_KEYS = ("hyps", "nbest", "hypotheses")

_NO_FEATURES = ("id", "utt_id", "sentence_id")
"""Numbers under these keys are never features."""

LARGEST_ID = 10**18

_ONE_KIND = "Write all ids of a list alike: integers from 0 without quotes, or strings"

_EXAMPLE = 'A line has the form: {"id": "utt-1", "hyp": "a b", "scores": {"lm": -3.5}}'


@dataclass(frozen=True)
class JsonHypothesis:
    """One hypothesis.

    Attributes:
        sentence: its id; the number of the line if sentences have none.
        text: without surrounding blanks; line breaks are blanks.
        dense: values of the features of the form.
    """

    sentence: str | int
    text: bytes
    dense: tuple[float, ...]
    sparse: dict[str, float]
    score: float


@dataclass(frozen=True)
class ListForm:
    """The form that all lines of a list share.

    Attributes:
        id_key: the key of the sentence id; None: sentences are numbered.
        list_key: the key of the hypotheses of a sentence; None: one hypothesis a line.
        text_key: the key of the text; None: there are no texts.
        is_nested: whether the features are in ``scores``.
        is_open: whether a hypothesis may have other features, which are sparse, and lack some.
        selects: whether other features are ignored.
        sums_words: whether scores of words are summed, instead of ignored.
        has_score: whether hypotheses have a model score beside their features.
        is_sockeye: whether the objects are those of Sockeye.
    """

    id_key: str | None
    is_named: bool
    list_key: str | None
    text_key: str | None
    is_nested: bool
    names: tuple[str, ...]
    is_open: bool
    selects: bool
    sums_words: bool
    has_score: bool
    is_sockeye: bool = False

    @classmethod
    def of_object(cls, parsed: Any, options: ListOptions, place: Place) -> ListForm:
        """Determine the form from the object of the first line."""
        _require_object(parsed, place)
        if is_sockeye := is_sentence_of_sockeye(parsed):
            parsed = convert_sockeye(parsed, place)
        list_key = next((key for key in LIST_KEYS if isinstance(parsed.get(key), list)), None)
        id_key = find_key(ID_NAMES, parsed)
        if id_key is None and list_key is None:
            raise place.error(
                f"the object has no id, only {_spell(parsed)}",
                f"{_EXAMPLE}. Lists without ids: {{--format}} flat:N",
            )
        first = parsed if list_key is None else _hypotheses(parsed, list_key, place)[0]
        is_nested = "scores" in first
        sums_words = options.word_scores == "sum"
        selected: tuple[str, ...] | None = None
        if options.columns is not None:
            selected = tuple(n for n in options.columns if n not in (*ID_NAMES, *TEXT_NAMES))
            names = selected
        elif options.dense is not None:
            names = tuple(dict.fromkeys(options.dense))
        else:
            names = tuple(_features(first, is_nested, sums_words, None, id_key, place))
        return cls(
            id_key=id_key,
            is_named=id_key is not None and isinstance(parsed[id_key], str),
            list_key=list_key,
            text_key=find_key(TEXT_NAMES, first),
            is_nested=is_nested,
            names=names,
            is_open=options.dense is not None and selected is None,
            selects=selected is not None,
            sums_words=sums_words,
            has_score=is_nested and first.get("score") is not None,
            is_sockeye=is_sockeye,
        )


def iter_hypotheses(
    parsed: Any, form: ListForm, number: int, place: Place
) -> Iterator[JsonHypothesis]:
    """Yield the hypotheses of the object of a line."""
    _require_object(parsed, place)
    if form.is_sockeye:
        parsed = convert_sockeye(parsed, place)
    sentence = number if form.id_key is None else _sentence(parsed, form, place)
    rows = [parsed] if form.list_key is None else _hypotheses(parsed, form.list_key, place)
    selected = form.names if form.selects else None
    for row in rows:
        values = _features(row, form.is_nested, form.sums_words, selected, form.id_key, place)
        dense = tuple(values.pop(name, math.nan) for name in form.names)
        if form.is_open:
            dense = tuple(0.0 if math.isnan(value) else value for value in dense)
        elif any(map(math.isnan, dense)):
            name = form.names[[*map(math.isnan, dense)].index(True)]
            raise place.error(
                f"the hypothesis has no feature {quote(name)[1:-1]}",
                "All hypotheses need the features of the first one. If this one is 0 where it is "
                "missing, name the dense features ({--dense})",
            )
        if values and not form.is_open:
            raise place.error(
                f"the feature {quote(next(iter(values)))[1:-1]} is not in the first hypothesis",
                "All hypotheses need the same features. Choose some ({--columns} id,hyp,NAME,...), "
                "or name the dense ones ({--dense}): all others are then sparse",
            )
        score = math.nan
        if form.has_score and row.get("score") is not None:
            score = _number(row["score"], "the score", place)
        yield JsonHypothesis(sentence, _text(row, form, place), dense, values, score)


def make_json_block(
    path: str,
    rows: Sequence[JsonHypothesis],
    lines: Sequence[int],
    form: ListForm,
    ids: SentenceIds,
) -> NBestList:
    """Return hypotheses as arrays; ``lines`` are the lines of each."""
    sentences = [s if isinstance(s := row.sentence, int) else ids.number(s) for row in rows]
    dense = np.array([row.dense for row in rows], dtype=np.float64)
    return make_block(
        path,
        np.array(sentences, dtype=np.int64),
        pack_texts([row.text for row in rows]) if form.text_key is not None else None,
        form.names,
        dense.reshape(len(rows), len(form.names)),
        np.array(lines, dtype=np.int64),
        scores=np.array([row.score for row in rows], dtype=np.float64),
        sparse=[row.sparse for row in rows] if form.is_open else (),
    )


def find_key(names: Sequence[str], keys: Mapping[str, Any]) -> str | None:
    """Return the first name that an object has as a key."""
    return next((name for name in names if name in keys), None)


def _require_object(value: Any, place: Place) -> None:
    if not isinstance(value, dict):
        raise place.error(f"the line is a JSON {_kind(value)}, not an object", _EXAMPLE)


def _sentence(parsed: Mapping[str, Any], form: ListForm, place: Place) -> str | int:
    value = parsed.get(form.id_key or "")
    if form.is_named:
        if isinstance(value, str):
            _encode(value, "the id", place)
            return value
    else:
        if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < LARGEST_ID:
            return value
    shown = "missing" if form.id_key not in parsed else quote(json.dumps(value)[:100])[1:-1]
    if isinstance(value, str):
        raise place.error(
            f"the id is the string {shown}, but ids of earlier lines are integers", _ONE_KIND
        )
    if form.is_named:
        raise place.error(f"the id is {shown}, but ids of earlier lines are strings", _ONE_KIND)
    raise place.error(f"the id is {shown}, not an integer from 0 or a string", _EXAMPLE)


def _hypotheses(
    parsed: Mapping[str, Any], list_key: str, place: Place
) -> Sequence[Mapping[str, Any]]:
    """Return the hypotheses of a sentence as objects, at least one."""
    rows = parsed.get(list_key)
    if not isinstance(rows, list):
        state = "missing" if list_key not in parsed else f"a JSON {_kind(rows)}"
        raise place.error(f"{list_key} is {state}, not a list of hypotheses", "Add the list")
    if not rows:
        raise place.error(
            f"{list_key} is empty: the sentence has no hypothesis",
            "Give it an empty one, or remove the sentence and its reference",
        )
    if any(isinstance(row, str) for row in rows):
        rows = _zip(parsed, list_key, rows, place)
    rows = [_name_values(row, place) if isinstance(row, list) else row for row in rows]
    for row in rows:
        if not isinstance(row, dict):
            raise place.error(
                f"a hypothesis is a JSON {_kind(row)}, not an object",
                'A hypothesis has the form: {"text": "a b", "scores": {"lm": -3.5}}',
            )
    return rows


def _zip(
    parsed: Mapping[str, Any], list_key: str, texts: list[Any], place: Place
) -> list[dict[str, Any]]:
    """Return one object for each text, with its values of the lists beside the texts."""
    for text in texts:
        if not isinstance(text, str):
            raise place.error(
                f"a hypothesis is a JSON {_kind(text)}, not a string like another one",
                "Write all hypotheses of a line alike",
            )
    scores = parsed.get("scores", parsed)
    if isinstance(scores, list):
        scores = {"score": scores}
    if not isinstance(scores, dict):
        raise place.error(f"scores is a JSON {_kind(scores)}", "Give one number a hypothesis")
    columns = {
        name: values
        for name, values in scores.items()
        if name != list_key and (scores is not parsed or isinstance(values, list))
    }
    for name, values in columns.items():
        if not isinstance(values, list) or len(values) != len(texts):
            count = len(values) if isinstance(values, list) else "no list of"
            raise place.error(
                f"{quote(name)[1:-1]} has {count} values, and {list_key} has {len(texts)}",
                "Give one number a hypothesis",
            )
    return [
        {"text": text, "scores": {name: values[row] for name, values in columns.items()}}
        for row, text in enumerate(texts)
    ]


def _name_values(row: Sequence[Any], place: Place) -> dict[str, Any]:
    """Return a hypothesis that is an array of its text and numbers as an object."""
    if not row or not isinstance(row[0], str) or not all(map(is_number, row[1:])):
        raise place.error(
            "a hypothesis is a JSON list, but not of a text and numbers",
            'A hypothesis has the form: ["a b", -3.5], or {"text": "a b", "scores": {"lm": -3.5}}',
        )
    names = ["score"] if len(row) == 2 else [f"score{number}" for number in range(1, len(row))]
    return {"text": row[0], "scores": dict(zip(names, row[1:], strict=True))}


def _features(
    row: Mapping[str, Any],
    is_nested: bool,
    sums_words: bool,
    selected: Container[str] | None,
    id_key: str | None,
    place: Place,
) -> dict[str, float]:
    """Return the features of a hypothesis by name, or those selected."""
    values: dict[str, float] = {}
    for name, value in _leaves(row, place) if is_nested else row.items():
        is_list = isinstance(value, list)
        if not is_nested and (name in (id_key, *_NO_FEATURES) or not (is_list or is_number(value))):
            continue
        if (is_list and not sums_words) or not (selected is None or name in selected):
            continue
        if is_list and not is_nested and not all(map(is_number, value)):
            continue
        if name in values:
            raise place.error(f"the feature {quote(name)[1:-1]} appears twice", "Rename one")
        what = f"the value of {name}"
        if is_list:
            value = sum(_number(number, f"a value of {name}", place) for number in value)
            what = f"the sum of {name}"
        values[_name(name, place)] = _number(value, what, place)
    return values


def _leaves(row: Mapping[str, Any], place: Place) -> Iterator[tuple[str, Any]]:
    """Yield names and values of a hypothesis' scores; nested names have points."""
    scores = row.get("scores")
    if not isinstance(scores, dict):
        raise place.error(
            "scores is missing" if scores is None else f"scores is a JSON {_kind(scores)}", _EXAMPLE
        )
    waiting: list[tuple[str, Any]] = [*reversed(scores.items())]
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, dict):
            waiting += [(f"{name}.{inner}", child) for inner, child in reversed(value.items())]
        else:
            yield name, value


def _number(value: Any, what: str, place: Place) -> float:
    """Return a finite number within the range of float32, or raise the error."""
    kind = "not a number"
    if is_number(value):
        if -FLOAT32_LIMIT < value < FLOAT32_LIMIT:
            return float(value)
        kind = "too large" if math.isfinite(_as_float(value)) else "not finite"
        kind = "too large" if isinstance(value, int) else kind
    shown = "null" if value is None else str(value)[:100]
    raise place.error(
        f"{quote(what)[1:-1]} is {kind}: {quote(shown)}",
        "Weights cannot be tuned on it: write a number that stands for it, or drop the hypothesis",
    )


def _as_float(value: float) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _name(name: str, place: Place) -> str:
    """Return the name of a feature that a file of weights can hold."""
    if not name or any(character.isspace() or character < " " for character in name):
        raise place.error(
            f"the feature name {quote(name)} is empty or has a blank", "Rename the feature"
        )
    _encode(name, "a feature name", place)
    return name


def _text(row: Mapping[str, Any], form: ListForm, place: Place) -> bytes:
    if form.text_key is None:
        return b""
    value = row.get(form.text_key)
    if not isinstance(value, str):
        state = "missing" if form.text_key not in row else f"a JSON {_kind(value)}, not a string"
        raise place.error(f"the text of the hypothesis ({form.text_key}) is {state}", _EXAMPLE)
    return _encode(value, "the text", place).replace(b"\n", b" ").strip(BLANKS)


def _encode(text: str, what: str, place: Place) -> bytes:
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise place.error(
            f"{what} has half of a surrogate pair (\\ud800 to \\udfff)", "Write the whole character"
        ) from None


def _kind(value: Any) -> str:
    kinds = {dict: "object", list: "list", str: "string", bool: "boolean", type(None): "null"}
    return kinds.get(type(value), "number")


def _spell(parsed: Mapping[str, Any]) -> str:
    return ", ".join(quote(key) for key in [*parsed][:10]) or "nothing"
