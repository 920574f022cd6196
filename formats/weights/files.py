"""Read and write files of feature weights.

::

    features.list         output of the decoder's -show-weights: Name= v v, Name UNTUNEABLE, Name=
    runN.dense            Name= v v; or one value a line, the name repeated
    runN.sparse-weights   name value
    runN.init.opt         three lines: starting weights, minima, maxima (of random restarts)
    runN.weights.txt      one line of numbers
    -weight-overwrite     Name= v v Name= v x v; x keeps the weight of the configuration

Numbers that only this software reads are written with the fewest digits that give the same float64
(``digits=None``); files that Moses' tools write, too, have six significant digits.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from os import PathLike

from formats.errors import FormatError, quote
from formats.weights.encoding import decode, encode
from formats.weights.lines import (
    duplicate_error,
    merge_groups,
    parse_numbers,
    parse_weight,
    read_content_lines,
    read_weight_file,
)

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
        values: one per component; None if it is not tuned.
    """

    name: str
    values: tuple[float | None, ...]

    @property
    def is_tuneable(self) -> bool:
        """Whether any component is tuned."""
        return any(value is not None for value in self.values)


@dataclass(frozen=True)
class ShowWeights:
    """The output of a decoder's ``-show-weights``, in the order of n-best lists.

    Attributes:
        groups: dense feature functions; components that are not tuned have the value None.
        untuneable: features without tuned components, which n-best lists omit.
        sparse: feature functions that have sparse features and no dense weights.
    """

    groups: tuple[WeightGroup, ...]
    untuneable: tuple[str, ...] = ()
    sparse: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The group of each tuned dense weight: the columns of an n-best list."""
        return tuple(g.name for g in self.groups for value in g.values if value is not None)

    @property
    def values(self) -> tuple[float, ...]:
        """The tuned weights, one per column."""
        return tuple(value for g in self.groups for value in g.values if value is not None)

    @property
    def unchanged_features(self) -> tuple[str, ...]:
        """Features whose line in the configuration is not changed."""
        return (*self.untuneable, *(g.name for g in self.groups if not g.is_tuneable))

    def with_values(self, values: Sequence[float]) -> ShowWeights:
        """Return the same features with other weights, one per column.

        Raises:
            ValueError: the number of weights differs from the number of columns.
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
    """Starting weights and the ranges of random restarts, one value per column."""

    start: tuple[float, ...]
    minima: tuple[float, ...]
    maxima: tuple[float, ...]


def format_weight(value: float, digits: int | None = None) -> str:
    """Format a weight with ``digits`` significant digits as C++ streams do.

    ``digits=None`` writes the fewest digits that give the same float64.

    Raises:
        ValueError: the weight is not finite.
    """
    if not math.isfinite(value):
        raise ValueError(f"a weight is {value}")
    return repr(float(value)).removesuffix(".0") if digits is None else f"{value:.{digits}g}"


def read_show_weights(
    source: str | PathLike[str] | bytes, path: str | PathLike[str] | None = None
) -> ShowWeights:
    """Parse the output of ``-show-weights``; lines of any other form are ignored.

    Raises:
        FormatError: a weight is not a finite number, or a feature appears twice.
    """
    if not isinstance(source, bytes):
        path, source = source, read_weight_file(source)
    groups: list[tuple[str, list[float | None], int]] = []
    untuneable: list[str] = []
    sparse: list[str] = []
    for number, line in enumerate(source.split(b"\n"), start=1):
        line = line.rstrip()
        if match := _GROUP.fullmatch(line):
            name = decode(match[1])
            values = [
                None if token == UNTUNEABLE_COMPONENT else parse_weight(token, name, path, number)
                for token in match[2].split()
            ]
            groups.append((name, values, number))
        elif match := _UNTUNEABLE.fullmatch(line):
            untuneable.append(decode(match[1]))
        elif match := _SPARSE.fullmatch(line):
            sparse.append(decode(match[1]))
    joined = merge_groups(groups, path)
    return ShowWeights(
        tuple(WeightGroup(name, tuple(values)) for name, values in joined),
        tuple(untuneable),
        tuple(sparse),
    )


def format_show_weights(show: ShowWeights) -> bytes:
    """Format weights as ``-show-weights``: features with weights come first."""
    lines = []
    for group in show.groups:
        words = [
            UNTUNEABLE_COMPONENT.decode() if value is None else format_weight(value)
            for value in group.values
        ]
        lines.append(f"{group.name}= {' '.join(words)}\n")
    lines += [f"{name} UNTUNEABLE\n" for name in show.untuneable]
    lines += [f"{name}=\n" for name in show.sparse]
    return encode("".join(lines))


