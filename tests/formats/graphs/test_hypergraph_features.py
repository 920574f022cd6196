"""Columns by the names in search graphs, by hand."""

from __future__ import annotations

import pytest

from formats.graphs.hypergraph_features import GraphColumns, infer_groups


def test_columns() -> None:
    columns = GraphColumns((("LM0", 1), ("TM0", 2)), ["WT_a~b"])
    names = ("TM0_2", "LM0", "TM0_1", "PL_1", "WT_a~b", "TM0_of", "PL_1")
    assert columns.of(names) == {
        "LM0": 0, "TM0_1": 1, "TM0_2": 2, "WT_a~b": 3, "PL_1": 4, "TM0_of": 5,
    }  # fmt: skip
    assert list(columns.sparse) == ["WT_a~b", "PL_1", "TM0_of"]
    assert columns.names == ("LM0", "TM0_1", "TM0_2", "WT_a~b", "PL_1", "TM0_of")


@pytest.mark.parametrize("name", ["TM0_0", "TM0_3", "LM0_1", "LM1", "TM0", ""])
def test_what_is_neither_dense_nor_sparse(name: str) -> None:
    with pytest.raises(KeyError, match=f"^'{name}'$"):
        GraphColumns((("LM0", 1), ("TM0", 2))).of(["LM0", name])


def test_features_that_are_not_tuned() -> None:
    fixed = ("UnknownWordPenalty0", "TM0_2", "TM1_1")
    columns = GraphColumns((("TM0", 3), ("LM0", 1), ("TM1", 1)), ["X_y"], fixed)
    names = ("UnknownWordPenalty0", "TM0_1", "TM0_2", "TM0_3", "TM0_4", "LM0", "TM1_1", "TM1_2")
    assert [columns.of(names)[name] for name in names] == [6, 0, 7, 1, 2, 3, 8, 4]
    assert list(columns.sparse) == ["X_y", "UnknownWordPenalty0", "TM0_2", "TM1_1"]
    with pytest.raises(KeyError, match="TM0_5"):
        columns.of(["TM0_5"])
    # What a store has once, it knows again.
    known = GraphColumns((("LM0", 1),), ["UnknownWordPenalty0"])
    assert known.of(["UnknownWordPenalty0", "LM0"]) == {"UnknownWordPenalty0": 1, "LM0": 0}
    assert infer_groups(["UnknownWordPenalty0", "LM0"], fixed) == (("LM0", 1),)


@pytest.mark.parametrize(
    ("names", "groups"),
    [
        ([], ()),
        (["LM0", "TM0_1", "TM0_2", "D0"], (("LM0", 1), ("TM0", 2), ("D0", 1))),
        (["A_1", "A_2", "A_3", "B_1", "B_2"], (("A", 3), ("B", 2))),
        # A number alone, or one out of order, is part of a sparse feature's name.
        (["LM0", "TWI_1", "TWI_3", "PL_2", "X_y", "WT_1~2"], (("LM0", 1),)),
    ],
)
def test_groups_by_names(names: list[str], groups: tuple[tuple[str, int], ...]) -> None:
    assert infer_groups(names) == groups
