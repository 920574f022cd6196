"""Parse one line of an n-best list.

Its form is ``id ||| tokens ||| features ||| score ||| more``.

The features field is a sequence of labels and numbers. A label ends in ``=`` (old decoders: ``:``)
and owns the numbers that follow; a converted list may glue a label to its number (``lm=-3.5``). A
label with an underscore is one sparse feature with one value (``WT_auf~on= 1``). A list without
labels needs names from the caller. Every line must have the groups of the first line, in the same
order and width, since Moses' tools identify features by position.

This module defines the grammar; ``formats.nbest.block`` parses it faster and leaves all errors to
this module.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from formats.decimals import parse_number
from formats.errors import FormatError, Message, quote

BLANKS = bytes(range(33))
"""Bytes that separate tokens: the blank and all below it."""

FLOAT32_LIMIT = 3.4028235677973366e38
"""Rounds to infinity in float32: its largest value plus half a unit in the last place."""

_WORD_SCORES = b"WordScores="

_REMEDY = "Weights cannot be tuned on it: find the decoder's feature that writes it"

_ALIGNMENT = re.compile(rb"[0-9]+[-,:.][-0-9.,:e]*")

_TOKEN = re.compile(rb"[^\x00-\x20]+")


@dataclass(frozen=True)
class NBestEntry:
    """One hypothesis.

    Attributes:
        sentence_id: line of the input, from 0.
        text: the tokens, surrounding blanks stripped; bytes in no assumed encoding.
        dense: ``(group, values)`` in file order.
        sparse: ``(feature, value)`` in file order.
        score: the decoder's model score; NaN if the list has none.
        extra: the text after the ``|||`` that follows the score, blanks included.
    """

    sentence_id: int
    text: bytes
    dense: tuple[tuple[str, tuple[float, ...]], ...]
    sparse: tuple[tuple[str, float], ...] = ()
    score: float = math.nan
    extra: bytes = b""


@dataclass(frozen=True)
class Layout:
    """The form that all lines of a list share.

    Attributes:
        has_labels: whether groups carry their names in the file.
        groups: ``(name, number of values)`` of each dense group.
        names_values: whether every value is named, so that lines may differ in their features.
        n_skipped: number of fields between text and features.
        score_first: whether the score precedes the features, as in lists of Travatar.
    """

    has_labels: bool
    groups: tuple[tuple[str, int], ...]
    names_values: bool = False
    n_skipped: int = 0
    score_first: bool = False

    @property
    def least_fields(self) -> int:
        """The number of fields that every line has at least."""
        return 3 + self.n_skipped + self.score_first

    @classmethod
    def of_line(
        cls,
        line: bytes,
        names: Sequence[str] | None,
        place: Place,
        dense: Sequence[str] | None = None,
        *,
        score_first: bool = False,
        skipped: int | None = None,
    ) -> Layout:
        """Determine the layout from the first line of a list.

        Args:
            names: one name a dense column, for a list without labels.
            dense: names of the dense features of a list that names every value.
            score_first: whether the score precedes the features; ``dense`` must be given then.
            skipped: number of fields between text and features; None: count them in the line.
        """
        if skipped is None:
            skipped = 0 if score_first else _count_skipped_fields(line)
        tokens = _TOKEN.findall(_fields(line, place, skipped, score_first)[2])
        if dense is not None:
            if names is not None:
                raise place.error(
                    "column names are given for a list that names every value itself",
                    "Omit the names",
                )
            groups = tuple((name, 1) for name in dict.fromkeys(dense))
            return cls(True, groups, True, skipped, score_first)
        return replace(cls._by_position(tokens, names, place), n_skipped=skipped)

    @classmethod
    def _by_position(
        cls, tokens: Sequence[bytes], names: Sequence[str] | None, place: Place
    ) -> Layout:
        """Determine the layout of a list whose lines have all dense features in one order."""
        labeled = not tokens or math.isnan(parse_number(tokens[0]))
        given = None if names is None else _group(names)
        if labeled:
            dense, _ = _parse_labeled(tokens, place)
            layout = cls(True, tuple((name, len(values)) for name, values in dense))
            if given is not None and given != layout.groups:
                raise place.error(
                    f"the features are {_spell(layout.groups)}, but the names given say "
                    f"{_spell(given)}",
                    "Give the names in the order of the list, or omit them: the list has labels",
                )
            return layout
        if given is None:
            raise place.error(
                f"the features have no labels ({len(tokens)} bare numbers)",
                "Give the name of each column, in order ({--names})",
            )
        return cls(False, given)


@dataclass(frozen=True)
class Place:
    """The file and number of a line, for error messages."""

    path: str
    line: int

    def error(self, message: str, remedy: str) -> FormatError:
        """Return the error to raise."""
        return FormatError(message, path=self.path, line=self.line, remedy=remedy)


def parse_entry(line: bytes, layout: Layout, place: Place) -> NBestEntry:
    """Parse one line of a list with this layout."""
    try:
        return _parse_fields(line, layout, place)
    except FormatError as error:
        if layout.n_skipped:
            remedy = Message(error.remedy or "").template
            error.remedy = Message(
                f"{remedy}. The first line has a field between text and features: see whether that"
                " is part of a text with |||"
            )
        raise


def _parse_fields(line: bytes, layout: Layout, place: Place) -> NBestEntry:
    sentence_id, text, features, score, extra = _fields(
        line, place, layout.n_skipped, layout.score_first
    )
    identifier = sentence_id.strip(BLANKS)
    if not identifier.isdigit() or len(identifier) > 18:
        raise place.error(
            f"the sentence id is {quote(identifier)}, not an integer from 0",
            "The first field of an n-best list is the number of the input line",
        )
    tokens = _TOKEN.findall(features)
    sparse: list[tuple[str, float]] = []
    if layout.names_values:
        dense, sparse = _parse_features(tokens, layout, place)
    elif layout.has_labels:
        dense, sparse = _parse_labeled(tokens, place)
    else:
        dense = _parse_unlabeled(tokens, layout.groups, place)
    groups = tuple((name, len(values)) for name, values in dense)
    if groups != layout.groups:
        remedy = (
            "A list must come from one decoder run with one configuration; a feature of some lines "
            "only needs an underscore in its name"
        )
        if _WORD_SCORES[:-1].decode() in dict(groups):
            remedy = (
                "WordScores has a score of each word, whose number varies: decode without them, or "
                "read the list with {--format marian}"
            )
        raise place.error(
            f"the features are {_spell(groups)}, but the first line has {_spell(layout.groups)}",
            remedy,
        )
    return NBestEntry(
        sentence_id=int(identifier),
        text=text.strip(BLANKS),
        dense=tuple((name, tuple(values)) for name, values in dense),
        sparse=tuple(sparse),
        score=math.nan if score is None else parse_value(score.strip(BLANKS), "the score", place),
        extra=extra,
    )


def format_entry(entry: NBestEntry, *, digits: int = 6, named: bool = False) -> bytes:
    """Format one line as Moses writes it, including ``\\n``.

    Args:
        entry: the hypothesis; dense groups are written before sparse features.
        digits: significant digits; Moses prints 6, 9 preserve a float32 exactly.
        named: write ``name=value`` for every value, as Joshua and cdec do; impossible for groups
            of several values.
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


