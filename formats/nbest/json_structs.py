"""Parse blocks of JSON lines of one form with msgspec.

The form of the first line becomes a class with one attribute for each feature, so that msgspec
parses a line into one object without dictionaries: several times as fast as any parser of JSON of
any form. A block in which something is unusual is parsed again by ``formats.nbest.json_objects``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain, groupby
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from formats.nbest.block import NBestList
from formats.nbest.entry import FLOAT32_LIMIT
from formats.nbest.json_objects import LARGEST_ID, ListForm
from formats.nbest.list_format import SentenceIds
from formats.nbest.regroup import make_block
from formats.words import Positions, strip_blanks

_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, OverflowError, RecursionError)


@dataclass(frozen=True)
class StructParser:
    """Parses blocks of lines of one form; see ``make_parser``."""

    form: ListForm
    path: str
    decoder: Any
    values: Callable[[Any], Any] | None

    def parse(self, text: bytes, first_line: int, ids: SentenceIds) -> NBestList | None:
        """Parse whole lines; None if a line has anything unusual.

        Args:
            text: lines, each with its ``\\n``.
        """
        n_lines = text.count(b"\n")
        if text.count(b"}\n{") + text.count(b"}\r\n{") != n_lines - 1:
            return None
        try:
            objects = self.decoder.decode_lines(text)
        except _ERRORS:
            return None
        if len(objects) != n_lines:
            return None
        lines = np.arange(first_line, first_line + n_lines)
        rows = objects
        counts: Positions | None = None
        if self.form.list_key is not None:
            counts = np.array([len(sentence.hyps) for sentence in objects], dtype=np.int64)
            rows = list(chain.from_iterable(sentence.hyps for sentence in objects))
            lines = np.repeat(lines, counts)
        numbers = self._numbers(rows)
        sentences = [sentence.id for sentence in objects]
        is_usual = (np.abs(numbers) < FLOAT32_LIMIT).all() and (counts is None or counts.all())
        if not is_usual:
            return None
        texts = [row.text for row in rows] if self.form.text_key is not None else None
        if self.form.is_named:
            at: list[int] = []
            for name, same in groupby(sentences):
                at += [ids.number(name)] * sum(1 for _ in same)
            sentences = at
        elif not 0 <= min(sentences) <= max(sentences) < LARGEST_ID:
            return None
        numbered = np.array(sentences, dtype=np.int64)
        return make_block(
            self.path,
            numbered if counts is None else np.repeat(numbered, counts),
            None if texts is None else _join(texts),
            self.form.names,
            numbers[:, : len(self.form.names)],
            lines,
            scores=numbers[:, -1].copy() if self.form.has_score else None,
        )

    def _numbers(self, rows: Sequence[Any]) -> np.ndarray[Any, np.dtype[np.float64]]:
        """Return the features of each row, and the model score if there is one."""
        n_columns = len(self.form.names) + self.form.has_score
        if self.values is None:
            return np.zeros((len(rows), n_columns))
        all_values = map(self.values, rows)
        values = all_values if n_columns == 1 else chain.from_iterable(all_values)
        return np.fromiter(values, np.float64, len(rows) * n_columns).reshape(-1, n_columns)


def make_parser(first: Any, form: ListForm, path: str) -> StructParser | None:
    """Return a parser for lines like the first one; None if it cannot parse them.

    Args:
        first: the object of the first line, which ``ListForm.of_object`` has accepted.
    """
    try:
        return _make_parser(first, form, path)
    except (ValueError, RecursionError):  # keys that msgspec does not take
        return None


def _make_parser(first: Any, form: ListForm, path: str) -> StructParser | None:
    if form.is_sockeye:
        return None
    rows = first[form.list_key] if form.list_key is not None else [first]
    row = rows[0]
    if form.is_open or form.sums_words or form.id_key is None or not isinstance(row, dict):
        return None
    if form.is_nested and not isinstance(row["scores"], dict):
        return None
    paths: dict[str, str] = {}
    fields: list[_Field] = []
    if form.text_key is not None:
        fields.append(("text", form.text_key, str))
    if form.is_nested:
        fields.append(("scores", "scores", _struct(row["scores"], form, "scores", "", paths)))
        if form.has_score:
            fields.append(("score", "score", float))
    else:
        fields += _number_fields(row, form, paths)
    if not all(name in paths for name in form.names):
        return None
    id_field: _Field = ("id", form.id_key, str if form.is_named else int)
    if form.list_key is None:
        kind = _define([id_field, *fields], strict=not form.is_nested and not form.selects)
    else:
        inner = _define(fields, strict=not form.is_nested and not form.selects)
        kind = _define([id_field, ("hyps", form.list_key, list[inner])], strict=False)  # type: ignore[valid-type]
    wanted = [paths[name] for name in form.names] + ["score"] * form.has_score
    return StructParser(
        form,
        path,
        msgspec.json.Decoder(kind),
        attrgetter(*wanted) if wanted else None,
    )


_NO_NUMBER = str | bool | list[Any] | dict[str, Any] | None
_Field = tuple[str, str, Any] | tuple[str, str, Any, Any]


def _define(fields: Sequence[_Field], *, strict: bool) -> Any:
    """Return a class with these attributes; strict: other keys are rejected."""
    return msgspec.defstruct(
        "Line",
        [(field[0], *field[2:]) for field in fields],
        rename={field[0]: field[1] for field in fields},
        forbid_unknown_fields=strict,
        gc=False,
    )


def _struct(
    scores: dict[str, Any], form: ListForm, at: str, prefix: str, paths: dict[str, str]
) -> Any:
    """Return the class of an object of scores; add its features to ``paths``."""
    fields: list[_Field] = []
    others: list[_Field] = []
    for number, (key, value) in enumerate(scores.items()):
        name, attribute = f"{prefix}{key}", f"v{number}"
        if isinstance(value, dict):
            inner = _struct(value, form, f"{at}.{attribute}", f"{name}.", paths)
            fields.append((attribute, key, inner))
        elif name in form.names:
            paths[name] = f"{at}.{attribute}"
            fields.append((attribute, key, float))
        elif not form.selects:
            others.append((attribute, key, list[Any], None))
    return _define(fields + others, strict=not form.selects)


def _number_fields(row: dict[str, Any], form: ListForm, paths: dict[str, str]) -> list[_Field]:
    """Return the attributes of an object with features among other values."""
    fields: list[_Field] = []
    others: list[_Field] = []
    for number, key in enumerate(row):
        if key in form.names:
            paths[key] = f"v{number}"
            fields.append((f"v{number}", key, float))
        elif key not in (form.id_key, form.text_key):
            others.append((f"v{number}", key, _NO_NUMBER, None))
    return fields + others


def _join(texts: Sequence[str]) -> tuple[np.ndarray[Any, np.dtype[np.uint8]], Positions, Positions]:
    """Return texts in one buffer, where each begins and where it ends."""
    joined = "\n".join(texts).encode()
    buffer = np.frombuffer(joined + b"\n", dtype=np.uint8)
    ends = np.flatnonzero(buffer == ord("\n"))
    if len(ends) != len(texts):
        pieces = [text.encode().replace(b"\n", b" ") for text in texts]
        buffer = np.frombuffer(b"\n".join(pieces) + b"\n", dtype=np.uint8)
        ends = np.flatnonzero(buffer == ord("\n"))
    starts = np.concatenate([[0], ends[:-1] + 1])
    return (buffer, *strip_blanks(buffer, starts, ends))