def read_dense(
    path: str | PathLike[str], text: bytes | None = None
) -> tuple[tuple[str, tuple[float, ...]], ...]:
    """Read dense weights as ``(group, values)``: ``Name= v v``, or one value per line.

    Lines that begin with ``#`` are comments. Here and below, ``text`` is the file's content if it
    has been read already.

    Raises:
        FormatError: a line has another form, a value is not a finite number, a group appears in
            two places, or the file has no weights.
    """
    groups: list[tuple[str, list[float], int]] = []
    for number, line in read_content_lines(path, text, comments=True):
        match = _GROUP.fullmatch(line)
        if not match:
            raise FormatError(
                f"{quote(line)} is not a dense weight",
                path=path,
                line=number,
                remedy="A line has the form: Name= value value",
            )
        name = decode(match[1])
        values = [parse_weight(token, name, path, number) for token in match[2].split()]
        groups.append((name, values, number))
    if not groups:
        raise FormatError("the file has no weights", path=path, remedy="Give a runN.dense file")
    return tuple((name, tuple(values)) for name, values in merge_groups(groups, path))


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
    return encode("".join(lines))


def read_sparse(path: str | PathLike[str], text: bytes | None = None) -> dict[str, float]:
    """Read sparse weights, one ``name value`` per line; ``#`` begins a comment line.

    Raises:
        FormatError: a line has another form, a value is not a finite number, or a name is repeated.
    """
    weights: dict[str, float] = {}
    for number, line in read_content_lines(path, text, comments=True):
        words = line.split()
        if len(words) != 2:
            raise FormatError(
                f"{quote(line)} is not a sparse weight",
                path=path,
                line=number,
                remedy="A line has the form: name value",
            )
        name = decode(words[0])
        if name in weights:
            raise duplicate_error(name, path, number)
        weights[name] = parse_weight(words[1], name, path, number)
    return weights


def format_sparse(weights: Mapping[str, float], *, digits: int | None = None) -> bytes:
    """Format a sparse weight file, in the order of the mapping."""
    return encode("".join(f"{n} {format_weight(w, digits)}\n" for n, w in weights.items()))


def read_init_opt(path: str | PathLike[str], text: bytes | None = None) -> InitOpt:
    """Read starting weights and the ranges of random restarts.

    Raises:
        FormatError: the file does not have three lines of equally many finite numbers.
    """
    lines = [(n, parse_numbers(line, path, n)) for n, line in read_content_lines(path, text)]
    if len(lines) != 3:
        raise FormatError(
            f"{len(lines)} lines of numbers",
            path=path,
            remedy="Give three lines: starting weights, minima, maxima",
        )
    for number, values in lines[1:]:
        if len(values) != len(lines[0][1]):
            raise FormatError(
                f"{len(values)} numbers, but {len(lines[0][1])} starting weights",
                path=path,
                line=number,
                remedy="Give a minimum and a maximum for each starting weight",
            )
    return InitOpt(*(values for _, values in lines))


def format_init_opt(init: InitOpt, *, digits: int | None = None) -> bytes:
    """Return the three lines of an ``init.opt`` file."""
    rows = (init.start, init.minima, init.maxima)
    return b"".join(_row(values, digits) + b"\n" for values in rows)


def read_weights_txt(path: str | PathLike[str], text: bytes | None = None) -> tuple[float, ...]:
    """Read the numbers of a ``weights.txt`` file.

    Raises:
        FormatError: the file does not have one line of finite numbers. (``mert-moses.pl`` writes
            ``not used`` with algorithms other than MERT.)
    """
    lines = [parse_numbers(line, path, n) for n, line in read_content_lines(path, text)]
    if len(lines) != 1:
        raise FormatError(
            f"{len(lines)} lines of numbers", path=path, remedy="Give one line of weights"
        )
    return lines[0]


def format_weights_txt(values: Sequence[float], *, digits: int | None = 6) -> bytes:
    """Format the line of ``weights.txt``; as in ``mert``, each number has a blank."""
    return _row(values, digits) + b" \n"


def weight_overwrite(show: ShowWeights, *, decimals: int | None = 6) -> str:
    """Return the value of ``-weight-overwrite`` that gives the decoder these weights.

    Components that are not tuned are written as ``x``; features without tuned components are
    omitted.

    Args:
        decimals: digits after the point; ``mert-moses.pl`` writes 6. None: as many as needed.

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
    """Parse weights by feature from ``-weight-overwrite``; ``x`` becomes None.

    Raises:
        FormatError: a number precedes the first name, a feature is repeated or has no value, or a
            value is not a finite number.
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
                f"-weight-overwrite: {quote(token)} comes before any name",
                remedy="The form is: Name= value value Name= value",
            )
        else:
            value = None if token == "x" else parse_weight(encode(token), name, None, None)
            weights[name].append(value)
    for name, values in weights.items():
        if not values:
            raise FormatError(f"-weight-overwrite: the feature {name} has no value")
    return {name: tuple(values) for name, values in weights.items()}


def _row(values: Sequence[float], digits: int | None) -> bytes:
    return " ".join(format_weight(value, digits) for value in values).encode()


def _without_exponent(value: float, decimals: int | None) -> str:
    """Format a number without an exponent, since decoders do not accept one."""
    exact = Decimal(format_weight(value))
    return f"{exact:f}" if decimals is None else f"{value:.{decimals}f}"
