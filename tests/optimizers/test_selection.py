"""Which features are learned, by names and by counts, against counting one by one."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.features import FeatureSpace
from mosesplug.optimizers.selection import FeatureSelection, count_sentences
from mosesplug.tuning_set import TuningSet
from tests.optimizers.online.batches import random_batch

SPACE = FeatureSpace.of_names(
    ["LM0", "TM0", "TM0", "Words"], ["WT_a~b", "WT_a*c", "PP_a,b~c", "WTx_d"]
)


@pytest.mark.parametrize(
    ("active", "dropped", "expected"),
    [
        (None, (), "LM0_0 TM0_0 TM0_1 Words_0 WT_a~b WT_a*c PP_a,b~c WTx_d"),
        (None, ("WT_*",), "LM0_0 TM0_0 TM0_1 Words_0 PP_a,b~c WTx_d"),
        (("WT_*", "LM0"), (), "LM0_0 WT_a~b WT_a*c"),
        (("*",), ("TM0", "*~*"), "LM0_0 Words_0 WT_a*c WTx_d"),
        (("T*_1", "WT_a*c"), (), "TM0_1 WT_a*c"),
        (("PP_*,*",), (), "PP_a,b~c"),
        (("TM*",), ("TM0_0",), "TM0_1"),
    ],
)
def test_names(active: tuple[str, ...] | None, dropped: tuple[str, ...], expected: str) -> None:
    mask = FeatureSelection(active, dropped).select_names(SPACE)
    assert [name for name, kept in zip(SPACE.names, mask, strict=True) if kept] == expected.split()


def test_names_without_features() -> None:
    selection = FeatureSelection(("LM0", "LM1", "WT_*", "X*"), ("TM0_2", "PP_*"))
    assert [*selection.find_unmatched(SPACE)] == [
        *(("active", "LM1"), ("active", "X*")),
        ("drop-feature", "TM0_2"),
    ]


def counted_one_by_one(lists: TuningSet) -> list[int]:
    assert lists.sparse is not None
    sentences: list[set[int]] = [set() for _ in range(lists.space.n_sparse)]
    for sentence in range(lists.n_sentences):
        for row in range(lists.offsets[sentence], lists.offsets[sentence + 1]):
            for entry in range(lists.sparse.indptr[row], lists.sparse.indptr[row + 1]):
                if lists.sparse.data[entry] != 0.0:
                    sentences[lists.sparse.indices[entry]].add(sentence)
    return [len(found) for found in sentences]


@pytest.mark.parametrize("seed", range(3))
def test_counts_of_sentences(seed: int) -> None:
    lists = random_batch(seed, [1, 0, 2, 1, 1, 3], n_sparse=8)
    wanted = counted_one_by_one(lists)
    assert count_sentences(lists).tolist() == wanted
    least = sorted(wanted)[4]
    mask = FeatureSelection(least_sentences=least).select(lists, tunes_sparse=True)
    assert mask is not None
    assert mask.tolist() == [True] * 3 + [count >= max(1, least) for count in wanted]
    mask = FeatureSelection(most_frequent=3).select(lists, tunes_sparse=True)
    assert mask is not None
    best = sorted(range(8), key=lambda column: (-wanted[column], column))[:3]
    assert np.flatnonzero(mask).tolist() == [0, 1, 2, *(3 + column for column in sorted(best))]


def test_counts_are_those_of_named_features_and_of_algorithms_that_tune_them() -> None:
    lists = random_batch(5, [8, 8, 8], n_sparse=4)
    assert FeatureSelection().select(lists, tunes_sparse=True) is None
    named = FeatureSelection(("S_2", "S_3"), most_frequent=2).select(lists, tunes_sparse=True)
    assert named is not None
    assert np.flatnonzero(named).tolist() == [5, 6]
    dense = FeatureSelection(least_sentences=2).select(lists, tunes_sparse=False)
    assert dense is not None
    assert np.flatnonzero(dense).tolist() == [0, 1, 2]
