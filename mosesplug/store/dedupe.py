"""Find the hypotheses of a list that are new: hash rows and compare candidates.

Two hypotheses of a sentence are duplicates if their texts are equal byte for byte and their float32
features are equal, including sparse ones. A hash only finds candidates. Hypotheses that carry
scores from outside are duplicates only if these are equal, too, else their hashes differ
(``mix_scores``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from formats.words import are_equal_ranges
from mosesplug.kernels import lean_kernel, read_only


class Rows(NamedTuple):
    """Hypotheses as flat arrays, as the kernels read them.

    Attributes:
        buffer: uint8; the text of hypothesis ``i`` is ``buffer[starts[i]:ends[i]]``.
        starts: integers ``[n]``.
        ends: integers ``[n]``.
        dense: float32 ``[n, n_dense]``, free of NaN.
        indptr: integers ``[n + 1]``; sparse entries of row ``i`` are ``indptr[i]:indptr[i + 1]``.
        indices: int32 ``[nnz]``, ascending within a row.
        data: float32 ``[nnz]``.
    """

    buffer: NDArray[np.uint8]
    starts: NDArray[Any]
    ends: NDArray[Any]
    dense: NDArray[np.float32]
    indptr: NDArray[Any]
    indices: NDArray[np.int32]
    data: NDArray[np.float32]


@lean_kernel
def _mix(state: np.uint64) -> np.uint64:
    """Mix bits by MurmurHash3's finalizer (Appleby 2011): each affects all others."""
    state ^= state >> np.uint64(33)
    state *= np.uint64(0xFF51AFD7ED558CCD)
    state ^= state >> np.uint64(33)
    state *= np.uint64(0xC4CEB9FE1A85EC53)
    return state ^ (state >> np.uint64(33))


@lean_kernel
def _are_same(a: Rows, i: int, b: Rows, j: int) -> bool:
    """Return whether row ``i`` of ``a`` and row ``j`` of ``b`` are one hypothesis."""
    start_a = np.int64(a.starts[i])
    start_b = np.int64(b.starts[j])
    length = np.int64(a.ends[i]) - start_a
    if np.int64(b.ends[j]) - start_b != length:
        return False
    entry_a = np.int64(a.indptr[i])
    entry_b = np.int64(b.indptr[j])
    entries = np.int64(a.indptr[i + 1]) - entry_a
    if np.int64(b.indptr[j + 1]) - entry_b != entries:
        return False
    for column in range(a.dense.shape[1]):
        if a.dense[i, column] != b.dense[j, column]:
            return False
    for k in range(length):
        if a.buffer[start_a + k] != b.buffer[start_b + k]:
            return False
    for k in range(entries):
        if a.indices[entry_a + k] != b.indices[entry_b + k]:
            return False
        if a.data[entry_a + k] != b.data[entry_b + k]:
            return False
    return True


def hash_rows(rows: Rows) -> NDArray[np.uint64]:
    """Return a 64-bit hash of text and features, uint64 ``[n]``.

    It is FNV-1a of bytes and mixed words. Negative zero hashes as zero, because the two compare
    equal.
    """
    hashes = np.empty(len(rows.starts), dtype=np.uint64)
    own = Rows(*map(read_only, rows))
    bits = own.dense.view(np.uint32), own.data.view(np.uint32)
    _hash_rows(own.buffer, own.starts, own.ends, bits[0], own.indptr, own.indices, bits[1], hashes)
    return hashes


@lean_kernel
def _hash_rows(
    buffer: NDArray[np.uint8],
    starts: NDArray[np.int64],
    ends: NDArray[np.int64],
    dense_bits: NDArray[np.uint32],
    indptr: NDArray[np.int64],
    indices: NDArray[np.int32],
    data_bits: NDArray[np.uint32],
    hashes: NDArray[np.uint64],
) -> None:
    """Write the output ``hashes`` of its caller."""
    prime = np.uint64(0x100000001B3)
    negative_zero = np.uint32(0x80000000)
    for i in range(len(hashes)):
        state = np.uint64(0xCBF29CE484222325)
        for k in range(starts[i], ends[i]):
            state = (state ^ np.uint64(buffer[k])) * prime
        # Words are mixed first: FNV alone does not move their high bits down.
        state = _mix(state)
        for column in range(dense_bits.shape[1]):
            word = dense_bits[i, column]
            if word != negative_zero:
                state ^= np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(29))) * prime
        for entry in range(indptr[i], indptr[i + 1]):
            word = data_bits[entry]
            if word == negative_zero:
                word = np.uint32(0)
            pair = (np.uint64(indices[entry]) << np.uint64(32)) | np.uint64(word)
            state = _mix(state ^ pair) * prime
        hashes[i] = _mix(state)


