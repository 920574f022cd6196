"""Find the hypotheses of a list that are new: kernels that hash rows and compare candidates.

Two hypotheses of a sentence are duplicates if their texts are equal byte for byte and their float32
features are equal, including sparse ones. A hash only finds candidates. Hypotheses that carry
scores from outside are duplicates only if these are equal, too, else their hashes differ
(``mix_scores``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel

__all__ = [
    "Rows",
    "copy_texts",
    "count_tokens",
    "find_stored",
    "first_occurrences",
    "hash_rows",
    "mix_scores",
    "relative_offsets",
    "resolve",
    "sort_sparse",
]


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


@kernel
def _mix(state: np.uint64) -> np.uint64:
    """Mix bits with MurmurHash3's finaliser (Appleby 2011): each input bit affects all bits."""
    state ^= state >> np.uint64(33)
    state *= np.uint64(0xFF51AFD7ED558CCD)
    state ^= state >> np.uint64(33)
    state *= np.uint64(0xC4CEB9FE1A85EC53)
    return state ^ (state >> np.uint64(33))


@kernel
def _are_same(a: Rows, i: int, b: Rows, j: int) -> bool:
    """Return whether row ``i`` of ``a`` and row ``j`` of ``b`` are the same hypothesis."""
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


@kernel
def hash_rows(
    rows: Rows, dense_bits: NDArray[np.uint32], data_bits: NDArray[np.uint32]
) -> NDArray[np.uint64]:
    """Return a 64-bit hash of text and features, uint64 ``[n]`` (FNV-1a of bytes and mixed words).

    ``dense_bits`` and ``data_bits`` are ``rows.dense`` and ``rows.data`` seen as uint32.
    Negative zero hashes as zero, because the two compare equal.
    """
    n = len(rows.starts)
    hashes = np.empty(n, dtype=np.uint64)
    prime = np.uint64(0x100000001B3)
    negative_zero = np.uint32(0x80000000)
    for i in range(n):
        state = np.uint64(0xCBF29CE484222325)
        for k in range(np.int64(rows.starts[i]), np.int64(rows.ends[i])):
            state = (state ^ np.uint64(rows.buffer[k])) * prime
        # Words are mixed first: FNV alone does not move their high bits down.
        state = _mix(state)
        for column in range(dense_bits.shape[1]):
            word = dense_bits[i, column]
            if word != negative_zero:
                state ^= np.uint64(word) * np.uint64(0x9E3779B97F4A7C15)
            state = (state ^ (state >> np.uint64(29))) * prime
        for entry in range(np.int64(rows.indptr[i]), np.int64(rows.indptr[i + 1])):
            word = data_bits[entry]
            if word == negative_zero:
                word = np.uint32(0)
            pair = (np.uint64(rows.indices[entry]) << np.uint64(32)) | np.uint64(word)
            state = _mix(state ^ pair) * prime
        hashes[i] = _mix(state)
    return hashes


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


@kernel
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
    n_sentences = len(offsets) - 1
    table_offsets = np.zeros(n_sentences + 1, dtype=np.int64)
    for sentence in range(n_sentences):
        size = 2
        while size < 2 * (offsets[sentence + 1] - offsets[sentence]):
            size *= 2
        table_offsets[sentence + 1] = table_offsets[sentence] + size
    tables = np.full(table_offsets[-1], -1, dtype=np.int32)
    first = np.empty(len(hashes), dtype=np.int64)
    for sentence in range(n_sentences):
        begin = offsets[sentence]
        table = tables[table_offsets[sentence] : table_offsets[sentence + 1]]
        mask = np.uint64(len(table) - 1)
        for row in range(begin, offsets[sentence + 1]):
            slot = np.int64(hashes[row] & mask)
            while True:
                if table[slot] < 0:
                    table[slot] = row - begin
                    first[row] = row
                    break
                other = begin + table[slot]
                if hashes[other] == hashes[row] and _are_same(rows, row, rows, other):
                    first[row] = other
                    break
                slot = (slot + 1) & np.int64(mask)
    return first, tables, table_offsets


@kernel
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
    """Mark the rows of one sentence's list that an earlier record of the sentence holds.

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
            slot = (slot + 1) & mask
    return True


@kernel
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
    new_rows = np.empty(len(first), dtype=np.int64)
    new_offsets = np.zeros(len(offsets), dtype=np.int64)
    n_new = 0
    for sentence in range(len(offsets) - 1):
        for row in range(offsets[sentence], offsets[sentence + 1]):
            if first[row] != row:
                home_iterations[row] = home_iterations[first[row]]
                home_rows[row] = home_rows[first[row]]
            elif home_iterations[row] == 0:
                home_iterations[row] = iteration
                home_rows[row] = n_new - new_offsets[sentence]
                new_rows[n_new] = row
                n_new += 1
        new_offsets[sentence + 1] = n_new
    return new_rows[:n_new].copy(), new_offsets


@kernel
def copy_texts(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the given ranges end to end: uint8 bytes, and int64 ``[n + 1]`` where each begins."""
    offsets = np.zeros(len(starts) + 1, dtype=np.int64)
    for i in range(len(starts)):
        offsets[i + 1] = offsets[i] + ends[i] - starts[i]
    text = np.empty(offsets[-1], dtype=np.uint8)
    for i in range(len(starts)):
        shift = starts[i] - offsets[i]
        for k in range(offsets[i], offsets[i + 1]):
            text[k] = buffer[k + shift]
    return text, offsets


@kernel
def relative_offsets(offsets: NDArray[np.int64], bounds: NDArray[np.int64]) -> NDArray[np.uint32]:
    """Return offsets of each sentence's rows counted from its own first one, uint32.

    ``offsets`` is ``[n + 1]`` over all rows; sentence ``i`` has the rows ``bounds[i]`` to
    ``bounds[i + 1]`` and gets one offset more than rows.
    """
    n_sentences = len(bounds) - 1
    relative = np.empty(bounds[-1] + n_sentences, dtype=np.uint32)
    for i in range(n_sentences):
        for row in range(bounds[i], bounds[i + 1] + 1):
            relative[row + i] = offsets[row] - offsets[bounds[i]]
    return relative


@kernel
def count_tokens(
    buffer: NDArray[np.uint8], starts: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Count the tokens of each range, int32 ``[n]``: runs of bytes without ASCII white space."""
    counts = np.zeros(len(starts), dtype=np.int32)
    for i in range(len(starts)):
        inside = False
        for k in range(starts[i], ends[i]):
            blank = buffer[k] == 32 or 9 <= buffer[k] <= 13
            if not blank and not inside:
                counts[i] += 1
            inside = not blank
    return counts


@kernel
def sort_sparse(
    indptr: NDArray[np.int64], indices: NDArray[np.int32], data: NDArray[np.float32]
) -> tuple[NDArray[np.int32], NDArray[np.float32], int]:
    """Sort the entries of each row by feature, so that equal rows have equal bytes.

    Returns:
        int32 and float32 ``[nnz]``; and the first row that names a feature twice, or -1.
    """
    indices = indices.copy()
    data = data.copy()
    repeated = -1
    for row in range(len(indptr) - 1):
        for entry in range(indptr[row] + 1, indptr[row + 1]):
            index = indices[entry]
            value = data[entry]
            k = entry
            while k > indptr[row] and indices[k - 1] > index:
                indices[k] = indices[k - 1]
                data[k] = data[k - 1]
                k -= 1
            indices[k] = index
            data[k] = value
            if k > indptr[row] and indices[k - 1] == index and repeated < 0:
                repeated = row
    return indices, data, repeated
