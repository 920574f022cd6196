"""Parse the dense features of many lines by a kernel.

The result is that of ``formats.nbest.fields.parse_columns``. A number of up to 15 digits is an
integer, divided by or multiplied with a power of ten up to ``10 ** 22``. All three are exact in
float64, so the result is rounded once and equal to ``float()`` (Clinger 1990, "How to read floating
point numbers accurately", section 2).
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from formats.nbest.entry import Layout
from formats.words import Bytes, Positions
from mosesplug.kernels import lean_kernel

__all__ = ["parse_columns"]

_MOST_DIGITS = 15
_HIGHEST_POWER = 22
_POWERS = np.array([float(f"1e{n}") for n in range(_HIGHEST_POWER + 1)])
_BLANK, _PLUS, _MINUS, _POINT, _ZERO, _NINE, _EXPONENT = b" +-.09e"


def parse_columns(
    padded: Bytes, starts: Positions, ends: Positions, layout: Layout
) -> NDArray[np.float32] | None:
    """Parse the dense values of fields as Moses writes them, without sparse features.

    Args:
        padded: the text with ``PAD`` newlines before and after it.
        starts: int64 ``[n]``; the blank at the start of each field.
        ends: int64 ``[n]``; one past the blank at the end of each field.
        layout: labels and widths.

    Returns:
        float32 ``[n, n_dense]``, or None if a line has another form.
    """
    labels = [b""] * sum(width for _, width in layout.groups)
    column = 0
    for name, width in layout.groups:
        if layout.labelled:
            labels[column] = name.encode("utf-8", "surrogateescape") + b"= "
        column += width
    labels[:1] = [b" " + label for label in labels[:1]]
    label_ends = np.array([0, *itertools.accumulate(map(len, labels))], dtype=np.int64)
    dense = np.empty((len(starts), len(labels)), dtype=np.float32)
    text = np.frombuffer(b"".join(labels), dtype=np.uint8)
    return dense if parse_rows(padded, starts, ends, text, label_ends, dense) else None


@lean_kernel
def parse_rows(
    text: Bytes,
    starts: Positions,
    ends: Positions,
    labels: Bytes,
    label_ends: NDArray[np.int64],
    dense: NDArray[np.float32],
) -> bool:
    """Write the values of each row to ``dense``; return whether all rows are valid.

    A valid row has a label before and a blank after each value.

    Args:
        text: uint8; a newline follows the last row.
        starts: int64 ``[n]``.
        ends: int64 ``[n]``.
        labels: uint8; what stands before the value of column ``j`` is
            ``labels[label_ends[j]:label_ends[j + 1]]``. A blank stands behind each value.
        label_ends: int64 ``[n_dense + 1]``.
        dense: output, float32 ``[n, n_dense]``.
    """
    for row in range(len(starts)):
        at = starts[row]
        for column in range(dense.shape[1]):
            for place in range(label_ends[column], label_ends[column + 1]):
                if text[at] != labels[place]:
                    return False
                at += 1
            is_negative = text[at] == _MINUS
            at += is_negative
            before, mantissa, at = scan_digits(text, at, 0)
            after = 0
            if text[at] == _POINT:
                after, mantissa, at = scan_digits(text, at + 1, mantissa)
            power = -after
            if text[at] == _EXPONENT:
                sign = -1 if text[at + 1] == _MINUS else 1
                if text[at + 1] in (_MINUS, _PLUS):
                    at += 1
                length, exponent, at = scan_digits(text, at + 1, 0)
                if not 0 < length <= 2:
                    return False
                power += sign * exponent
            if not 0 < before + after <= _MOST_DIGITS or abs(power) > _HIGHEST_POWER:
                return False
            if text[at] != _BLANK:
                return False
            at += 1
            value = mantissa * _POWERS[power] if power > 0 else mantissa / _POWERS[-power]
            dense[row, column] = -value if is_negative else value
        if at != ends[row]:
            return False
    return True


@lean_kernel
def scan_digits(text: Bytes, at: int, number: int) -> tuple[int, int, int]:
    """Append digits to a number; return their count, the number, and the next byte."""
    start = at
    while _ZERO <= text[at] <= _NINE:
        number = 10 * number + int(text[at]) - _ZERO
        at += 1
    return at - start, number, at
