"""Files of feature weights.

::

    features.list         what a decoder answers to -show-weights: Name= v v, Name UNTUNEABLE, Name=
    runN.dense            Name= v v; or one value a line, the name repeated
    runN.sparse-weights   name value
    runN.init.opt         three lines: starting weights, minima, maxima (of random restarts)
    runN.weights.txt      one line of numbers
    -weight-overwrite     Name= v v Name= v x v; x keeps what the configuration says

A number that only this software reads back is written with the fewest digits that give the same
float64 (``digits=None``); files that Moses' tools write too have their six significant digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from os import PathLike

from formats.errors import FormatError, quoted
from formats.weights.lines import (
    content_lines,
    decoded,
    encoded,
    merged,
    named_twice,
    numbers_of,
    weight,
    weights_text,
)

__all__ = [
    "InitOpt",
    "ShowWeights",
    "WeightGroup",
    "format_dense",
    "format_init_opt",
    "format_show_weights",
    "format_sparse",
    "format_weight",
    "format_weights_txt",
    "parse_weight_overwrite",
    "read_dense",
    "read_init_opt",
    "read_show_weights",
    "read_sparse",
    "read_weights_txt",
    "weight_overwrite",
]

UNTUNEABLE_COMPONENT = b"UNTUNEABLECOMPONENT"
_GROUP = re.compile(rb"(\S+)=[ \t]+(\S.*)")
_UNTUNEABLE = re.compile(rb"(\S+)[ \t]+UNTUNEABLE")
_SPARSE = re.compile(rb"(\S+)=")
_WORD = re.compile(r"\S+", re.ASCII)


@dataclass(frozen=True)
class WeightGroup:
    """The weights of one dense feature function.

    Attributes:
        name: as in the configuration, ``TranslationModel0``.
        values: one a component; None where it is not to be tuned.
    """

    name: str
    values: tuple[float | None, ...]

    @property
    def is_tuneable(self) -> bool:
        """Whether there is any component to tune."""
        return any(value is not None for value in self.values)


@dataclass(frozen=True)
class ShowWeights:
    """What a decoder says of its features, in the order in which it prints them in n-best lists.

    Attributes:
        groups: dense feature functions with weights to tune, or with components that are not.
        untuneable: features that are not tuned at all and not in n-best lists.
        sparse: feature functions that produce sparse features and have no dense weights.
    """

    groups: tuple[WeightGroup, ...]
    untuneable: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The group of each dense weight to tune: the columns of an n-best list."""
        return tuple(g.name for g in self.groups for value in g.values if value is not None)

    @property
    def values(self) -> tuple[float, ...]:
        """The weights to tune, one a column."""
        return tuple(value for g in self.groups for value in g.values if value is not None)

    @property
    def kept(self) -> tuple[str, ...]:
        """Features whose line in the configuration stays as it is."""
        return (*self.untuneable, *(g.name for g in self.groups if not g.is_tuneable))

    def with_values(self, values: Sequence[float]) -> ShowWeights:
        """Return the same features with other weights, one a column.

        Raises:
            ValueError: not as many as there are columns.
        """
        if len(values) != len(self.names):
            raise ValueError(f"{len(values)} weights for {len(self.names)} columns")
        rest = iter(values)
        groups = tuple(
            WeightGroup(g.name, tuple(None if old is None else next(rest) for old in g.values))
            for g in self.groups
        )
        return ShowWeights(groups, self.untuneable, self.sparse)


@dataclass(frozen=True)
class InitOpt:
    """Where a search starts, and the ranges of its random restarts; one value a column."""

    start: tuple[float, ...]
    minima: tuple[float, ...]
    maxima: tuple[float, ...]


def format_weight(value: float, digits: int | None = None) -> str:
    """A number in ``digits`` significant digits as C++ streams print it; None for all it takes.

    Raises:
        ValueError: it is not finite: no file of weights may say so.
    """
    if not math.isfinite(value):
        raise ValueError(f"a weight is {value}")
    return repr(float(value)).removesuffix(".0") if digits is None else f"{value:.{digits}g}"


