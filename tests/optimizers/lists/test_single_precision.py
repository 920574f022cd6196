"""The layout of k-best MIRA, against comparisons of all pairs of rows."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.features import FeatureSpace
from mosesplug.optimizers.lists import single_precision
from mosesplug.optimizers.lists.single_precision import mira_lists
from mosesplug.tuning_set import SparseRows, TuningSet

SIZES = (7, 0, 1, 12)


def draw_set(seed: int) -> TuningSet:
    """Rows of few values, so that many are equal, within sentences and across."""
    rng = np.random.default_rng(seed)
    n = sum(SIZES)
    widths = rng.integers(0, 3, n)
    return TuningSet(
        space=FeatureSpace((("A", 2),), ("s_a", "s_b", "s_c")),
        offsets=np.cumsum([0, *SIZES]),
        dense=rng.choice(np.array([0.0, -0.0, 1.0], dtype=np.float32), (n, 2)),
        sparse=SparseRows(
            np.cumsum([0, *widths]),
            np.concatenate([rng.permutation(3)[:width] for width in widths]).astype(np.int32),
            rng.choice(np.array([0.0, -0.0, 2.0], dtype=np.float32), int(widths.sum())),
        ),
        stats=rng.integers(0, 2, (n, 3)).astype(np.int32),
        lengths=np.ones(n, dtype=np.int32),
        sentence_ids=np.arange(len(SIZES)),
    )


def features_of(each: TuningSet, row: int) -> tuple[object, ...]:
    assert each.sparse is not None
    entries = slice(each.sparse.indptr[row], each.sparse.indptr[row + 1])
    pairs = zip(each.sparse.indices[entries], each.sparse.data[entries], strict=True)
    return (*each.dense[row].tolist(), *sorted((int(i), float(x)) for i, x in pairs))


@pytest.mark.parametrize("has_one_code", [False, True])
@pytest.mark.parametrize("seed", range(5))
def test_the_first_of_equal_rows_is_kept(
    seed: int, has_one_code: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if has_one_code:  # every comparison is a collision

        def hash_alike(offsets: object, dense: NDArray[np.float32], _: object) -> object:
            return np.zeros(len(dense), dtype=np.uint64)

        monkeypatch.setattr(single_precision, "_hash_rows", hash_alike)
    each = draw_set(seed)
    lists, kept = mira_lists(each)
    bounds = list(zip(each.offsets[:-1], each.offsets[1:], strict=True))
    expected = [
        row
        for start, end in bounds
        for row in range(start, end)
        if features_of(each, row) not in [features_of(each, r) for r in range(start, row)]
    ]
    assert kept.tolist() == expected

    # Sentences without hypotheses are left out.
    assert lists.offsets.tolist() == [
        0,
        *np.cumsum([sum(s <= r < e for r in expected) for s, e in bounds if e > s]),
    ]
    for sentence in range(len(lists.offsets) - 1):
        start, end = lists.offsets[sentence : sentence + 2]
        part = lists.dense[2 * start : 2 * end].reshape(2, end - start).T
        assert np.array_equal(part, each.dense[kept[start:end]])
        own = lists.row_of[start:end]
        assert np.array_equal(lists.rows[own], each.stats[kept[start:end]])
        first, last = lists.row_offsets[sentence : sentence + 2]
        assert set(own.tolist()) == set(range(first, last))
        assert len(np.unique(lists.rows[first:last], axis=0)) == last - first
