"""Parse features fields of equal form, one column of all lines at a time.

Moses writes a line without sparse features as label, blank, number, blank, ... with the same labels
in every line. Nothing has to be searched for: a position in each line moves from token to token,
and only the widths of the numbers differ. This is three times as fast as ``formats.nbest.tokens``,
which parses all other fields.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_digits, parse_numbers
from formats.nbest.entry import FLOAT32_LIMIT, Layout
from formats.words import Bytes, Positions, Words, count_before_blank, stand_at, view_words

__all__ = ["parse_columns"]

LONGEST = 32
"""A number must end within this many bytes; decoders write at most 24."""

MANY_COLUMNS = 1000
"""With more columns than this, and than lines, parsing token by token is faster."""


def parse_columns(
    padded: Bytes, starts: Positions, ends: Positions, layout: Layout, *, glued: bool = False
) -> NDArray[np.float32] | None:
    """Parse the dense values of fields as Moses writes them, without sparse features.

    Args:
        padded: the text with ``PAD`` bytes before and after it.
        starts: int64 ``[n]``; the blank at the start of each field.
        ends: int64 ``[n]``; one past the blank at the end of each field.
        layout: labels and widths.
        glued: whether a value follows its label without a blank, as in search graphs.

    Returns:
        float32 ``[n, n_dense]``, or None if a line has another form, or if the lines are so few
        and long that this is slow.
    """
    words = view_words(padded)
    n_dense = sum(width for _, width in layout.groups)
    if n_dense > max(len(starts), MANY_COLUMNS):
        return None
    dense = np.empty((len(starts), n_dense), dtype=np.float32)
    at = starts
    column = 0
    blank = b" "
    for name, width in layout.groups:
        label = blank + name.encode("utf-8", "surrogateescape") + (b"=" if glued else b"= ")
        if not layout.labelled:
            label = blank
        if not stand_at(words, at, label):
            return None
        at = at + len(label)
        blank = b""  # the blank after a number is consumed with it
        for _ in range(width):
            values, at = _numbers(padded, words, at)
            if not (np.abs(values) < FLOAT32_LIMIT).all():
                return None
            dense[:, column] = values
            column += 1
    return dense if np.array_equal(at, ends) else None


def _numbers(padded: Bytes, words: Words, at: Positions) -> tuple[NDArray[np.float64], Positions]:
    """Parse the numbers at these positions (NaN if none); also return the positions after them."""
    minus = padded[at] == ord("-")
    first = at + minus
    word = words[first]
    lengths = count_before_blank(word)
    longer = np.flatnonzero(lengths == 8)
    if len(longer):
        lengths[longer] += _lengths(words, first[longer] + 8)
    to_the_end = word << (8 * np.maximum(8 - lengths, 0)).astype(np.uint64)
    values, refused = parse_digits(to_the_end, lengths)
    values = np.where(minus, -values, values)
    again = np.flatnonzero(refused)
    if len(again):
        ends = np.minimum(first[again] + lengths[again], len(padded))
        values[again] = parse_numbers(padded, at[again], ends)
    values[lengths == LONGEST] = np.nan
    return values, first + lengths + 1


def _lengths(words: Words, at: Positions) -> Positions:
    """Count the bytes before the next blank, up to ``LONGEST`` less 8."""
    lengths = np.zeros(len(at), dtype=np.int64)
    rest = np.arange(len(at))
    while len(rest) and lengths[rest[0]] < LONGEST - 8:
        more = count_before_blank(words[np.minimum(at[rest] + lengths[rest], len(words) - 1)])
        lengths[rest] += more
        rest = rest[more == 8]
    return lengths