def mix_scores(hashes: NDArray[np.uint64], scores: NDArray[np.float64]) -> NDArray[np.uint64]:
    """Return hashes that also depend on scores from outside, uint64 ``[n]``.

    Rows of the same text and features have different hashes if their scores differ: surely with one
    column, since the mixing is a bijection, and with more but for one case in ``2 ** 64``.

    Args:
        hashes: uint64 ``[n]`` of ``hash_rows``.
        scores: float64 ``[n, k]``, free of NaN.
    """
    mixed = hashes.copy()
    for column in (scores + 0.0).T:  # negative zero becomes zero
        mixed ^= np.ascontiguousarray(column).view(np.uint64)
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(0xFF51AFD7ED558CCD)
        mixed ^= mixed >> np.uint64(33)
        mixed *= np.uint64(0xC4CEB9FE1A85EC53)
        mixed ^= mixed >> np.uint64(33)
    return mixed


def first_occurrences(
    rows: Rows, hashes: NDArray[np.uint64], offsets: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.int64]]:
    """Return the first row of each sentence's list that is the same hypothesis.

    Args:
        rows: the hypotheses.
        hashes: uint64 ``[n]`` of ``hash_rows``.
        offsets: int64 ``[n_sentences + 1]``; rows of sentence ``i``.

    Returns:
        int64 ``[n]``, the first equal row (the row itself if none precedes it); and one open hash
        table per sentence for ``find_stored``: int32 slots that hold rows counted from the
        sentence's first (-1: empty), and int64 ``[n_sentences + 1]`` offsets of the tables.
    """
    # A power of two of slots, at least twice as many as rows: the bits of ``rows - 1``, and one.
    bits = np.frexp(np.maximum(np.diff(offsets) - 1, 0).astype(np.float64))[1]
    table_offsets = np.zeros(len(offsets), dtype=np.int64)
    np.cumsum(np.left_shift(np.int64(2), bits.astype(np.int64)), out=table_offsets[1:])
    tables = np.full(table_offsets[-1], -1, dtype=np.int32)
    first = np.arange(len(hashes), dtype=np.int64)
    fill_tables(hashes, hashes, offsets, table_offsets, tables, first)
    if not _repeat_first(rows, first):  # different hypotheses of one hash
        tables[:] = -1
        first = np.arange(len(hashes), dtype=np.int64)
        fill_tables(hashes, _number_contents(rows), offsets, table_offsets, tables, first)
    return first, tables, table_offsets


@lean_kernel
def fill_tables(
    hashes: NDArray[np.uint64],
    contents: NDArray[np.uint64],
    offsets: NDArray[np.int64],
    table_offsets: NDArray[np.int64],
    tables: NDArray[np.int32],
    first: NDArray[np.int64],
) -> None:
    """Find the first row of each sentence with the same content; fill its hash table.

    Args:
        hashes: uint64 ``[n]``.
        contents: uint64 ``[n]``, equal in rows that are the same.
        offsets: int64 ``[n_sentences + 1]``; rows of sentence ``i``.
        table_offsets: int64 ``[n_sentences + 1]``; slots of sentence ``i``, a power of two.
        tables: output, int32; -1 at first.
        first: output, int64 ``[n]``; each row itself at first.
    """
    for sentence in range(len(offsets) - 1):
        begin = offsets[sentence]
        origin = table_offsets[sentence]
        mask = np.uint64(table_offsets[sentence + 1] - origin - 1)
        for row in range(begin, offsets[sentence + 1]):
            slot = np.int64(hashes[row] & mask)
            # At most half of the slots are taken, so the search ends soon.
            while tables[origin + slot] >= 0:
                other = begin + tables[origin + slot]
                if contents[other] == contents[row]:
                    first[row] = other
                    break
                slot = (slot + 1) & np.int64(mask)
            if first[row] == row:
                tables[origin + slot] = row - begin


def _repeat_first(rows: Rows, first: NDArray[np.int64]) -> bool:
    """Return whether every row is the same hypothesis as its first row."""
    repeats = np.flatnonzero(first != np.arange(len(first)))
    if not len(repeats):
        return True
    origins = first[repeats]
    if not np.array_equal(rows.dense[repeats], rows.dense[origins]):
        return False
    data = rows.data + np.float32(0.0)  # zero has no sign
    return (
        _are_same_ranges(rows.buffer, (rows.starts, rows.ends), repeats, origins)
        and _are_same_ranges(rows.indices, (rows.indptr[:-1], rows.indptr[1:]), repeats, origins)
        and _are_same_ranges(data, (rows.indptr[:-1], rows.indptr[1:]), repeats, origins)
    )