def order_error(sentence_id: int, previous: int, place: Place) -> FormatError:
    """Return the error for a sentence id that is smaller than the one before."""
    return place.error(
        f"sentence ids go backwards ({sentence_id} after {previous})",
        "Sort the list by sentence id (sort -s -n -k 1,1), or give lists of runs separately",
    )


def names_every_value(line: bytes) -> bool:
    """Return whether a line spells every feature ``name=value``, without a blank."""
    fields = line.split(b"|||", 3)
    tokens = _TOKEN.findall(fields[2]) if len(fields) > 2 else []
    return bool(tokens) and all(b"=" in token[1:-1] for token in tokens)


def is_alignment(tokens: Sequence[bytes]) -> bool:
    """Return whether tokens are a word alignment: ``0-0``, or soft: ``0.9,0.1``.

    Other words in the place of an alignment are part of a text with ``|||``.
    """
    return all(map(_ALIGNMENT.fullmatch, tokens))


def _count_skipped_fields(line: bytes) -> int:
    """Count the fields between text and features: Marian's alignment, word scores."""
    fields = [field.split() for field in line.split(b"|||")[2:-1]]
    skipped = 0
    for field, behind in pairwise(fields):
        if not ((field and is_alignment(field)) or field[:1] == [_WORD_SCORES]):
            break
        if not behind or not behind[0].endswith(b"="):
            break
        skipped += 1
    return skipped


def _fields(
    line: bytes, place: Place, skipped: int = 0, score_first: bool = False
) -> tuple[bytes, bytes, bytes, bytes | None, bytes]:
    """Split a line into sentence id, text, features, score (or None), and the rest."""
    line = line.removesuffix(b"\n").removesuffix(b"\r")
    fields = line.split(b"|||", 4 + skipped)
    least = 3 + skipped + score_first
    if len(fields) < least:
        form = "score ||| features" if score_first else "features ||| score"
        raise place.error(
            f"the line has {len(fields)} fields separated by |||, an n-best list at least {least}",
            f"A line has the form: id ||| tokens ||| {form}",
        )
    del fields[2 : 2 + skipped]
    if score_first:
        fields[2], fields[3] = fields[3], fields[2]
    score = fields[3] if len(fields) > 3 else None
    return fields[0], fields[1], fields[2], score, fields[4] if len(fields) > 4 else b""


