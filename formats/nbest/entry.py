"""One line of an n-best list as a small object: ``id ||| tokens ||| features ||| score ||| more``.

The features field is a sequence of labels and numbers. A label ends in ``=`` (old decoders: ``:``)
and owns the numbers that follow; a converted list may glue a label to its number (``lm=-3.5``). A
label with an underscore is one sparse feature with one value (``WT_auf~on= 1``). A list that has
no labels at all is read with names from the caller. Every line must have the groups of the first
line, in the same order and width: Moses' tools tell features by position.

This is the grammar; ``formats.nbest.block`` reads it faster and leaves all errors to this module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from formats.decimals import parse_number
from formats.errors import FormatError, quoted

__all__ = [
    "BLANKS",
    "FLOAT32_LIMIT",
    "Layout",
    "NBestEntry",
    "Place",
    "backwards",
    "format_entry",
    "names_every_value",
    "parse_entry",
]

BLANKS = bytes(range(33))
"""Bytes that separate tokens: the blank and all below it."""

FLOAT32_LIMIT = 3.4028235677973366e38
"""What rounds to infinity in float32: its largest value and half a unit in the last place."""

_WORD_SCORES = b"WordScores="

_TOKEN = re.compile(rb"[^\x00-\x20]+")


@dataclass(frozen=True)
class NBestEntry:
    """One hypothesis.

    Attributes:
        sentence_id: line of the input, from 0.
        text: the tokens, surrounding blanks stripped; bytes in no assumed encoding.
        dense: ``(group, values)`` in file order.
        sparse: ``(feature, value)`` in file order.
        score: the decoder's total; NaN where the list has none.
        extra: all that follows the ``|||`` behind the score, blanks included.
    """

    sentence_id: int
    text: bytes
    dense: tuple[tuple[str, tuple[float, ...]], ...]
    sparse: tuple[tuple[str, float], ...] = ()
    score: float = math.nan
    extra: bytes = b""


@dataclass(frozen=True)
class Layout:
    """What every line of a list must have alike.

    Attributes:
        labelled: whether groups carry their names in the file.
        groups: ``(name, number of values)`` of each dense group.
        named: whether every value is named, so that lines may differ in their features.
        skipped: fields between text and features.
    """

    labelled: bool
    groups: tuple[tuple[str, int], ...]
    named: bool = False
    skipped: int = 0

    @classmethod
    def of_line(
        cls,
        line: bytes,
        names: Sequence[str] | None,
        place: Place,
        dense: Sequence[str] | None = None,
    ) -> Layout:
        """Return the layout that a list's first line sets.

        Args:
            line: the first line.
            names: one name a dense column, for a list without labels.
            place: of the line.
            dense: names of the dense features of a list that names every value.
        """
        skipped = _skipped(line)
        tokens = _TOKEN.findall(_fields(line, place, skipped)[2])
        if dense is not None:
            if names is not None:
                raise place.error(
                    "names of columns are given, of a list that names every value itself",
                    "Leave the names out",
                )
            return cls(True, tuple((name, 1) for name in dict.fromkeys(dense)), True, skipped)
        return replace(cls._by_position(tokens, names, place), skipped=skipped)

    @classmethod
    def _by_position(
        cls, tokens: Sequence[bytes], names: Sequence[str] | None, place: Place
    ) -> Layout:
        """Return the layout of a list whose lines have all dense features in one order."""
        labelled = not tokens or math.isnan(parse_number(tokens[0]))
        given = None if names is None else _group(names)
        if labelled:
            dense, _ = _labelled(tokens, place)
            layout = cls(True, tuple((name, len(values)) for name, values in dense))
            if given is not None and given != layout.groups:
                raise place.error(
                    f"the features are {_spell(layout.groups)}, but the names given say "
                    f"{_spell(given)}",
                    "Give the names in the order of the list, or none: it has labels",
                )
            return layout
        if given is None:
            raise place.error(
                f"the features have no labels ({len(tokens)} bare numbers)",
                "Supply the name of each column, in order",
            )
        return cls(False, given)


@dataclass(frozen=True)
class Place:
    """Where a line stands, for the error about it."""

    path: str
    line: int

    def error(self, message: str, remedy: str) -> FormatError:
        """Return the error to raise."""
        return FormatError(message, path=self.path, line=self.line, remedy=remedy)


def parse_entry(line: bytes, layout: Layout, place: Place) -> NBestEntry:
    """Return one line of a list whose first line set ``layout``.

    Raises:
        FormatError: with file and line, where the line is not one of that list.
    """
    sentence_id, text, features, score, extra = _fields(line, place, layout.skipped)
    identifier = sentence_id.strip(BLANKS)
    if not identifier.isdigit() or len(identifier) > 18:
        raise place.error(
            f"the sentence id is {quoted(identifier)}, not a number from 0",
            "The first field of an n-best list is the line of the input",
        )
    tokens = _TOKEN.findall(features)
    sparse: list[tuple[str, float]] = []
    if layout.named:
        dense, sparse = _named(tokens, layout, place)
    elif layout.labelled:
        dense, sparse = _labelled(tokens, place)
    else:
        dense = _unlabelled(tokens, layout.groups, place)
    groups = tuple((name, len(values)) for name, values in dense)
    if groups != layout.groups:
        raise place.error(
            f"the features are {_spell(groups)}, but the first line has {_spell(layout.groups)}",
            "One list must come of one decoder run with one configuration; a feature that only "
            "some lines have needs an underscore in its name",
        )
    return NBestEntry(
        sentence_id=int(identifier),
        text=text.strip(BLANKS),
        dense=tuple((name, tuple(values)) for name, values in dense),
        sparse=tuple(sparse),
        score=math.nan if score is None else _number(score.strip(BLANKS), "the score", place),
        extra=extra,
    )


def format_entry(entry: NBestEntry, *, digits: int = 6, named: bool = False) -> bytes:
    """Return one line as Moses writes it, with its ``\\n``.

    Args:
        entry: the hypothesis; dense groups are written before sparse features.
        digits: significant digits; 6 is what Moses prints, 9 keep a float32 exactly.
        named: name every value, ``name=value``, as Joshua and cdec do; a group of several values
            cannot be spelled so.
    """
    equals = "=" if named else "= "

    def number(value: float) -> str:
        return f"{value:.{digits}g}"

    fields = [f" {name}{equals}{' '.join(map(number, values))}" for name, values in entry.dense]
    fields += [f" {name}{equals}{number(value)}" for name, value in entry.sparse]
    line = b"%d ||| %b%b |||%b" % (
        entry.sentence_id,
        entry.text,
        b" " if entry.text else b"",
        "".join(fields).encode("utf-8", "surrogateescape"),
    )
    if not math.isnan(entry.score):
        line += b" ||| " + number(entry.score).encode()
        if entry.extra:
            line += b" |||" + entry.extra
    return line + b"\n"


def backwards(sentence_id: int, previous: int, place: Place) -> FormatError:
    """Return the error for a sentence that comes after a later one, or a second time."""
    return place.error(
        f"sentence {sentence_id} comes after sentence {previous}",
        "Sort the list by sentence (sort -s -n -k 1,1), or read lists of several runs one by one",
    )


def names_every_value(line: bytes) -> bool:
    """Return whether a line of a list spells all its features ``name=value``, without a blank."""
    fields = line.split(b"|||", 3)
    tokens = _TOKEN.findall(fields[2]) if len(fields) > 2 else []
    return bool(tokens) and all(b"=" in token[1:-1] for token in tokens)


def _skipped(line: bytes) -> int:
    """How many fields between text and features a line has: Marian's alignment, word scores."""
    fields = [field.split() for field in line.split(b"|||")[2:-1]]
    skipped = 0
    for field, behind in pairwise(fields):
        is_alignment = bool(field) and b"=" not in field[0] and math.isnan(parse_number(field[0]))
        if not (is_alignment or field[:1] == [_WORD_SCORES]):
            break
        if not behind or not behind[0].endswith(b"="):
            break
        skipped += 1
    return skipped


