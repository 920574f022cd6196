"""Numbers of the C library, against the C library."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest

from mosesplug.moses_tools.c_rand import CRand


def test_first_numbers_of_the_default_seed() -> None:
    """The sequence that many an introduction to C on Linux prints."""
    expected = [1804289383, 846930886, 1681692777, 1714636915, 1957747793]
    assert CRand(1).draw(5).tolist() == expected
    assert CRand(0).draw(5).tolist() == expected


@pytest.mark.parametrize("seed", [2, 1000, -7, 2**31 + 5, 2**32 - 1])
def test_as_the_c_library(seed: int) -> None:
    name = ctypes.util.find_library("c")
    library = ctypes.CDLL(name) if name else None
    if library is None or not hasattr(library, "gnu_get_libc_version"):
        pytest.skip("this is not the GNU C library")
    library.srand(ctypes.c_uint(seed & 0xFFFFFFFF))
    expected = [library.rand() for _ in range(2000)]
    numbers = CRand(seed)
    assert numbers.draw(700).tolist() + numbers.draw(1300).tolist() == expected


def test_below() -> None:
    np.testing.assert_array_equal(CRand(5).below(13, 500), CRand(5).draw(500) % 13)
