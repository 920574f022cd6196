"""Parse the features fields of many lines at once.

Moses writes a line without sparse features as label, blank, number, blank, ... with the same labels
in every line. ``parse_columns`` has to search for nothing: a position in each line moves from token
to token, and only the widths of the numbers differ.

``parse_tokens`` takes three times as long, and parses all other fields: sparse features, glued
labels, old labels. Tokens are separated by blanks, and the last character tells a label from a
number. The whole block is compared with one character at a time. Only the distinct names of sparse
features, identified by hashes, become Python objects.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from formats.decimals import parse_digits, parse_numbers, parse_six_decimals
from formats.nbest.entry import BLANKS, FLOAT32_LIMIT, Layout
from formats.words import (
    Bools,
    Bytes,
    Floats,
    Floats32,
    Ints32,
    Positions,
    Words,
    are_same_bytes,
    count_before_blank,
    hash_tokens,
    stand_at,
    view_words,
)

LONGEST = 32
"""A number must end within this many bytes; decoders write at most 24."""

_SLOT_BITS = 16  # of the table of names: half a megabyte stays in the cache

MANY_COLUMNS = 1000
"""With more columns than this, and than lines, parsing token by token is faster."""


def parse_columns(
    padded: Bytes, starts: Positions, ends: Positions, layout: Layout, *, glued: bool = False
) -> Floats32 | None:
    """Parse the dense values of fields as Moses writes them, without sparse features.

    Args:
        padded: the text with ``PAD`` bytes before and after it.
        starts: int64 ``[n]``; the blank at the start of each field.
        ends: int64 ``[n]``; one past the blank at the end of each field.
        glued: whether a value follows its label without a blank, as in search graphs.

    Returns:
        float32 ``[n, n_dense]``, or None if a line has another form, or if the lines are so few
        and long that this is slow.
    """
    words = view_words(padded)
    n_dense = sum(width for _, width in layout.groups)
    # A pass over all lines for each column costs most where lines are few.
    if n_dense > max(len(starts), MANY_COLUMNS):
        return None
    dense = np.empty((len(starts), n_dense), dtype=np.float32)
    at = starts
    column = 0
    blank = b" "
    for name, width in layout.groups:
        label = blank + name.encode("utf-8", "surrogateescape") + (b"=" if glued else b"= ")
        if not layout.has_labels:
            label = blank
        if not stand_at(padded, at, label):
            return None
        at = at + len(label)
        blank = b""  # the blank after a number is consumed with it
        for _ in range(width):
            values, at = _fixed_numbers(padded, words, at) if glued else _numbers(padded, words, at)
            if not (np.abs(values) < FLOAT32_LIMIT).all():
                return None
            dense[:, column] = values
            column += 1
    return dense if np.array_equal(at, ends) else None


def _numbers(padded: Bytes, words: Words, at: Positions) -> tuple[Floats, Positions]:
    """Parse the numbers at these positions, else NaN; also return where they end."""
    minus = padded[at] == ord("-")
    first = at + minus
    word = words[first]
    lengths = count_before_blank(word)
    # Most numbers end within a word; only the others are looked at again.
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
    # No end within reach: the caller rejects NaN.
    values[lengths == LONGEST] = np.nan
    return values, first + lengths + 1


def _fixed_numbers(padded: Bytes, words: Words, at: Positions) -> tuple[Floats, Positions]:
    """Parse as ``_numbers`` does, faster for one digit, a point and six digits."""
    minus = padded[at] == ord("-")
    first = at + minus
    values, refused = parse_six_decimals(words[first])
    refused |= padded[first + 8] != ord(" ")
    np.negative(values, out=values, where=minus)
    behind = first + 9
    if len(others := np.flatnonzero(refused)):
        values[others], behind[others] = _numbers(padded, words, at[others])
    return values, behind


def _lengths(words: Words, at: Positions) -> Positions:
    """Count the bytes before the next blank, up to ``LONGEST`` less 8."""
    lengths = np.zeros(len(at), dtype=np.int64)
    rest = np.arange(len(at))
    while len(rest) and lengths[rest[0]] < LONGEST - 8:
        more = count_before_blank(words[np.minimum(at[rest] + lengths[rest], len(words) - 1)])
        lengths[rest] += more
        rest = rest[more == 8]
    return lengths


@dataclass(frozen=True)
class ParsedFeatures:
    """Features of some lines; the attributes are those of ``NBestList``."""

    dense: Floats32
    sparse_names: tuple[str, ...]
    sparse_indptr: Positions
    sparse_indices: Ints32
    sparse_data: Floats32


@dataclass(frozen=True)
class Tokens:
    """Tokens of the features fields of a block.

    Attributes:
        is_sparse: whether each is a label with an underscore.
        offsets: tokens of line ``i`` are ``offsets[i]:offsets[i + 1]``.
    """

    starts: Positions
    ends: Positions
    is_label: Bools
    is_sparse: Bools
    offsets: Positions


def parse_tokens(
    padded: Bytes, begins: Positions, ends: Positions, layout: Layout
) -> ParsedFeatures | None:
    """Parse features fields into a dense matrix and sparse rows.

    Args:
        padded: the text with ``PAD`` bytes before and after it.
        begins: int64 ``[n]``; first byte of each field, ascending.
        ends: int64 ``[n]``; one past its last byte.

    Returns:
        The features, or None if a line differs from the layout or has an invalid number.
    """
    tokens = split_tokens(padded, begins, ends)
    n_lines = len(tokens.offsets) - 1
    n_dense = sum(width for _, width in layout.groups)
    labels = np.flatnonzero(tokens.is_sparse)
    is_dense = _without_sparse(tokens, labels)
    if is_dense is None or not _follows(padded, tokens, is_dense, layout):
        return None
    values = np.flatnonzero(is_dense)
    dense = parse_numbers(padded, tokens.starts[values], tokens.ends[values])
    data = parse_numbers(padded, tokens.starts[labels + 1], tokens.ends[labels + 1])
    if not ((np.abs(dense) < FLOAT32_LIMIT).all() and (np.abs(data) < FLOAT32_LIMIT).all()):
        return None
    indptr = np.searchsorted(labels, tokens.offsets)
    numbered = number_names(padded, tokens.starts[labels], tokens.ends[labels] - 1)
    if numbered is None:
        return None
    names, indices = numbered
    owners = np.repeat(np.arange(n_lines), np.diff(indptr))
    if (np.diff(np.sort(owners * len(names) + indices)) == 0).any():
        return None  # a feature twice in one line
    return ParsedFeatures(
        dense.astype(np.float32).reshape(n_lines, n_dense),
        names,
        indptr,
        indices,
        data.astype(np.float32),
    )


def _without_sparse(tokens: Tokens, labels: Positions) -> Bools | None:
    """Return which tokens are dense values; None if a sparse one has not one value."""
    is_value = np.append(~tokens.is_label, (False, False))
    first = np.zeros(len(is_value), dtype=np.bool_)
    first[tokens.offsets] = True
    if not (is_value & ~first)[labels + 1].all() or (is_value & ~first)[labels + 2].any():
        return None
    is_value[labels + 1] = False
    return is_value[:-2]


def split_tokens(padded: Bytes, begins: Positions, behinds: Positions) -> Tokens:
    """Split features fields into labels and numbers, glued or separate."""
    # One more byte at each end of a field counts as blank, so every token lies between two blanks.
    befores = begins - 1
    blank = padded <= BLANKS[-1]
    blank[befores] = True
    blank[behinds] = True
    blanks = np.flatnonzero(blank)
    low = np.searchsorted(blanks, befores)
    counts = np.searchsorted(blanks, behinds) - low
    offsets = _running_sum(counts)
    which = np.repeat(low - offsets[:-1], counts) + np.arange(offsets[-1])
    starts, ends = blanks[which] + 1, blanks[which + 1]
    filled = ends > starts
    starts, ends = starts[filled], ends[filled]
    offsets = _running_sum(filled)[offsets]
    is_label = _are_labels(padded, ends)
    n_equals = np.count_nonzero(padded == ord("="))
    if n_equals > np.count_nonzero(padded[ends - 1] == ord("=")):
        glued = np.flatnonzero(padded[:-1] == ord("="))
        starts, ends = _cut_glued(starts, ends, is_label, glued[~blank[glued + 1]])
        offsets = np.append(np.searchsorted(starts, befores), len(starts))
        is_label = _are_labels(padded, ends)
    is_sparse = np.zeros(len(starts), dtype=np.bool_)
    is_sparse[_owners(starts, ends, np.flatnonzero(padded == ord("_")))[0]] = True
    return Tokens(starts, ends, is_label, is_sparse & is_label, offsets)


def _are_labels(padded: Bytes, ends: Positions) -> Bools:
    """Return which tokens end as labels do."""
    last = padded[ends - 1]
    labels: Bools = (last == ord("=")) | (last == ord(":"))
    return labels


def _running_sum(counts: Positions | Bools) -> Positions:
    """``0, counts[0], counts[0] + counts[1], ...``: one more than there are counts."""
    total = np.zeros(len(counts) + 1, dtype=np.int64)
    np.cumsum(counts, out=total[1:])
    return total


def _cut_glued(
    starts: Positions, ends: Positions, is_label: Bools, glued: Positions
) -> tuple[Positions, Positions]:
    """Cut ``name=value`` after its last ``=``; labels stay whole."""
    owners, inside = _owners(starts, ends, glued)
    cuttable = ~is_label[owners]
    owners, glued = owners[cuttable], glued[inside][cuttable]
    final = np.append(owners[1:] != owners[:-1], True)[: len(owners)]
    owners, cuts = owners[final], glued[final] + 1
    return np.insert(starts, owners + 1, cuts), np.insert(ends, owners, cuts)


def _owners(starts: Positions, ends: Positions, positions: Positions) -> tuple[Positions, Bools]:
    """Return the tokens that contain the positions, and which positions are in one."""
    if not len(starts):
        return np.zeros(0, dtype=np.int64), np.zeros(len(positions), dtype=np.bool_)
    owners = np.searchsorted(starts, positions, side="right") - 1
    inside = (owners >= 0) & (positions < ends[owners])
    return owners[inside], inside


def _follows(padded: Bytes, tokens: Tokens, is_dense: Bools, layout: Layout) -> bool:
    """Return whether every line has the layout's labels, each before its values."""
    n_dense = sum(width for _, width in layout.groups)
    if not _every_line_has(np.flatnonzero(is_dense), tokens.offsets, n_dense):
        return False
    labels = np.flatnonzero(tokens.is_label & ~tokens.is_sparse)
    if not layout.has_labels:
        return not tokens.is_label.any()
    if not _every_line_has(labels, tokens.offsets, len(layout.groups)):
        return False
    seen = np.cumsum(is_dense)
    column = 0
    for group, (name, width) in enumerate(layout.groups):
        of_group = labels[group :: len(layout.groups)]
        before = seen[of_group] - n_dense * np.arange(len(of_group))
        label = name.encode("utf-8", "surrogateescape")
        fits = tokens.ends[of_group] - tokens.starts[of_group] == len(label) + 1
        if not ((before == column).all() and fits.all()):
            return False
        if not stand_at(padded, tokens.starts[of_group], label):
            return False
        column += width
    return True