def read_show_weights(
    source: str | PathLike[str] | bytes, path: str | PathLike[str] | None = None
) -> ShowWeights:
    """Return a decoder's answer to ``-show-weights``; lines of any other form are passed over.

    Args:
        source: the file, or its text.
        path: where a text came from, for errors.

    Raises:
        FormatError: a weight that is no finite number, a feature that appears twice.
    """
    if not isinstance(source, bytes):
        path, source = source, weights_text(source)
    groups: list[tuple[str, list[float | None], int]] = []
    untuneable: list[str] = []
    sparse: list[str] = []
    for number, line in enumerate(source.split(b"\n"), start=1):
        line = line.rstrip()
        if found := _GROUP.fullmatch(line):
            name = decoded(found[1])
            values = [
                None if token == UNTUNEABLE_COMPONENT else weight(token, name, path, number)
                for token in found[2].split()
            ]
            groups.append((name, values, number))
        elif found := _UNTUNEABLE.fullmatch(line):
            untuneable.append(decoded(found[1]))
        elif found := _SPARSE.fullmatch(line):
            sparse.append(decoded(found[1]))
    joined = merged(groups, path)
    return ShowWeights(
        tuple(WeightGroup(name, tuple(values)) for name, values in joined),
        tuple(untuneable),
        tuple(sparse),
    )


def format_show_weights(show: ShowWeights) -> bytes:
    """What a decoder answers to ``-show-weights``: features with weights, then those without."""
    lines = []
    for group in show.groups:
        words = [
            UNTUNEABLE_COMPONENT.decode() if value is None else format_weight(value)
            for value in group.values
        ]
        lines.append(f"{group.name}= {' '.join(words)}\n")
    lines += [f"{name} UNTUNEABLE\n" for name in show.untuneable]
    lines += [f"{name}=\n" for name in show.sparse]
    return encoded("".join(lines))