def _fields(
    line: bytes, place: Place, skipped: int = 0
) -> tuple[bytes, bytes, bytes, bytes | None, bytes]:
    """Return sentence id, text, features, score (None without one), and the rest of a line."""
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    fields = line.split(b"|||", 4 + skipped)
    if len(fields) < 3 + skipped:
        raise place.error(
            f"{len(fields)} of the fields of an n-best list",
            "A line reads: id ||| tokens ||| features ||| score",
        )
    del fields[2 : 2 + skipped]
    score = fields[3] if len(fields) > 3 else None
    return fields[0], fields[1], fields[2], score, fields[4] if len(fields) > 4 else b""


def _labelled(
    tokens: Sequence[bytes], place: Place
) -> tuple[list[tuple[str, list[float]]], list[tuple[str, float]]]:
    """Dense groups and sparse features out of the tokens of a features field."""
    groups = _groups(tokens, place)
    for name, values in groups:
        if "_" in name and len(values) > 1:
            raise place.error(
                f"the sparse feature {name} has {len(values)} values",
                "A name with an underscore is one sparse feature: give the dense feature a name "
                "without one (name=... in moses.ini)",
            )
    dense = [group for group in groups if "_" not in group[0]]
    sparse = [(name, values[0]) for name, values in groups if "_" in name]
    _refuse_twice([name for name, _ in groups], place)
    return dense, sparse


