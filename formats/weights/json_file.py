"""Weights as JSON: dense and sparse features by name.

::

    {"dense": {"LM0": 0.5, "TranslationModel0": [0.1, 0.3]},
     "sparse": {"WT_auf~on": 7}}

A dense feature has one number, or a list of them with null for a component that is not tuned.
Either part may be missing.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from formats.errors import FormatError, quote
from formats.text import StrPath

__all__ = ["format_json_weights", "is_json", "parse_json_weights"]


def is_json(text: bytes) -> bool:
    """Return whether a text begins as a JSON object does."""
    begin = text.lstrip()
    return begin[:1] == b"{" and begin[1:].lstrip()[:1] in (b'"', b"}")


def parse_json_weights(
    path: StrPath, text: bytes
) -> tuple[dict[str, tuple[float | None, ...]], dict[str, float]]:
    """Parse weights.

    Args:
        path: the file, for error messages.
        text: its content.

    Returns:
        The values of each dense feature, None for components that are not tuned; and the sparse
        weights.

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
    if strange := [name for name in parts if name not in ("dense", "sparse")]:
        raise _format_error(f"unknown key {quote(strange[0])}", path)
    dense = {
        name: tuple(
            None if each is None else _number(each, name, path)
            for each in (value if isinstance(value, list) else [value])
        )
        for name, value in _unique(parts.get("dense", _Pairs()), "dense", path).items()
    }
    sparse = {
        name: _number(value, name, path)
        for name, value in _unique(parts.get("sparse", _Pairs()), "sparse", path).items()
    }
    if empty := [name for name, values in dense.items() if not values]:
        raise _format_error(f"{quote(empty[0])} has no weight", path)
    if not dense and not sparse:
        raise FormatError("the file has no weights", path=path, remedy="Give a file of weights")
    return dense, sparse


def format_json_weights(
    dense: Iterable[tuple[str, Sequence[float | None]]], sparse: Mapping[str, float]
) -> bytes:
    """Return weights as JSON, one feature a line, with all digits."""
    values = {name: each[0] if len(each) == 1 else list(each) for name, each in dense}
    parts = []
    for part, weights in (("dense", values), ("sparse", dict(sparse))):
        if weights:
            lines = (f"  {json.dumps(name)}: {json.dumps(v)}" for name, v in weights.items())
            parts.append(f' "{part}": {{\n' + ",\n".join(lines) + "\n }")
    return ("{\n" + ",\n".join(parts) + "\n}\n").encode()


class _Pairs(list[tuple[str, Any]]):
    """The pairs of a JSON object, which may repeat a name."""


def _unique(value: object, what: str, path: StrPath) -> dict[str, Any]:
    if not isinstance(value, _Pairs):
        raise _format_error(f"{what} is not an object", path)
    found: dict[str, Any] = {}
    for name, each in value:
        if name in found:
            raise _format_error(f"the name {quote(name)} is repeated", path)
        if not name or any(map(str.isspace, name)):
            raise _format_error(f"{quote(name)} is not the name of a feature", path)
        found[name] = each
    return found


def _number(value: object, name: str, path: StrPath) -> float:
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise _format_error(f"a weight of {quote(name)} is not a finite number", path)


def _format_error(message: str, path: StrPath) -> FormatError:
    return FormatError(
        message, path=path, remedy='Write {"dense": {"LM0": 0.5, "TM0": [0.1, 0.3]}, "sparse": {}}'
    )
