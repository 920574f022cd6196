"""Weights as JSON: dense and sparse features by name.

::

    {"dense": {"LM0": 0.5, "TranslationModel0": [0.1, 0.3]},
     "sparse": {"WT_auf~on": 7}}

    {"lm": 0.5, "tm": 0.3, "length_exponent": 0.8}

A dense feature has one number, or a list of them with null for a component that is not tuned.
Either part may be missing. The second form, as scripts have it, does not tell dense from sparse
features. The first also has the keys of ``formats.weights.list_changes``, the second only that of
the exponent.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from formats.errors import FormatError, quote
from formats.text import StrPath
from formats.weights.list_changes import (
    EXPONENT,
    RECORD_KEYS,
    UNCHANGED,
    ListChanges,
    list_change_records,
    parse_change_records,
)

_PARTS = ("dense", "sparse", *RECORD_KEYS)


@dataclass(frozen=True)
class JsonWeights:
    """The content of a file.

    Attributes:
        dense: the values of each dense feature, None for components that are not tuned; of a flat
            file, all features.
        changes: how the lists were changed that the weights were learned from.
        is_flat: whether the file does not tell dense from sparse features.
    """

    dense: Mapping[str, tuple[float | None, ...]]
    sparse: Mapping[str, float]
    changes: ListChanges = field(default_factory=ListChanges)
    is_flat: bool = False


def is_json(text: bytes) -> bool:
    """Return whether a text begins as a JSON object does."""
    begin = text.lstrip()
    return begin[:1] == b"{" and begin[1:].lstrip()[:1] in (b'"', b"}")


def parse_json_weights(path: StrPath, text: bytes) -> JsonWeights:
    """Parse weights.

    Raises:
        FormatError: the text is not JSON of this form, or has no weights.
    """
    try:
        document = json.loads(text, object_pairs_hook=_Pairs)
    except json.JSONDecodeError as error:
        raise FormatError(f"not JSON: {error.msg}", path=path, line=error.lineno) from None
    except (UnicodeDecodeError, RecursionError, ValueError) as error:
        raise FormatError(f"not JSON: {error}", path=path) from None
    parts = _unique(document, "the file", path)
    is_flat = bool(parts) and all(_is_weight(name, value) for name, value in parts.items())
    if is_flat:
        exponent = {key: parts.pop(key) for key in (EXPONENT,) if key in parts}
        if not parts:
            raise _no_weights(path)
        changes = parse_change_records(exponent, partial(_format_error, path=path))
        return JsonWeights(_parse_dense(parts, path), {}, changes, is_flat=True)
    if strange := [name for name in parts if name not in _PARTS]:
        raise _format_error(f"unknown key {quote(strange[0])}", path)
    dense = _parse_dense(_unique(parts.get("dense", _Pairs()), "dense", path), path)
    sparse = {
        name: _number(value, name, path)
        for name, value in _unique(parts.get("sparse", _Pairs()), "sparse", path).items()
    }
    if not dense and not sparse:
        raise _no_weights(path)
    records = {key: parts[key] for key in RECORD_KEYS if key in parts}
    if "derived" in records:
        records["derived"] = _unique(records["derived"], "derived", path)
    changes = parse_change_records(records, partial(_format_error, path=path))
    return JsonWeights(dense, sparse, changes)


def _is_weight(name: str, value: object) -> bool:
    """Return whether a pair of a flat file is a weight: a number or a list of them."""
    is_list = isinstance(value, list) and not isinstance(value, _Pairs)
    return (is_list and name not in _PARTS) or isinstance(value, int | float)


def _parse_dense(document: Mapping[str, Any], path: StrPath) -> dict[str, tuple[float | None, ...]]:
    dense = {
        name: tuple(
            None if number is None else _number(number, name, path)
            for number in (value if isinstance(value, list) else [value])
        )
        for name, value in document.items()
    }
    if empty := [name for name, values in dense.items() if not values]:
        raise _format_error(f"{quote(empty[0])} has no weight", path)
    return dense


def format_json_weights(
    dense: Iterable[tuple[str, Sequence[float | None]]],
    sparse: Mapping[str, float],
    changes: ListChanges = UNCHANGED,
) -> bytes:
    """Return weights as JSON, one feature a line, with all digits."""
    parts = [
        f' "{part}": {{\n' + ",\n".join(_format_lines(weights, "  ")) + "\n }"
        for part, weights in (("dense", _join_values(dense)), ("sparse", sparse))
        if weights
    ]
    for key, value in list_change_records(changes).items():
        if isinstance(value, dict):
            parts.append(f' "{key}": {{\n' + ",\n".join(_format_lines(value, "  ")) + "\n }")
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


def format_flat_json(
    dense: Iterable[tuple[str, Sequence[float | None]]],
    sparse: Mapping[str, float],
    exponent: float | None = None,
) -> bytes:
    """Return weights as a flat JSON object, one feature a line, with all digits."""
    weights = {**_join_values(dense), **sparse}
    if exponent is not None:
        weights[EXPONENT] = exponent
    weights |= {name: [None] for name, value in weights.items() if value is None}
    return ("{\n" + ",\n".join(_format_lines(weights, " ")) + "\n}\n").encode()


def _join_values(dense: Iterable[tuple[str, Sequence[float | None]]]) -> dict[str, Any]:
    return {name: values[0] if len(values) == 1 else list(values) for name, values in dense}


def _format_lines(pairs: Mapping[str, Any], indent: str) -> Iterable[str]:
    return (f"{indent}{json.dumps(name)}: {json.dumps(v)}" for name, v in pairs.items())


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, which may repeat a name."""


def _unique(value: object, what: str, path: StrPath) -> dict[str, Any]:
    if not isinstance(value, _Pairs):
        raise _format_error(f"{what} is not an object", path)
    unique: dict[str, Any] = {}
    for name, member in value:
        if name in unique:
            raise _format_error(f"the name {quote(name)} is repeated", path)
        if not name or any(map(str.isspace, name)):
            raise _format_error(f"{quote(name)} is not the name of a feature", path)
        unique[name] = member
    return unique


def _number(value: object, name: str, path: StrPath) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise _format_error(f"a weight of {quote(name)} is not a finite number", path)


def _no_weights(path: StrPath) -> FormatError:
    return FormatError("the file has no weights", path=path, remedy="Give a file of weights")


def _format_error(message: str, path: StrPath) -> FormatError:
    return FormatError(
        message, path=path, remedy='Write {"dense": {"LM0": 0.5, "TM0": [0.1, 0.3]}, "sparse": {}}'
    )