def _are_same_ranges(
    array: NDArray[Any],
    bounds: tuple[NDArray[Any], NDArray[Any]],
    rows: NDArray[np.int64],
    others: NDArray[np.int64],
) -> bool:
    """Return whether the ranges of ``rows`` and of ``others`` hold the same bytes."""
    starts, ends = (array.itemsize * bound.astype(np.int64) for bound in bounds)
    lengths = ends[rows] - starts[rows]
    if not np.array_equal(lengths, ends[others] - starts[others]):
        return False
    if not lengths.any():
        return True
    # Words of eight bytes are compared, so the last ones need bytes behind them.
    text = np.concatenate([array.view(np.uint8), np.zeros(8, dtype=np.uint8)])
    return are_equal_ranges(text, starts[rows], starts[others], lengths)


def _number_contents(rows: Rows) -> NDArray[np.uint64]:
    """Number the different hypotheses, uint64 ``[n]``."""
    dense, data = rows.dense + np.float32(0.0), rows.data + np.float32(0.0)  # zero has no sign
    numbers: dict[tuple[bytes, ...], int] = {}
    contents = np.empty(len(rows.starts), dtype=np.uint64)
    for row in range(len(contents)):
        entries = slice(rows.indptr[row], rows.indptr[row + 1])
        content = (
            rows.buffer[rows.starts[row] : rows.ends[row]].tobytes(),
            dense[row].tobytes(),
            rows.indices[entries].tobytes(),
            data[entries].tobytes(),
        )
        contents[row] = numbers.setdefault(content, len(numbers))
    return contents


@lean_kernel
def find_stored(
    stored: Rows,
    stored_hashes: NDArray[np.uint64],
    iteration: int,
    rows: Rows,
    hashes: NDArray[np.uint64],
    begin: int,
    table: NDArray[np.int32],
    home_iterations: NDArray[np.int32],
    home_rows: NDArray[np.int32],
) -> bool:
    """Mark the rows of a list that an earlier record of its sentence holds.

    ``table`` is that sentence's table of ``first_occurrences`` and ``begin`` its first row.
    Where row ``j`` of ``stored`` is row ``i`` of the list, the outputs ``home_iterations[i]``
    and ``home_rows[i]`` become ``iteration`` and ``j``.

    Returns:
        Whether all accesses were within the record; if not, the record is damaged.
    """
    mask = np.int64(len(table) - 1)
    for j in range(len(stored_hashes)):
        slot = np.int64(stored_hashes[j] & np.uint64(mask))
        while table[slot] >= 0:
            row = begin + table[slot]
            if hashes[row] == stored_hashes[j]:
                # Checked for the few rows that are compared, not for all.
                if stored.ends[j] > len(stored.buffer) or stored.indptr[j + 1] > len(stored.data):
                    return False
                if _are_same(rows, row, stored, j):
                    home_iterations[row] = iteration
                    home_rows[row] = j
                    break
            # Another row with this hash may hold the same content.
            slot = (slot + 1) & mask
    return True


def resolve(
    first: NDArray[np.int64],
    offsets: NDArray[np.int64],
    iteration: int,
    home_iterations: NDArray[np.int32],
    home_rows: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Assign every row a home: the record that holds it, and its row there.

    Rows without a home (``home_iterations`` 0) are new and get the next row of this iteration's
    record; repeated rows share the home of the first. Both home arrays are outputs.

    Returns:
        int64 ``[n_new]``, the new rows; and int64 ``[n_sentences + 1]``, their offsets by sentence.
    """
    is_first = first == np.arange(len(first))
    new_rows = np.flatnonzero(is_first & (home_iterations == 0))
    new_offsets = np.searchsorted(new_rows, offsets).astype(np.int64)
    home_iterations[new_rows] = iteration
    home_rows[new_rows] = np.arange(len(new_rows)) - np.repeat(
        new_offsets[:-1], np.diff(new_offsets)
    )
    repeated = np.flatnonzero(~is_first)
    home_iterations[repeated] = home_iterations[first[repeated]]
    home_rows[repeated] = home_rows[first[repeated]]
    return new_rows, new_offsets


def sort_sparse(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32], int]:
    """Sort the entries of each row by feature, so that equal rows have equal bytes.

    Returns:
        int32 and float32 ``[nnz]``; and the first row that names a feature twice, or -1.
    """
    indices, data = indices.copy(), data.copy()
    if not len(indices):
        return indices, data, -1
    return indices, data, int(_sort_entries(read_only(indptr), indices, data))


@lean_kernel
def _sort_entries(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float32]
) -> int:
    """Sort each row in place; return the first row with a repeated index, or -1."""
    repeated = -1
    for row in range(len(indptr) - 1):
        for entry in range(indptr[row] + 1, indptr[row + 1]):
            index = indices[entry]
            value = data[entry]
            k = entry
            # Columns are numbered as features appear, so rows are almost sorted: insertion takes
            # few moves.
            while k > indptr[row] and indices[k - 1] > index:
                indices[k] = indices[k - 1]
                data[k] = data[k - 1]
                k -= 1
            indices[k] = index
            data[k] = value
            if k > indptr[row] and indices[k - 1] == index and repeated < 0:
                repeated = row
    return repeated
