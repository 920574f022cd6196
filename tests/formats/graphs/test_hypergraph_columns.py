"""All edges at once: the same graph as line by line, and never one where that finds a fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from formats.errors import FormatError
from formats.graphs.hypergraph_columns import parse_graph
from formats.graphs.hypergraph_reader import _read_by_line, read_hypergraph

FIRST = b"# target ||| features ||| source-covered\n"
DENSE = (
    b"4 7\n"
    b"# node 0\n1\n<s> |||  ||| 0\n"
    b"# node 1\n2\n[0] a b  ||| LM0=-0.5 TM0_1=2.25 TM0_2=0.000000  ||| 2\n"
    b"[0] a  ||| LM0=-14.987647 TM0_1=0 TM0_2=-100.000000  ||| 2\n"
    b"# node 2\n2\n[1] [0] c  ||| LM0=-1 TM0_1=2 TM0_2=3  ||| 3\n"
    b"[0] # c a  ||| LM0=1 TM0_1=2 TM0_2=3  ||| 3\n"
    b"# node 3\n2\n[1] </s> |||  ||| 3\n[2] </s> |||  ||| 3\n"
)
SPARSE = DENSE.replace(b" TM0_1=2 ", b" ").replace(b"  ||| 2\n", b" WT_a=b=-0.5  ||| 2\n")


def assert_alike(text: bytes) -> None:
    arrays = parse_graph("graph", text)
    if arrays is None:
        return
    expected = vars(_read_by_line("graph", FIRST + text))
    for name, value in vars(arrays).items():
        if isinstance(value, np.ndarray):
            assert value.dtype == expected[name].dtype, name
            assert np.array_equal(value, expected[name]), name
        else:
            assert value == expected[name], name


@pytest.mark.parametrize("text", [DENSE, SPARSE, DENSE.removesuffix(b"\n")])
def test_usual_graphs_are_read_at_once(text: bytes) -> None:
    assert parse_graph("graph", text) is not None
    assert_alike(text)


@settings(max_examples=300, deadline=None)
@given(
    text=st.sampled_from([DENSE, SPARSE]),
    at=st.floats(0, 1, exclude_max=True),
    removed=st.integers(0, 3),
    inserted=st.text("0129-.=[]|# \n\tae_\r<", max_size=3),
)
def test_damage_is_never_overlooked(text: bytes, at: float, removed: int, inserted: str) -> None:
    place = int(at * len(text))
    damaged = text[:place] + inserted.encode() + text[place + removed :]
    try:
        _read_by_line("graph", FIRST + damaged)
    except FormatError:
        assert parse_graph("graph", damaged) is None
    else:
        assert_alike(damaged)


@pytest.mark.parametrize("zeros", [18, 5000])
@pytest.mark.parametrize("count", [b"4 ", b" 7\n"])
def test_counts_too_long_for_the_line_reader_are_not_read(count: bytes, zeros: int) -> None:
    long = DENSE.replace(count, count.replace(count.strip(), b"0" * zeros + count.strip()), 1)
    with pytest.raises(FormatError, match="two integers"):
        _read_by_line("graph", FIRST + long)
    assert parse_graph("graph", long) is None


def test_recorded_graphs_are_parsed_by_columns(
    multi30k: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object) -> None:
        raise AssertionError("a recorded graph was read line by line")

    monkeypatch.setattr("formats.graphs.hypergraph_reader._read_by_line", refused)
    for number in range(0, 60, 10):
        assert read_hypergraph(multi30k / "forest" / "hypergraph" / f"{number}.gz").path