def _parse_labeled(
    tokens: Sequence[bytes], place: Place
) -> tuple[list[tuple[str, list[float]]], list[tuple[str, float]]]:
    """Parse dense groups and sparse features from the tokens of a features field."""
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


def _parse_features(
    tokens: Sequence[bytes], layout: Layout, place: Place
) -> tuple[list[tuple[str, list[float]]], list[tuple[str, float]]]:
    """Parse the dense features of the layout, 0 if missing, and the sparse ones."""
    groups = _groups(tokens, place)
    for name, values in groups:
        if len(values) > 1:
            raise place.error(
                f"the feature {name} has {len(values)} values in a list that names every value",
                "Lists of Joshua and cdec have the form: name=value name=value",
            )
    _refuse_twice([name for name, _ in groups], place)
    known = dict(groups)
    names = {name for name, _ in layout.groups}
    dense = [(name, known.get(name, [0.0])) for name, _ in layout.groups]
    return dense, [(name, values[0]) for name, values in groups if name not in names]


def _groups(tokens: Sequence[bytes], place: Place) -> list[tuple[str, list[float]]]:
    """Group the values under their labels."""
    groups: list[tuple[str, list[float]]] = []
    for token in tokens:
        if token.endswith((b"=", b":")):
            groups.append((_name(token[:-1], place), []))
        elif b"=" in token:
            label, _, value = token.rpartition(b"=")
            name = _name(label, place)
            groups.append((name, [parse_value(value, f"the value of {name}", place)]))
        elif groups:
            groups[-1][1].append(parse_value(token, f"a value of {groups[-1][0]}", place))
        else:
            raise place.error(
                f"the features begin with {quote(token)}, which is not a label",
                "A features field has the form: Name= value value Name= value. See whether the "
                "text contains |||, which separates fields",
            )
    for name, values in groups:
        if not values:
            raise place.error(f"the feature {name} has no value", "Add a value or remove the name")
    return groups


def _parse_unlabeled(
    tokens: Sequence[bytes], groups: tuple[tuple[str, int], ...], place: Place
) -> list[tuple[str, list[float]]]:
    """Parse dense groups from numbers without labels, with the caller's widths."""
    values = [parse_value(token, "a feature value", place) for token in tokens]
    n_names = sum(width for _, width in groups)
    if len(values) != n_names:
        raise place.error(
            f"{len(values)} feature values, but {n_names} names were given",
            "Give the name of each column, in order ({--names}). The fields are: sentence id ||| "
            "text ||| features ||| score",
        )
    rest = iter(values)
    return [(name, [next(rest) for _ in range(width)]) for name, width in groups]


def _group(names: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Make groups from one name per column; equal neighbors form one group."""
    groups: list[tuple[str, int]] = []
    for name in names:
        if groups and groups[-1][0] == name:
            groups[-1] = (name, groups[-1][1] + 1)
        else:
            groups.append((name, 1))
    return tuple(groups)


def _name(label: bytes, place: Place) -> str:
    if not label:
        raise place.error("a label has no name", "A features field has the form: Name= value value")
    return label.decode("utf-8", "surrogateescape")


def parse_value(token: bytes, what: str, place: Place, remedy: str = _REMEDY) -> float:
    """Parse a finite number within the range of float32."""
    value = parse_number(token)
    if abs(value) < FLOAT32_LIMIT:
        return value
    kind = "not a number" if math.isnan(value) else "too large"
    if is_not_finite(token):
        kind = "not finite"
    raise place.error(f"{what} is {kind}: {quote(token)}", remedy)


def is_not_finite(token: bytes) -> bool:
    """Return whether a token is the name of a number that is not finite."""
    return token.strip(b"+-").lower() in (b"inf", b"infinity", b"nan")


def _refuse_twice(names: Sequence[str], place: Place) -> None:
    if len(set(names)) < len(names):
        name = next(name for i, name in enumerate(names) if name in names[:i])
        raise place.error(f"the feature {name} appears twice", "Write each label once per line")


def _spell(groups: tuple[tuple[str, int], ...]) -> str:
    return " ".join(f"{name}*{width}" if width > 1 else name for name, width in groups) or "none"
