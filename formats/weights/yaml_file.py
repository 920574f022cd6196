"""Weights as YAML: a flat mapping of names to numbers.

Configurations of toolkits hold scales in this form.

::

    # comment
    lm: 0.5
    TranslationModel0: [0.1, 0.3]
    "WT_:~on": 7.0

    added: ["LM"]
    derived: {"lm_norm": "lm/words"}
    length_exponent: 0.8

A feature of several values has a list, with ``null`` for a component that is not tuned. The keys of
``formats.weights.list_changes`` are no features; their texts are JSON, which is YAML, too. This is
a subset of YAML, parsed strictly: a library of all of YAML would accept nested data, anchors and
repeated names, read ``no`` as false and ``1e-5`` as a text, and lose the line of an error.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from formats.errors import FormatError, quote
from formats.text import StrPath
from formats.weights.encoding import decode, encode
from formats.weights.files import format_weight
from formats.weights.lines import duplicate_error, parse_weight
from formats.weights.list_changes import (
    EXPONENT,
    UNCHANGED,
    ListChanges,
    list_change_records,
    parse_change_records,
)

_BEGIN, _END = b"---", b"..."
_KEY = re.compile(
    rb"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s\[\]{}"'#&*!|>%@`,?:][^\s]*?|[?:-][^\s]+?)"""
    rb"""[ \t]*:(?:[ \t]+(.*))?"""
)
_COMMENT = re.compile(rb"(?:^|[ \t])#.*")
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.~^+/-]*")
_WORDS = frozenset(["y", "n", "yes", "no", "on", "off", "true", "false", "null"])
"""Words that YAML does not read as texts."""
_EXPONENT = re.compile(r"^(-?[0-9]+)e")


@dataclass(frozen=True)
class YamlWeights:
    """The content of a file.

    Attributes:
        weights: the values of each feature, None for components that are not tuned.
        changes: how the lists were changed that the weights were learned from.
    """

    weights: Mapping[str, tuple[float | None, ...]]
    changes: ListChanges


def is_yaml(lines: Sequence[bytes]) -> bool:
    """Return whether stripped lines without comments are a mapping, maybe nested.

    A file of sparse weights may have names that end in a colon (``WT_a~: 0.5``); only if all of
    them do, it is taken for YAML.
    """
    return lines[0] == _BEGIN or all(
        _KEY.fullmatch(line) for line in lines if line not in (_BEGIN, _END)
    )


def parse_yaml(path: StrPath, text: bytes) -> YamlWeights:
    """Parse weights.

    Raises:
        FormatError: a line is not ``name: number`` or ``name: [number, number]``, a number is not
            finite, a name is repeated, or there are no weights.
    """
    weights: dict[str, tuple[float | None, ...]] = {}
    records: dict[str, Any] = {}
    for number, line in enumerate(text.split(b"\n"), start=1):
        line = line.rstrip()
        if not line.lstrip() or line.lstrip()[:1] == b"#" or line in (_BEGIN, _END):
            continue
        match = _KEY.fullmatch(line)
        if match is None:
            raise _error(f"{quote(line)} is not name: number", path, number)
        name = _parse_name(match[1], path, number)
        if name in weights or name in records:
            raise duplicate_error(name, path, number)
        if _is_record(name, match[2] or b""):
            records[name] = _parse_record(match[2], name, path, number)
        else:
            weights[name] = _parse_value(match[2] or b"", name, path, number)
    if not weights:
        raise FormatError("the file has no weights", path=path, remedy="Give a file of weights")
    return YamlWeights(weights, parse_change_records(records, partial(_record_error, path=path)))


def format_yaml(
    dense: Iterable[tuple[str, Sequence[float | None]]],
    sparse: Mapping[str, float],
    changes: ListChanges = UNCHANGED,
) -> bytes:
    """Return weights as YAML, one feature a line, with all digits.

    All numbers have a point, and thus are floating-point numbers to every reader of YAML.
    """
    lines = []
    for name, values in [*dense, *((name, (value,)) for name, value in sparse.items())]:
        texts = ["null" if value is None else _format_number(value) for value in values]
        single = len(texts) == 1 and values[0] is not None
        value_text = texts[0] if single else "[" + ", ".join(texts) + "]"
        lines.append(f"{_format_name(name)}: {value_text}\n")
    for key, value in list_change_records(changes).items():
        text = _format_number(value) if isinstance(value, float) else _format_json(value)
        lines.append(f"{key}: {text}\n")
    return encode("".join(lines))


def _parse_name(token: bytes, path: StrPath, line: int) -> str:
    name = decode(token)
    if token[:1] == b'"':
        try:
            name = json.loads(name)
        except ValueError:
            raise _error(f"{quote(token)} is not a text in quotation marks", path, line) from None
    elif token[:1] == b"'":
        name = name[1:-1].replace("''", "'")
    if not name or any(map(str.isspace, name)):
        raise _error(f"{quote(token)} is not the name of a feature", path, line)
    return name


def _parse_value(text: bytes, name: str, path: StrPath, line: int) -> tuple[float | None, ...]:
    value = _COMMENT.sub(b"", text, count=1).strip()
    if not value:
        raise _error(f"{name} has no number on its line", path, line)
    if not value.startswith(b"["):
        return (parse_weight(value, name, path, line),)
    if not value.endswith(b"]"):
        raise _error(f"the list of {name} does not end on its line", path, line)
    items = [item.strip() for item in value[1:-1].split(b",")]
    return tuple(
        None if item in (b"null", b"~") else parse_weight(item, name, path, line) for item in items
    )


def _is_record(name: str, value: bytes) -> bool:
    """Return whether a key is of a change of lists, and no feature."""
    if name == EXPONENT:
        return True
    begins = {"added": rb"\[ *\"", "length_features": rb"\[ *\"", "derived": rb"\{"}
    begins |= dict.fromkeys(("templates", "templates_digest", "length_by"), rb"\"")
    return name in begins and re.match(begins[name], value) is not None


def _parse_record(value: bytes, name: str, path: StrPath, line: int) -> Any:
    if name == EXPONENT:
        (number,) = _parse_value(value, name, path, line)
        return number
    try:
        return json.loads(decode(value))
    except ValueError:
        raise _error(f"the value of {name} is not JSON: {quote(value)}", path, line) from None


def _record_error(message: str, path: StrPath) -> FormatError:
    return FormatError(message, path=path, remedy="Correct the file")


def _format_name(name: str) -> str:
    if _PLAIN.fullmatch(name) and name.lower() not in _WORDS:
        return name
    return _format_json(name)


def _format_json(value: object) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return "".join(c if c.isprintable() else json.dumps(c)[1:-1] for c in text)


def _format_number(value: float) -> str:
    """Format a number so that YAML 1.1 reads one: ``1.0e-05``, not ``1e-05``."""
    text = _EXPONENT.sub(r"\1.0e", format_weight(value))
    return text if "." in text else f"{text}.0"


def _error(message: str, path: StrPath, line: int) -> FormatError:
    return FormatError(
        message,
        path=path,
        line=line,
        remedy="Give a flat mapping, a line for each feature: NAME: NUMBER or NAME: [NUMBER, ...]",
    )
