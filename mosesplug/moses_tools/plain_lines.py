"""Parse lines of n-best lists that have the plain form of Moses, by kernels.

The form is ``0 ||| text ||| LM0= -1 TM0= -2 -3``, without sparse features. Other lines are left to
``formats.nbest.block``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from formats.nbest.entry import Layout
from formats.words import Bytes, Positions
from mosesplug.kernels import lean_kernel
from mosesplug.moses_tools.feature_columns import parse_columns

__all__ = ["parse_plain_lines"]

_BLANK, _BAR, _NEWLINE, _ZERO, _NINE = b" |\n09"


def parse_plain_lines(
    text: Bytes, starts: Positions, layout: Layout, path: str, lines: NDArray[np.int64]
) -> NBestList | None:
    """Parse lines without scores; None if one has another form.

    Args:
        text: uint8; the lines, each with a blank and a ``\\n`` behind the features.
        starts: int64 ``[n + 1]``; first byte of each line, and one past the last one.
        layout: labels and widths.
        path: the file.
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
