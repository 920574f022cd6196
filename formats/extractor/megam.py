"""Examples for the classifier ``megam``, which Moses' ``pro`` writes.

::

    1 F0 1.01958 F3 0.50432 WT_haus~house 1
    0 F0 -1.01958 F3 -0.50432 WT_haus~house -1

A line is an example: its class (0, 1 or a probability between them) and its features. With megam's
option ``-fvals`` each name is followed by a value; without it, all values are 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath

import numpy as np

from formats.decimals import parse_number, parse_numbers
from formats.errors import FormatError, quote
from formats.nbest.entry import BLANKS
from formats.nbest.fields import number_names
from formats.text import read_bytes
from formats.words import PAD, Floats, Ints32, Positions, pad_with_newlines

_BLANK_BYTES = bytes(range(BLANKS[-1] + 1))


@dataclass(frozen=True)
class Examples:
    """Examples with the values of their features by row (CSR).

    Attributes:
        labels: float64 ``[n]``, 0 to 1.
        names: the names of the features, in the order of their first appearance.
        indptr: int64 ``[n + 1]``; values of row ``i`` are ``indptr[i]:indptr[i + 1]``.
        indices: int32 ``[nnz]``; which of ``names``.
        data: float64 ``[nnz]``.
    """

    labels: Floats
    names: tuple[str, ...]
    indptr: Positions
    indices: Ints32
    data: Floats


def format_examples(examples: Examples) -> Iterator[bytes]:
    """Yield a line for each example, with its ``\\n``; numbers as in C++ streams."""
    fields = [f" {name.replace('%', '%%')} %.6g" for name in examples.names]
    indices, data = examples.indices.tolist(), examples.data.tolist()
    bounds = examples.indptr.tolist()
    for row, label in enumerate(examples.labels.tolist()):
        start, end = bounds[row], bounds[row + 1]
        template = "%.6g" + "".join([fields[column] for column in indices[start:end]]) + "\n"
        line = template % (label, *data[start:end])
        yield line.encode("utf-8", "surrogateescape")


def read_examples(path: str | PathLike[str], *, with_values: bool = True) -> Examples:
    """Read examples; blank lines are ignored.

    Args:
        with_values: whether values follow the names; otherwise all are 1.

    Raises:
        FormatError: a class is not a number from 0 to 1, a value is not a number, the file has
            sections or weighted examples (``DEV``, ``TEST``, ``$$$WEIGHT``), or no example.
    """
    text = read_bytes(path)
    padded = pad_with_newlines(text)
    blanks = np.flatnonzero(padded <= BLANKS[-1])
    filled = np.flatnonzero(np.diff(blanks) > 1)
    starts, ends = blanks[filled] + 1, blanks[filled + 1]
    if not len(starts):
        raise FormatError(
            "the file has no examples", path=fspath(path), remedy="Check how it was produced"
        )
    newlines = blanks[padded[blanks] == ord("\n")]
    offsets = np.unique(np.searchsorted(starts, newlines[PAD - 1 :]))  # lines of blanks are equal
    within = np.arange(len(starts)) - np.repeat(offsets[:-1], np.diff(offsets))
    is_value = (within > 0) & (within % 2 == 0) if with_values else np.zeros(len(within), np.bool_)
    is_name = (within > 0) & ~is_value
    labels = parse_numbers(padded, starts[within == 0], ends[within == 0])
    counts = np.diff(offsets) - 1
    numbered = number_names(padded, starts[is_name], ends[is_name])
    if with_values:
        data = parse_numbers(padded, starts[is_value], ends[is_value])
    else:
        data = np.ones(int(counts.sum()))
    whole = not with_values or (counts % 2 == 0).all()
    in_range = (labels >= 0.0) & (labels <= 1.0)
    if (
        numbered is None
        or "$$$WEIGHT" in numbered[0]
        or not (whole and in_range.all() and np.isfinite(data).all())
    ):
        return _read_slowly(text, fspath(path), with_values)
    widths = counts // 2 if with_values else counts
    indptr = np.append(0, np.cumsum(widths))
    return Examples(labels, numbered[0], indptr, numbered[1], data)


def _read_slowly(text: bytes, path: str, with_values: bool) -> Examples:
    """Read line by line, and raise the error of the first invalid line."""
    known: dict[bytes, int] = {}
    labels: list[float] = []
    widths: list[int] = [0]
    indices: list[int] = []
    data: list[float] = []
    for number, line in enumerate(text.split(b"\n"), start=1):
        words = line.translate(bytes.maketrans(_BLANK_BYTES, b" " * len(_BLANK_BYTES))).split()
        if not words:
            continue
        fault = _find_fault(words, with_values)
        if fault is not None:
            raise FormatError(fault[0], path=path, line=number, remedy=fault[1])
        labels.append(parse_number(words[0]))
        names = words[1::2] if with_values else words[1:]
        indices += [known.setdefault(name, len(known)) for name in names]
        data += map(parse_number, words[2::2]) if with_values else [1.0] * len(names)
        widths.append(len(names))
    return Examples(
        np.array(labels),
        tuple(name.decode("utf-8", "surrogateescape") for name in known),
        np.cumsum(widths, dtype=np.int64),
        np.array(indices, dtype=np.int32),
        np.array(data),
    )


def _find_fault(words: list[bytes], with_values: bool) -> tuple[str, str] | None:
    """Return what is wrong with a line, and what to do; None if nothing is."""
    if words[0] in (b"DEV", b"TEST") or b"$$$WEIGHT" in words:
        return "sections and weighted examples are not supported", "Give unweighted examples"
    if not 0.0 <= parse_number(words[0]) <= 1.0:
        return (
            f"the class {quote(words[0])} is not a number from 0 to 1",
            "A line is a class, then names and values",
        )
    if with_values and len(words) % 2 == 0:
        return f"no value after the name {quote(words[-1])}", "Check that the file is complete"
    for word in words[2::2] if with_values else ():
        if not np.isfinite(parse_number(word)):
            return f"{quote(word)} is not a finite number", "Look for NaN in the n-best list"
    return None
