"""Names and columns, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from mosesplug.features import FeatureSpace

SPACE = FeatureSpace((("LM0", 1), ("TM0", 3), ("D0", 1)), ("WT_a~b", "PL_1,2"))


def test_columns_in_the_decoder_s_order_then_sparse_names() -> None:
    names = ("LM0_0", "TM0_0", "TM0_1", "TM0_2", "D0_0", "WT_a~b", "PL_1,2")
    assert SPACE.names == names
    assert SPACE.group_names == ("LM0", "TM0", "TM0", "TM0", "D0")
    assert SPACE.columns == {name: column for column, name in enumerate(names)}
    assert (SPACE.n_dense, SPACE.n_sparse, len(SPACE)) == (5, 2, 7)


def test_an_empty_space() -> None:
    space = FeatureSpace(())
    assert (len(space), space.names, space.group_names) == (0, (), ())
    assert space.select([]).shape == (0,)


def test_neighbors_with_the_same_name_are_one_group() -> None:
    space = FeatureSpace.of_names(["tm", "tm", "lm", "tm"], ["S_x"])
    assert space.groups == (("tm", 2), ("lm", 1), ("tm", 1))
    assert space.sparse == ("S_x",)
    assert FeatureSpace.of_names([]).groups == ()


@pytest.mark.parametrize(
    ("wanted", "columns"),
    [
        ([], []),
        (["LM0"], [0]),
        (["LM0_0"], [0]),
        (["TM0"], [1, 2, 3]),
        (["TM0_1"], [2]),
        (["TM0_1", "TM0", "D0_0"], [1, 2, 3, 4]),
        (["WT_a~b"], [5]),
        (["PL_1,2", "TM0_2"], [3, 6]),
        (["LM0", "TM0", "D0", "WT_a~b", "PL_1,2"], [0, 1, 2, 3, 4, 5, 6]),
    ],
)
def test_columns_and_whole_groups_are_selected(wanted: list[str], columns: list[int]) -> None:
    mask = SPACE.select(wanted)
    assert mask.dtype == np.bool_
    assert mask.shape == (7,)
    assert np.flatnonzero(mask).tolist() == columns


@pytest.mark.parametrize("name", ["TM0_3", "TM", "lm0", "", "WT", "WT_a"])
def test_names_that_are_neither_dense_nor_sparse_are_errors(name: str) -> None:
    with pytest.raises(KeyError) as caught:
        SPACE.select(["LM0", name])
    assert caught.value.args == (name,)


def test_a_group_that_the_decoder_writes_in_two_places_is_selected_whole() -> None:
    assert FeatureSpace.of_names(["tm", "lm", "tm"]).select(["tm"]).tolist() == [True, False, True]


def test_a_column_s_name_goes_before_a_group_s() -> None:
    space = FeatureSpace((("A", 1), ("A_0", 2)))
    assert space.select(["A_0"]).tolist() == [True, False, False]
