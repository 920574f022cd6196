"""The kernel for features in columns against the parser of the formats."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from formats.nbest import fields
from formats.nbest.entry import Layout
from formats.words import PAD, pad_with_newlines
from mosesplug.moses_tools.plain_lines import parse_columns

LAYOUT = Layout(True, (("LM0", 1), ("TM0", 2)))


def parse(lines: list[str], layout: Layout = LAYOUT) -> list[list[float]] | None:
    """Parse with the kernel."""
    starts = np.cumsum([0, *(len(line) + 1 for line in lines)])[:-1] + PAD
    ends = starts + np.array([len(line) for line in lines])
    padded = pad_with_newlines("".join(f"{line}\n" for line in lines).encode())
    found = parse_columns(padded, starts, ends, layout)
    expected = fields.parse_columns(padded, starts, ends, layout)
    if found is not None:
        assert expected is not None
        assert found.tobytes() == expected.tobytes()
    return None if found is None else found.tolist()


def line(*values: str) -> str:
    return f" LM0= {values[0]} TM0= {values[1]} {values[2]} "


NUMBERS = st.one_of(
    st.floats(-1e6, 1e6).map(lambda value: f"{value:.6g}"),
    st.floats(-1, 1).map(lambda value: f"{value:.3e}"),
    st.integers(-(10**14), 10**14).map(str),
    st.decimals(-1000, 1000, places=9).map(lambda value: f"{value:f}"),
)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=4))
@example([("-0", ".5", "5.")])
@example([("1e-20", "-1.5E+3", "1e+05")])
@example([("999999999999999", "0.00000000000001", "1e22")])
def test_values_are_those_of_float(rows: list[tuple[str, str, str]]) -> None:
    found = parse([line(*row) for row in rows])
    if found is not None:
        assert found == [[float(np.float32(float(value))) for value in row] for row in rows]


def test_usual_numbers_are_parsed() -> None:
    assert parse([line("-103.732", "0", "-4.52111e-05"), line("1", "-0.5", "12")]) == [
        [float(np.float32(value)) for value in row]
        for row in ((-103.732, 0, -4.52111e-05), (1, -0.5, 12))
    ]
    assert parse([" 1 2 3 "], Layout(False, (("LM0", 1), ("TM0", 2)))) == [[1, 2, 3]]
    assert parse([" "], Layout(True, ())) in ([[]], None)


@pytest.mark.parametrize(
    "odd",
    [
        " LM0= 1 TM0= 2 ",
        " LM0= 1 TM0= 2 3 4 ",
        " LM0= 1 TM1= 2 3 ",
        " LM0=1 TM0= 2 3 ",
        "LM0= 1 TM0= 2 3 ",
        line("1", "2", "nan"),
        line("1", "2", "-"),
        line("1", "2", "."),
        line("1", "2", "1.2.3"),
        line("1", "2", "e5"),
        line("1", "2", "1e"),
        line("1", "2", "1e+"),
        line("1", "2", "1e100"),
        line("1", "2", "1e-45"),
        line("1", "2", "1234567890123456"),
        line("1", "2", "0x1"),
        line("1", "2", "3,5"),
    ],
)
def test_other_lines_are_left_to_others(odd: str) -> None:
    assert parse([line("1", "2", "3"), odd]) is None
