"""Weights as pairs of a name and a number.

They are words ``a=b c=d``, or a table with a header.

::

    lm=0.5 tm=0.3 WT_auf~on=7          as Travatar writes them; also on several lines

    feature<TAB>weight                 as data frames are written and read
    lm<TAB>0.5

The last ``=`` of a pair ends its name. Neither format tells dense from sparse features.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from formats.errors import FormatError, quote
from formats.text import StrPath
from formats.weights.encoding import decode, encode
from formats.weights.files import format_weight
from formats.weights.lines import duplicate_error, parse_weight, read_content_lines

_HEADS = frozenset(
    (name, value) for name in (b"feature", b"name") for value in (b"weight", b"value")
)
_HEAD = "feature\tweight"


def is_pairs(lines: Sequence[bytes]) -> bool:
    """Return whether each word of these lines is ``name=value``."""
    words = (word.rpartition(b"=") for line in lines for word in line.split())
    return all(name and value for name, _, value in words)


def is_tsv(lines: Sequence[bytes]) -> bool:
    """Return whether the first line is the header of a table of weights."""
    return tuple(lines[0].lower().split()) in _HEADS


def parse_pairs(path: StrPath, text: bytes) -> dict[str, float]:
    """Parse ``name=value`` words on any lines; ``#`` begins a comment line.

    Raises:
        FormatError: a word has another form, a value is not a finite number, or a name is repeated.
    """
    weights: dict[str, float] = {}
    for number, line in read_content_lines(path, text, comments=True):
        for word in line.split():
            name, equals, value = word.rpartition(b"=")
            if not (name and equals):
                raise FormatError(
                    f"{quote(word)} is not a weight",
                    path=path,
                    line=number,
                    remedy="The form is: name=value name=value",
                )
            _add(weights, name, value, path, number)
    return weights


def format_pairs(weights: Mapping[str, float]) -> bytes:
    """Return weights on one line, with all digits."""
    return encode(" ".join(f"{n}={format_weight(w)}" for n, w in weights.items()) + "\n")


def parse_tsv(path: StrPath, text: bytes) -> dict[str, float]:
    """Parse a header and lines of a name and a value; ``#`` begins a line of comment.

    Raises:
        FormatError: a line has another form, a value is not a finite number, a name is repeated,
            or there is only a header.
    """
    weights: dict[str, float] = {}
    for number, line in read_content_lines(path, text, comments=True)[1:]:
        words = line.split()
        if len(words) != 2:
            raise FormatError(
                f"{quote(line)} is not a weight",
                path=path,
                line=number,
                remedy="Below its header, the table has lines of a name, a tab and a number",
            )
        _add(weights, words[0], words[1], path, number)
    if not weights:
        raise FormatError("the file has no weights", path=path, remedy="Give a file of weights")
    return weights


def format_tsv(weights: Mapping[str, float]) -> bytes:
    """Return a table of weights, with all digits."""
    rows: Iterable[str] = (f"{name}\t{format_weight(w)}" for name, w in weights.items())
    return encode("\n".join([_HEAD, *rows]) + "\n")


def _add(weights: dict[str, float], name: bytes, value: bytes, path: StrPath, line: int) -> None:
    decoded = decode(name)
    if decoded in weights:
        raise duplicate_error(decoded, path, line)
    weights[decoded] = parse_weight(value, decoded, path, line)
