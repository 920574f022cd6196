"""The kernels that find duplicates, against dictionaries of bytes."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.kernels import read_only
from mosesplug.store import columns, dedupe
from mosesplug.store.dedupe import Rows


def rows_of(
    texts: list[bytes],
    dense: list[list[float]] | None = None,
    sparse: list[dict[int, float]] | None = None,
) -> Rows:
    bounds = np.cumsum([0, *map(len, texts)])
    values = np.array(dense or [[0.0]] * len(texts), dtype=np.float32)
    entries = [sorted(row.items()) for row in sparse or [{} for _ in texts]]
    arrays = Rows(
        buffer=np.frombuffer(b"".join(texts), np.uint8),
        starts=bounds[:-1],
        ends=bounds[1:],
        dense=values,
        indptr=np.cumsum([0, *map(len, entries)]),
        indices=np.array([i for row in entries for i, _ in row], dtype=np.int32),
        data=np.array([x for row in entries for _, x in row], dtype=np.float32),
    )
    # As lists that were read have them: kernels are compiled for those already.
    return Rows(*map(read_only, arrays))


def as_stored(rows: Rows) -> Rows:
    """The same rows with the narrow offsets of records."""
    starts, ends, indptr = (
        read_only(each, np.uint32) for each in (rows.starts, rows.ends, rows.indptr)
    )
    return rows._replace(starts=starts, ends=ends, indptr=indptr)


def hashes_of(rows: Rows) -> NDArray[np.uint64]:
    return dedupe.hash_rows(rows)


def test_hashes_tell_text_features_and_their_places_apart() -> None:
    rows = rows_of(
        [b"a b", b"a b", b"b a", b"a b", b"a b", b"a b", b"a b", b""],
        [[1, 2], [1, 2], [1, 2], [2, 1], [1, 2], [1, 2], [1, 2], [0, 0]],
        [{}, {}, {}, {}, {0: 1.0}, {1: 1.0}, {0: 1.0, 1: 1.0}, {}],
    )
    hashes = hashes_of(rows)
    assert hashes[0] == hashes[1]
    assert len(set(hashes.tolist())) == len(hashes) - 1


def test_zero_has_no_sign() -> None:
    rows = rows_of([b"a", b"a"], [[0.0], [-0.0]], [{3: 0.0}, {3: -0.0}])
    assert len(set(hashes_of(rows).tolist())) == 1
    # Where two hashes are the same by chance, rows are compared, and numbered.
    assert dedupe._repeat_first(rows, np.zeros(2, dtype=np.int64))
    assert dedupe._number_contents(rows).tolist() == [0, 0]
    first, _, _ = dedupe.first_occurrences(rows, hashes_of(rows), np.array([0, 2]))
    assert first.tolist() == [0, 0]


@pytest.mark.parametrize("constant", [False, True])
def test_equal_hashes_are_compared(constant: bool) -> None:
    rng = np.random.default_rng(1)
    texts = [bytes(rng.choice([65, 66], 3).tolist()) for _ in range(60)]
    dense = rng.integers(0, 2, (60, 2)).astype(float).tolist()
    sparse = [{int(rng.integers(2)): float(rng.integers(2))} for _ in range(60)]
    rows = rows_of(texts, dense, sparse)
    # One hash for all makes every comparison a collision.
    hashes = np.zeros(60, dtype=np.uint64) if constant else hashes_of(rows)
    bounds = np.array([0, 25, 25, 60])
    first, tables, table_bounds = dedupe.first_occurrences(rows, hashes, bounds)
    keys = [(t, tuple(d), *s.items()) for t, d, s in zip(texts, dense, sparse, strict=True)]
    expected = [
        next(j for j in range(begin, 60) if keys[j] == keys[i])
        for begin, end in ((0, 25), (25, 60))
        for i in range(begin, end)
    ]
    assert first.tolist() == expected

    stored = rows_of(texts[10:50:2], dense[10:50:2], sparse[10:50:2])
    # A record holds no hypothesis twice.
    kept = [j for j in range(20) if keys[10 + 2 * j] not in keys[10 : 10 + 2 * j : 2]]
    stored = rows_of(
        [texts[10 + 2 * j] for j in kept],
        [dense[10 + 2 * j] for j in kept],
        [sparse[10 + 2 * j] for j in kept],
    )
    homes = np.zeros(60, dtype=np.int32)
    at = np.zeros(60, dtype=np.int32)
    dedupe.find_stored(
        as_stored(stored),
        read_only(hashes[: len(kept)] if constant else hashes_of(stored)),
        7,
        rows,
        hashes,
        25,
        tables[table_bounds[2] : table_bounds[3]],
        homes,
        at,
    )
    held = {keys[10 + 2 * j]: place for place, j in enumerate(kept)}
    for i in range(60):
        wanted = i >= 25 and first[i] == i and keys[i] in held
        assert homes[i] == (7 if wanted else 0)
        assert not wanted or at[i] == held[keys[i]]


def test_new_rows_are_numbered_within_their_sentence() -> None:
    first = np.array([0, 1, 0, 3, 4, 4])
    iterations = np.array([0, 2, 0, 0, 0, 0], dtype=np.int32)
    rows = np.array([0, 9, 0, 0, 0, 0], dtype=np.int32)
    new_rows, bounds = dedupe.resolve(first, np.array([0, 3, 3, 6]), 5, iterations, rows)
    assert new_rows.tolist() == [0, 3, 4]
    assert bounds.tolist() == [0, 1, 1, 3]
    assert iterations.tolist() == [5, 2, 5, 5, 5, 5]
    assert rows.tolist() == [0, 9, 0, 0, 1, 1]


def test_texts_tokens_and_offsets() -> None:
    texts = [b"a bb  c", b"", b"\t x\xa0y\n", b" "]
    rows = rows_of(texts)
    picked = np.array([2, 1, 0])
    copy, bounds = columns.copy_texts(rows.buffer, rows.starts[picked], rows.ends[picked])
    assert copy.tobytes() == texts[2] + texts[1] + texts[0]
    assert bounds.tolist() == [0, 6, 6, 13]
    counts = columns.count_tokens(rows.buffer, rows.starts, rows.ends)
    assert counts.tolist() == [len(text.split()) for text in texts]
    relative = columns.relative_offsets(bounds, np.array([0, 1, 1, 3]))
    assert relative.tolist() == [0, 6, 0, 0, 0, 7]


def test_sparse_entries_are_sorted_and_repeats_found() -> None:
    indptr = np.array([0, 3, 3, 5])
    indices = np.array([2, 0, 1, 4, 3], dtype=np.int32)
    data = np.arange(5, dtype=np.float32)
    before = indices.tobytes(), data.tobytes()
    sorted_indices, sorted_data, repeated = dedupe.sort_sparse(indptr, indices, data)
    assert (indices.tobytes(), data.tobytes()) == before
    assert sorted_indices.tolist() == [0, 1, 2, 3, 4]
    assert sorted_data.tolist() == [1, 2, 0, 4, 3]
    assert repeated == -1
    twice = np.array([2, 0, 1, 4, 4], dtype=np.int32)
    assert dedupe.sort_sparse(indptr, twice, data)[2] == 2