def _named(
    tokens: Sequence[bytes], layout: Layout, place: Place
) -> tuple[list[tuple[str, list[float]]], list[tuple[str, float]]]:
    """Return all dense features of the layout, 0 where a line has them not, and the others."""
    groups = _groups(tokens, place)
    for name, values in groups:
        if len(values) > 1:
            raise place.error(
                f"the feature {name} has {len(values)} values, in a list that names each",
                "Such a list, as Joshua and cdec write it, reads: name=value name=value",
            )
    _refuse_twice([name for name, _ in groups], place)
    known = dict(groups)
    names = {name for name, _ in layout.groups}
    dense = [(name, known.get(name, [0.0])) for name, _ in layout.groups]
    return dense, [(name, values[0]) for name, values in groups if name not in names]


def _groups(tokens: Sequence[bytes], place: Place) -> list[tuple[str, list[float]]]:
    """Return labels with the values that they own."""
    groups: list[tuple[str, list[float]]] = []
    for token in tokens:
        if token.endswith((b"=", b":")):
            groups.append((_name(token[:-1], place), []))
        elif b"=" in token:
            label, _, value = token.rpartition(b"=")
            name = _name(label, place)
            groups.append((name, [_number(value, f"the value of {name}", place)]))
        elif groups:
            groups[-1][1].append(_number(token, f"a value of {groups[-1][0]}", place))
        else:
            raise place.error(
                f"the features begin with {quoted(token)}, which is not a label",
                "A features field reads: Name= value value Name= value",
            )
    for name, values in groups:
        if not values:
            raise place.error(f"the feature {name} has no value", "Give it one, or leave it out")
    return groups


def _unlabelled(
    tokens: Sequence[bytes], groups: tuple[tuple[str, int], ...], place: Place
) -> list[tuple[str, list[float]]]:
    """Dense groups out of bare numbers, by the widths that the caller's names give."""
    values = [_number(token, "a feature value", place) for token in tokens]
    n_names = sum(width for _, width in groups)
    if len(values) != n_names:
        raise place.error(
            f"{len(values)} feature values, but {n_names} names were given",
            "Supply the name of each column, in order",
        )
    rest = iter(values)
    return [(name, [next(rest) for _ in range(width)]) for name, width in groups]


def _group(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Return groups from one name a column, neighbours of one name being one group."""
    groups: list[tuple[str, int]] = []
    for name in names:
        if groups and groups[-1][0] == name:
            groups[-1] = (name, groups[-1][1] + 1)
        else:
            groups.append((name, 1))
    return tuple(groups)


def _name(label: bytes, place: Place) -> str:
    if not label:
        raise place.error("a label without a name", "A features field reads: Name= value value")
    return label.decode("utf-8", "surrogateescape")


def _number(token: bytes, what: str, place: Place) -> float:
    """A finite number within the range of float32, or the error that says what it is instead."""
    value = parse_number(token)
    if abs(value) < FLOAT32_LIMIT:
        return value
    kind = "not a number" if math.isnan(value) else "too large"
    if token.strip(b"+-").lower() in (b"inf", b"infinity", b"nan"):
        kind = "not finite"
    raise place.error(
        f"{what} is {kind}: {quoted(token)}",
        "No weights can be tuned on it: see which feature of the decoder writes it",
    )


def _refuse_twice(names: Sequence[str], place: Place) -> None:
    if len(set(names)) < len(names):
        name = next(name for i, name in enumerate(names) if name in names[:i])
        raise place.error(f"the feature {name} appears twice", "Each feature has one label a line")


def _spell(groups: tuple[tuple[str, int], ...]) -> str:
    """Return groups for a message: ``LM0 TranslationModel0*4``."""
    return " ".join(f"{name}*{width}" if width > 1 else name for name, width in groups) or "none"
