"""The integer map against a dictionary."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from mosesplug.extras.phrase_decoder.hashing import IntegerMap

KEYS = st.one_of(st.integers(0, 30), st.integers(0, 2**62))


@given(st.dictionaries(KEYS, st.integers(0, 2**31 - 1)), st.lists(KEYS))
def test_look_ups_match_a_dictionary(entries: dict[int, int], asked: list[int]) -> None:
    table = IntegerMap.of(
        np.array(list(entries), dtype=np.int64), np.array(list(entries.values()), dtype=np.int32)
    )
    keys = np.array([*entries, *asked], dtype=np.int64)
    expected = [entries.get(int(key), -1) for key in keys]
    assert table.find(keys).tolist() == expected
