"""Sorting inside kernels, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.forest.growing import double_length, sort_ascending
from mosesplug.forest.partial_derivations import select_best_rows


@given(st.lists(st.integers(-5, 5)), st.integers(0, 3))
def test_the_first_values_are_sorted(numbers: list[int], rest: int) -> None:
    values = np.array(numbers, dtype=np.int32)
    size = max(0, len(values) - rest)
    sort_ascending(values, size)
    assert values.tolist() == [*sorted(numbers[:size]), *numbers[size:]]


@given(st.lists(st.integers(-3, 3), min_size=1), st.data())
def test_the_last_of_tied_rows_are_selected(numbers: list[int], data: st.DataObject) -> None:
    beam = data.draw(st.integers(1, len(numbers)))
    ranked = sorted(range(len(numbers)), key=lambda row: (numbers[row], row))
    found = select_best_rows(np.array(numbers, dtype=np.float64), beam)
    assert found.tolist() == sorted(ranked[-beam:])


@pytest.mark.parametrize("size", [1, 5])
def test_the_first_half_is_the_array(size: int) -> None:
    array = np.arange(size)
    larger = double_length(array)
    assert (larger[:size].tolist(), len(larger)) == (array.tolist(), 2 * size)