def read_dense(
    path: str | PathLike[str], text: bytes | None = None
) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Dense weights as ``(group, values)``: ``Name= v v``, or one value a line.

    Lines that begin with ``#`` are comments. Here and below, ``text`` is the file's content where
    it has been read already.

    Raises:
        FormatError: a line of another form, a value that is no finite number, a group in two
            places, no weight at all.
    """
    groups: list[tuple[str, list[float], int]] = []
    for number, line in content_lines(path, text, comments=True):
        found = _GROUP.fullmatch(line)
        if not found:
            raise FormatError(
                f"{quoted(line)} is no dense weight",
                path=path,
                line=number,
                remedy="A line reads: Name= value value",
            )
        name = decoded(found[1])
        values = [weight(token, name, path, number) for token in found[2].split()]
        groups.append((name, values, number))
    if not groups:
        raise FormatError("there is no weight in it", path=path, remedy="Give a runN.dense file")
    return tuple((name, tuple(values)) for name, values in merged(groups, path))


def format_dense(
    groups: Iterable[tuple[str, Sequence[float]]],
    *,
    one_value_a_line: bool = False,
    digits: int | None = None,
) -> bytes:
    """``(group, values)`` as ``Name= v v`` lines, or as the lines of ``runN.dense``."""
    lines = []
    for name, values in groups:
        texts = [format_weight(value, digits) for value in values]
        rows = texts if one_value_a_line else [" ".join(texts)]
        lines += [f"{name}= {row}\n" for row in rows]
    return encoded("".join(lines))


def read_sparse(path: str | PathLike[str], text: bytes | None = None) -> dict[str, float]:
    """Sparse weights, ``name value`` a line; lines that begin with ``#`` are comments.

    Raises:
        FormatError: a line of another form, a value that is no finite number, a name twice.
    """
    weights: dict[str, float] = {}
    for number, line in content_lines(path, text, comments=True):
        words = line.split()
        if len(words) != 2:
            raise FormatError(
                f"{quoted(line)} is no sparse weight",
                path=path,
                line=number,
                remedy="A line reads: name value",
            )
        name = decoded(words[0])
        if name in weights:
            raise named_twice(name, path, number)
        weights[name] = weight(words[1], name, path, number)
    return weights


def format_sparse(weights: Mapping[str, float], *, digits: int | None = None) -> bytes:
    """Return the lines of a sparse weight file, in the order of the mapping."""
    return encoded("".join(f"{n} {format_weight(w, digits)}\n" for n, w in weights.items()))


def read_init_opt(path: str | PathLike[str], text: bytes | None = None) -> InitOpt:
    """Starting weights and the ranges of random restarts.

    Raises:
        FormatError: not three lines of equally many finite numbers.
    """
    lines = [(n, numbers_of(line, path, n)) for n, line in content_lines(path, text)]
    if len(lines) != 3:
        raise FormatError(
            f"{len(lines)} lines of numbers",
            path=path,
            remedy="It takes three: starting weights, minima, maxima",
        )
    for number, values in lines[1:]:
        if len(values) != len(lines[0][1]):
            raise FormatError(
                f"{len(values)} numbers, but {len(lines[0][1])} starting weights",
                path=path,
                line=number,
                remedy="Each starting weight has a minimum and a maximum",
            )
    return InitOpt(*(values for _, values in lines))


def format_init_opt(init: InitOpt, *, digits: int | None = None) -> bytes:
    """Return the three lines of an ``init.opt`` file."""
    rows = (init.start, init.minima, init.maxima)
    return b"".join(_row(values, digits) + b"\n" for values in rows)


def read_weights_txt(path: str | PathLike[str], text: bytes | None = None) -> tuple[float, ...]:
    """Return the numbers of a ``weights.txt`` file.

    Raises:
        FormatError: no line of finite numbers, or more than one (``not used``, as
            ``mert-moses.pl`` writes with other algorithms than MERT, is no number either).
    """
    lines = [numbers_of(line, path, n) for n, line in content_lines(path, text)]
    if len(lines) != 1:
        raise FormatError(
            f"{len(lines)} lines of numbers", path=path, remedy="It holds one line of weights"
        )
    return lines[0]


def format_weights_txt(values: Sequence[float], *, digits: int | None = 6) -> bytes:
    """The one line of a ``weights.txt`` file, a blank behind each number as ``mert`` has it."""
    return _row(values, digits) + b" \n"


def weight_overwrite(show: ShowWeights, *, decimals: int | None = 6) -> str:
    """Return the value of ``-weight-overwrite`` that gives the decoder these weights.

    Components that are not to be tuned are ``x``; features with nothing to tune are left out.

    Args:
        show: features and their weights.
        decimals: digits behind the point; ``mert-moses.pl`` writes 6. None for all it takes.

    Raises:
        ValueError: a weight is not finite.
    """
    groups = []
    for group in show.groups:
        texts = ["x" if v is None else _without_exponent(v, decimals) for v in group.values]
        if group.is_tuneable:
            groups.append(f"{group.name}= {' '.join(texts)}")
    return " ".join(groups)


def parse_weight_overwrite(text: str) -> dict[str, tuple[float | None, ...]]:
    """Return weights by feature out of a ``-weight-overwrite`` string; None where it says ``x``.

    Raises:
        FormatError: a number before the first name, a feature twice or without a value, a value
            that is no finite number.
    """
    weights: dict[str, list[float | None]] = {}
    name = None
    for token in _WORD.findall(text):
        if token.endswith("="):
            name = token[:-1]
            if name in weights:
                raise FormatError(f"-weight-overwrite: the feature {name} appears twice")
            weights[name] = []
        elif name is None:
            raise FormatError(
                f"-weight-overwrite: {quoted(token)} comes before any name",
                remedy="It reads: Name= value value Name= value",
            )
        else:
            value = None if token == "x" else weight(encoded(token), name, None, None)
            weights[name].append(value)
    for name, values in weights.items():
        if not values:
            raise FormatError(f"-weight-overwrite: the feature {name} has no value")
    return {name: tuple(values) for name, values in weights.items()}


def _row(values: Sequence[float], digits: int | None) -> bytes:
    return " ".join(format_weight(value, digits) for value in values).encode()


def _without_exponent(value: float, decimals: int | None) -> str:
    """Return a number as the command lines of decoders have it."""
    exact = Decimal(format_weight(value))
    return f"{exact:f}" if decimals is None else f"{value:.{decimals}f}"