def _every_line_has(positions: Positions, offsets: Positions, count: int) -> bool:
    """Return whether every line has that many of the tokens at ``positions``."""
    return bool((np.diff(np.searchsorted(positions, offsets)) == count).all())


def number_names(
    padded: Bytes, starts: Positions, ends: Positions
) -> tuple[tuple[str, ...], Ints32] | None:
    """Number names by first appearance; None if two names share a hash."""
    first = _find_first_equal(hash_tokens(padded, starts, ends))
    if not are_same_bytes(padded, starts, ends, first):
        return None
    is_first = first == np.arange(len(first))
    order = np.flatnonzero(is_first)
    rank = (np.cumsum(is_first) - 1).astype(np.int32)
    names = (padded[starts[i] : ends[i]].tobytes() for i in order.tolist())
    return tuple(name.decode("utf-8", "surrogateescape") for name in names), rank[first]


def _find_first_equal(hashes: Words) -> Positions:
    """Return the first position of each hash, int64 ``[n]``.

    Equal hashes have the same slot of a table, in which the first position is left. Only those that
    share their slot with another one are sorted.
    """
    slots = (hashes >> np.uint64(64 - _SLOT_BITS)).view(np.int64)
    table = np.empty(1 << _SLOT_BITS, dtype=np.int64)
    # Backwards, so that the first position of a slot is written last.
    table[slots[::-1]] = np.arange(len(hashes) - 1, -1, -1)
    first = table[slots]
    others = np.flatnonzero(hashes[first] != hashes)
    if len(others):
        _, at, owners = np.unique(hashes[others], return_index=True, return_inverse=True)
        first[others] = others[at][owners]
    return first
