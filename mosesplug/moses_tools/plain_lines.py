"""Parse lines of n-best lists that have the plain form of Moses, by kernels.

The form is ``0 ||| text ||| LM0= -1 TM0= -2 -3``, without sparse features. Other lines are left to
``formats.nbest.block``.
"""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.nbest.entry import Layout
from formats.words import Bytes, Positions, Words, view_words
from mosesplug.kernels import lean_kernel, read_only
from mosesplug.tokens import REFUSED, parse_decimal

_BLANK, _BAR, _NEWLINE, _ZERO, _NINE = b" |\n09"


def parse_plain_lines(
    text: Bytes, starts: Positions, layout: Layout, path: str, lines: NDArray[np.int64]
) -> NBestList | None:
    """Parse lines without scores; None if one has another form.

    Args:
        text: uint8; the lines, each with a blank and a ``\\n`` behind the features.
        starts: int64 ``[n + 1]``; first byte of each line, and one past the last one.
        lines: int64 ``[n]``; their numbers in the file.
    """
    n = len(lines)
    ids, text_starts, text_ends, features = np.empty((4, n), dtype=np.int64)
    if layout.n_skipped or not split_lines(text, starts, ids, text_starts, text_ends, features):
        return None
    line_ends = starts[1:] - 1
    dense = parse_columns(text, features, line_ends, layout)
    if dense is None:
        return None
    return NBestList(
        path=path,
        sentence_ids=ids,
        buffer=text,
        text_starts=text_starts,
        text_ends=text_ends,
        groups=layout.groups,
        dense=dense,
        sparse_names=(),
        sparse_indptr=np.zeros(n + 1, dtype=np.int64),
        sparse_indices=np.zeros(0, dtype=np.int32),
        sparse_data=np.zeros(0, dtype=np.float32),
        scores=np.full(n, np.nan),
        extra_starts=line_ends,
        extra_ends=line_ends,
        lines=lines,
    )


@lean_kernel
def split_lines(
    text: Bytes,
    starts: Positions,
    ids: NDArray[np.int64],
    text_starts: Positions,
    text_ends: Positions,
    features: Positions,
) -> bool:
    """Find the fields of lines; return whether each begins with a sentence id.

    Args:
        text: uint8; the lines, each with its ``\\n``.
        starts: int64 ``[n + 1]``; first byte of each line, and one past the last one.
        ids: output, int64 ``[n]``.
        text_starts: output, int64 ``[n]``; first byte of the text, without blanks around it.
        text_ends: output, int64 ``[n]``.
        features: output, int64 ``[n]``; the byte behind the second separator.
    """
    for line in range(len(ids)):
        at, sentence = starts[line], 0
        while _ZERO <= text[at] <= _NINE:
            sentence = 10 * sentence + int(text[at]) - _ZERO
            at += 1
        if text[at] != _BLANK or not is_separator(text, at + 1) or text[at + 4] != _BLANK:
            return False
        start = at = at + 4
        while not is_separator(text, at):
            if text[at] == _NEWLINE:
                return False
            at += 1
        features[line] = at + 3
        while start < at and text[start] <= _BLANK:
            start += 1
        while start < at and text[at - 1] <= _BLANK:
            at -= 1
        ids[line], text_starts[line], text_ends[line] = sentence, start, at
    return True


@lean_kernel
def is_separator(text: Bytes, at: int) -> bool:
    """Return whether three bars begin there; reads no byte behind a newline."""
    return bool(text[at] == _BAR and text[at + 1] == _BAR and text[at + 2] == _BAR)


def parse_columns(
    text: Bytes, starts: Positions, ends: Positions, layout: Layout
) -> NDArray[np.float32] | None:
    """Parse the dense values of fields as Moses writes them, without sparse features.

    Args:
        text: uint8; the lines, each with a ``\\n`` at its end.
        starts: int64 ``[n]``; the blank at the start of each field.
        ends: int64 ``[n]``; one past the blank at the end of each field.

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
