"""Features fields that all look alike: one column of all lines at a time.

Moses spells a line without sparse features as label, blank, number, blank, ... with the same
labels in every line. Then there is nothing to search for: a position in each line moves from token
to token, all lines together, and only the widths of the numbers differ. Three times as fast as
``formats.nbest.tokens``, which reads all the rest.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from formats.decimals import parse_digits, parse_numbers
from formats.nbest.entry import FLOAT32_LIMIT, Layout
from formats.words import Bytes, Positions, Words, all_read, before_blank, words_of

__all__ = ["parse_columns"]

LONGEST = 32
"""Bytes in which a number must end: decoders write 24 at most."""

MANY_COLUMNS = 1000
"""More than these, and more than there are lines, are faster token by token."""


def parse_columns(
    padded: Bytes, starts: Positions, ends: Positions, layout: Layout, *, glued: bool = False
) -> NDArray[np.float32] | None:
    """Dense values of fields that are spelled as Moses spells them, without sparse features.

    Args:
        padded: the text, with ``PAD`` bytes before and behind it.
        starts: int64 ``[n]``; the blank that each field begins with.
        ends: int64 ``[n]``; behind the blank that each field ends with.
        layout: labels and widths.
        glued: whether a value follows its label without a blank, as in search graphs.

    Returns:
        float32 ``[n, n_dense]``, or None where a line is spelled in any other way, or where the
        lines are so few and so long that this is slow.
    """
    words = words_of(padded)
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
        if not all_read(words, at, label):
            return None
        at = at + len(label)
        blank = b""  # the one behind a number is passed with the number
        for _ in range(width):
            values, at = _numbers(padded, words, at)
            if not (np.abs(values) < FLOAT32_LIMIT).all():
                return None
            dense[:, column] = values
            column += 1
    return dense if np.array_equal(at, ends) else None


def _numbers(padded: Bytes, words: Words, at: Positions) -> tuple[NDArray[np.float64], Positions]:
    """The numbers at these positions, NaN where there is none; and what is behind their blank."""
    minus = padded[at] == ord("-")
    first = at + minus
    word = words[first]
    lengths = before_blank(word)
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
    """Bytes before the next blank, as many as a token of ``LONGEST`` has behind its first 8."""
    lengths = np.zeros(len(at), dtype=np.int64)
    rest = np.arange(len(at))
    while len(rest) and lengths[rest[0]] < LONGEST - 8:
        more = before_blank(words[np.minimum(at[rest] + lengths[rest], len(words) - 1)])
        lengths[rest] += more
        rest = rest[more == 8]
    return lengths
