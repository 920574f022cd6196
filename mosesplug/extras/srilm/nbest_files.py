"""Read SRILM's n-best lists, and directories of further scores.

There is one file for each utterance.

A list has one of three formats; log probabilities are to base 10:

::

    -1234.5 -67.8 3 a b c              acoustic score, LM score, number of words, words

    NBestList1.0
    (-2311) a b c                      bytelog of both scores together

    NBestList2.0
    (-2311) a ( st: 0.00 et: 0.31 g: -98 a: -712 ) ...    LM and acoustic bytelogs of each word

In the last one, tokens inside the time of the word before are phones and HMM states.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from os import fspath
from pathlib import Path

import numpy as np

from formats.decimals import parse_number
from formats.errors import FormatError, quote
from formats.text import StrPath, read_lines
from mosesplug.arrays import Floats

PAUSE = b"-pau-"
"""The word that stands for a pause."""

_BYTELOG = math.log(10.0) * 10000.5 / 1024.0
"""Bytelogs in a logarithm to base 10: a bytelog is one to base 1.0001, divided by 1024."""

_SUFFIXES = (
    *(".Z", ".gz", ".score", ".nbest", ".wav", ".wav_cep"),
    *(".wv", ".wv1", ".sph", ".lat", ".slf", ".plp"),
)
_MAGIC = (b"NBestList1.0", b"NBestList2.0")
_SCORE = re.compile(rb"\(([^()]+)\)")
_STATE = re.compile(rb"-[0-9]$")
_FIELDS = 11
"""Fields of a token of NBestList2.0: the word, two parentheses, four labels and four numbers."""


@dataclass(frozen=True)
class WordRules:
    """How words are changed before errors are counted.

    Attributes:
        lower: fold letters to lower case.
        separator: splits words that stand for several; empty: none are split.
        noise: words that do not count.
    """

    lower: bool = False
    separator: bytes = b""
    noise: frozenset[bytes] = frozenset({PAUSE})

    def apply(self, words: Sequence[bytes]) -> list[bytes]:
        """Return the words that count."""
        found = list(words)
        if self.separator:
            found = [part for word in found for part in word.split(self.separator)]
        if self.lower:
            found = [
                w.decode("utf-8", "surrogateescape").lower().encode("utf-8", "surrogateescape")
                for w in found
            ]
        return [word for word in found if word not in self.noise]


@dataclass(frozen=True)
class SrilmHypothesis:
    """One hypothesis.

    Attributes:
        scores: acoustic score, LM score, and number of words as the recognizer counts them.
    """

    scores: tuple[float, float, float]
    words: tuple[bytes, ...]


def utterance_id(path: StrPath) -> str:
    """Return the id of an utterance: the name of its file without the known suffixes."""
    name = Path(path).name
    for suffix in _SUFFIXES:
        if name.endswith(suffix) and len(suffix) < len(name):
            name = name.removesuffix(suffix)
    return name


def utterance_file(directory: StrPath, utterance: str) -> Path:
    """Return the file of an utterance in a directory; its name may have ``.gz``."""
    path = Path(directory) / utterance
    packed = Path(f"{path}.gz")
    return packed if not path.exists() and packed.exists() else path


def read_nbest_file(path: StrPath, most: int = 0) -> list[SrilmHypothesis]:
    """Read the hypotheses of one utterance.

    Args:
        most: number of hypotheses to read; 0: all.
    """
    name = fspath(path)
    lines = list(enumerate(read_lines(path), start=1))
    magic = next((m for m in _MAGIC if lines and lines[0][1].startswith(m)), None)
    if magic is not None:
        del lines[0]
    found: list[SrilmHypothesis] = []
    for number, line in lines:
        if most and len(found) == most:
            break
        fields = line.split()
        parse = _parse_timed if magic == _MAGIC[1] else _parse_plain
        if magic == _MAGIC[0] or (magic is None and fields and fields[0].startswith(b"(")):
            parse = _parse_joint
        found.append(parse(fields, name, number))
    if not found:
        raise FormatError(
            "the n-best list is empty", path=path, remedy="Remove it from the list of files"
        )
    return found


def _parse_plain(fields: Sequence[bytes], path: str, line: int) -> SrilmHypothesis:
    """Parse ``acoustic lm count words``."""
    numbers = [parse_number(field) for field in fields[:3]]
    if len(numbers) < 3 or not np.isfinite(numbers).all():
        raise _malformed(
            b" ".join(fields), "the form is: acoustic score, LM score, number of words", path, line
        )
    return SrilmHypothesis((numbers[0], numbers[1], numbers[2]), tuple(fields[3:]))


def _parse_joint(fields: Sequence[bytes], path: str, line: int) -> SrilmHypothesis:
    """Parse ``(bytelog) words``; pauses count as words."""
    score = _bytelog(fields[0] if fields else b"", path, line)
    return SrilmHypothesis((score, 0.0, float(len(fields) - 1)), tuple(fields[1:]))


def _parse_timed(fields: Sequence[bytes], path: str, line: int) -> SrilmHypothesis:
    """Parse ``(bytelog) word ( st: 0 et: 1 g: -2 a: -3 ) ...``."""
    _bytelog(fields[0] if fields else b"", path, line)
    if (len(fields) - 1) % _FIELDS:
        raise _malformed(
            fields[0], "a word has the form: a ( st: 0 et: 1 g: -2 a: -3 )", path, line
        )
    acoustic = language = 0.0
    words: list[bytes] = []
    end = -1.0
    for first in range(1, len(fields), _FIELDS):
        token = fields[first]
        values = [parse_number(fields[first + k]) for k in (3, 5, 7, 9)]
        if not np.isfinite(values).all():
            raise _malformed(token, "times and scores of a word must be numbers", path, line)
        if values[0] > end and not _STATE.search(token):
            words.append(token)
            language, acoustic, end = language + values[2], acoustic + values[3], values[1]
    scores = acoustic / _BYTELOG, language / _BYTELOG, float(len(words))
    return SrilmHypothesis(scores, tuple(words))


def _bytelog(field: bytes, path: str, line: int) -> float:
    """Return a score in parentheses as a logarithm to base 10."""
    found = _SCORE.fullmatch(field)
    value = parse_number(found[1]) if found else math.nan
    if math.isnan(value):
        raise _malformed(field, "a line begins with the score in parentheses", path, line)
    return value / _BYTELOG


def _malformed(text: bytes, form: str, path: str, line: int) -> FormatError:
    return FormatError(f"malformed hypothesis {quote(text)}", path=path, line=line, remedy=form)


def read_references(path: StrPath) -> dict[str, tuple[bytes, ...]]:
    """Read references by utterance: ``id word word``.

    Raises:
        FormatError: an utterance is there twice.
    """
    found: dict[str, tuple[bytes, ...]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        if words := line.split():
            name = words[0].decode("utf-8", "surrogateescape")
            if name in found:
                raise FormatError(
                    f"the utterance {quote(name)} appears twice",
                    path=path,
                    line=number,
                    remedy="Give one reference of each utterance",
                )
            found[name] = tuple(words[1:])
    return found


def read_scores(path: StrPath, count: int, *, may_have_more: bool) -> Floats:
    """Read one score for each hypothesis: the first word of each line, or bytelogs.

    Raises:
        FormatError: a line has no score, or there are too few or too many lines.
    """
    lines = list(enumerate(read_lines(path), start=1))
    is_bytelog = bool(lines) and lines[0][1].startswith(_MAGIC)
    if is_bytelog:
        del lines[0]
    _check_count(path, len(lines), count, may_have_more)
    found = []
    for number, line in lines[:count]:
        field = line.split()[0] if line.split() else b""
        if is_bytelog:
            found.append(_bytelog(field, fspath(path), number))
            continue
        value = parse_number(field)
        if math.isnan(value):
            raise FormatError(
                f"{quote(field)} is not a number",
                path=path,
                line=number,
                remedy="Write one score for each hypothesis",
            )
        found.append(value)
    return np.array(found)


def read_errors(path: StrPath, count: int, *, may_have_more: bool) -> Floats:
    """Read errors and reference words of each hypothesis, float64 ``[count, 2]``.

    A line has seven numbers: two rates, the numbers of substitutions, deletions, insertions and
    errors in this order or (older versions) errors first, and the number of reference words.

    Raises:
        FormatError: a line has another form, or there are too few or too many lines.
    """
    lines = read_lines(path)
    _check_count(path, len(lines), count, may_have_more)
    found = []
    for number, line in enumerate(lines[:count], start=1):
        values = [parse_number(field) for field in line.split()]
        a, b, c, d = values[2:6] if len(values) == 7 else (math.nan,) * 4
        errors = d if d == a + b + c else a if a == b + c + d else math.nan
        if math.isnan(errors) or not values[6] >= 0.0:
            raise FormatError(
                f"{quote(line)} is not a line of error counts",
                path=path,
                line=number,
                remedy="The form is: wcr wer sub del ins errors words; errors = sub + del + ins",
            )
        found.append((errors, values[6]))
    return np.array(found)


def _check_count(path: StrPath, lines: int, count: int, may_have_more: bool) -> None:
    if lines < count or (lines > count and not may_have_more):
        raise FormatError(
            f"{lines} lines for {count} hypotheses",
            path=path,
            remedy="Give one line for each hypothesis of the n-best list",
        )
