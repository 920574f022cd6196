"""Numbers spelled in bulk against Python's own ``%.6g``, which is C's."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from formats.decimal_text import spell_rows


def expected(values: NDArray[np.float32]) -> bytes:
    rows = values.astype(np.float64).tolist()
    return b"".join(b"\n" + b"".join(b"%.6g " % value for value in row) for row in rows)


FINITE = st.floats(width=32, allow_nan=False, allow_infinity=False)
DECIMAL = st.builds(
    lambda digits, places: np.float32(digits / 10**places),
    st.integers(-(10**7), 10**7),
    st.integers(0, 9),
)
TIES = st.builds(
    lambda odd, shift: np.float32(odd / 2**shift), st.integers(-(2**24), 2**24), st.integers(0, 26)
)


@settings(max_examples=300, deadline=None)
@given(
    arrays(
        np.float32,
        st.tuples(st.integers(0, 5), st.integers(0, 4)),
        elements=FINITE | DECIMAL | TIES,
    )
)
def test_floats(values: NDArray[np.float32]) -> None:
    assert spell_rows(values) == expected(values)


@settings(max_examples=100, deadline=None)
@given(
    arrays(
        np.int32,
        st.tuples(st.integers(0, 5), st.integers(0, 4)),
        elements=st.integers(0, 999) | st.integers(-(2**31), 2**31 - 1),
    )
)
def test_integers_are_spelled_as_float32(values: NDArray[np.int32]) -> None:
    assert spell_rows(values) == expected(values.astype(np.float32))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, b"0"),
        (-0.0, b"-0"),
        (0.0001, b"0.0001"),
        (9.99999e-5, b"9.99999e-05"),
        (99999.95, b"100000"),  # the nearest float32 is above the tie
        (999999.5, b"1e+06"),
        (999999.4375, b"999999"),
        (1234.565, b"1234.56"),
        (-123456, b"-123456"),
        (0.99999999, b"1"),
        (0.09999996, b"0.1"),
        (3.4028234e38, b"3.40282e+38"),
        (1e-45, b"1.4013e-45"),
    ],
)
def test_by_hand(value: float, text: bytes) -> None:
    assert spell_rows(np.array([[value]], dtype=np.float32)) == b"\n" + text + b" "


@pytest.mark.parametrize("exponent", range(-46, 39))
def test_every_power_of_ten_and_its_neighbours(exponent: int) -> None:
    near = np.float32(10.0**exponent)
    values = np.array(
        [[near, np.nextafter(near, np.float32(0)), np.nextafter(near, np.float32(1e38))]]
    )
    assert spell_rows(values) == expected(values)
