"""Parse the dense features of many lines by a kernel.

The result is that of ``formats.nbest.fields.parse_columns``.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from formats.nbest.entry import Layout
from formats.words import Bytes, Positions, Words, view_words
from mosesplug.kernels import lean_kernel, read_only
from mosesplug.tokens import REFUSED, parse_decimal

__all__ = ["parse_columns"]


def parse_columns(
    text: Bytes, starts: Positions, ends: Positions, layout: Layout
) -> NDArray[np.float32] | None:
    """Parse the dense values of fields as Moses writes them, without sparse features.

    Args:
        text: uint8; the lines, each with a ``\\n`` at its end.
        starts: int64 ``[n]``; the blank at the start of each field.
        ends: int64 ``[n]``; one past the blank at the end of each field.
        layout: labels and widths.

    Returns:
        float32 ``[n, n_dense]``, or None if a line has another form.
    """
    labels = [b""] * sum(width for _, width in layout.groups)
    column = 0
    for name, width in layout.groups:
        if layout.has_labels:
            labels[column] = name.encode("utf-8", "surrogateescape") + b"= "
        column += width
    labels[:1] = [b" " + label for label in labels[:1]]
    label_ends = np.array([0, *itertools.accumulate(map(len, labels))], dtype=np.int64)
    dense = np.empty((len(starts), len(labels)), dtype=np.float32)
    label_text = np.frombuffer(b"".join(labels), dtype=np.uint8)
    # Read-only, as the texts of search graphs: the parser of numbers is compiled once.
    text = read_only(text)
    words = view_words(text)
    return dense if parse_rows(text, words, starts, ends, label_text, label_ends, dense) else None


@lean_kernel
def parse_rows(
    text: Bytes,
    words: Words,
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
        words: uint64; the eight bytes from every position of ``text`` on.
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
            value, at = parse_decimal(text, words, at)
            if at == REFUSED:
                return False
            dense[row, column] = value
            at += 1
        if at != ends[row]:
            return False
    return True
