"""Numbers and words out of bytes, against float(), int() and plain Python."""

from __future__ import annotations

import math
from unittest import mock

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from formats import decimals
from formats.decimals import parse_integers, parse_number, parse_numbers, spell_rows
from formats.nbest import fields as nbest_fields
from formats.nbest.block import parse_block, parse_block_fast
from formats.nbest.entry import Layout
from formats.words import (
    PAD,
    Bytes,
    Positions,
    are_same_bytes,
    count_before_blank,
    hash_tokens,
    pad_with_newlines,
    stand_at,
)


def placed(tokens: list[bytes]) -> tuple[NDArray[np.uint8], Positions, Positions]:
    """A text of these tokens, and where they are."""
    text = pad_with_newlines(b" ".join([*tokens, b""]))
    ends = PAD + np.cumsum([len(token) + 1 for token in tokens], dtype=np.int64) - 1
    return text, ends - np.array([len(token) for token in tokens], dtype=np.int64), ends


spelled = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.floats(-1e6, 1e6).map(lambda x: f"{x:.6g}"),
    st.integers(-(10**18), 10**18).map(str),
    st.from_regex(r"-?[0-9]{0,10}\.?[0-9]{0,10}", fullmatch=True),
    st.from_regex(r"[-+0-9.eE/:@]{1,18}", fullmatch=True),
).map(str.encode)


@given(st.lists(spelled.filter(bool), min_size=1))
@example([b"1./", b"1.2.3", b"-", b".", b"--1", b"1-", b"/.1", b">1", b"1@1", b"0x10", b"1_0"])
@example([b"9007199254740993", b"-900719925474099.3", b"0.3000000000000000444", b"1e400", b"nan"])
@example([b"-0.0000000000000000", b"-0e5", b"1,2", b"1e-400", b"123456789012345678901"])
def test_numbers_are_those_of_float(tokens: list[bytes]) -> None:
    expected = np.array([parse_number(token) for token in tokens])
    for few in (1, len(tokens) + 1):  # with the parser of JSON, and without it
        with mock.patch.object(decimals, "_FEW", few):
            values = parse_numbers(*placed(tokens))
        np.testing.assert_array_equal(values, expected)
        np.testing.assert_array_equal(np.signbit(values), np.signbit(expected))


def test_numbers_and_other_tokens() -> None:
    for token in (b"0", b"-0", b"+1.5", b".5", b"5.", b"1e-05", b"-2.5E+3", b"1e+05"):
        assert parse_number(token) == float(token)
    for token in (b"", b"-", b".", b"1_0", b"nan", b"inf", b"1e400", b"1 ", b"0x1", b"\xb2", b"1e"):
        assert math.isnan(parse_number(token))


@given(st.lists(st.one_of(st.integers(0, 10**20).map(str), st.text("0-.x:/", min_size=1))))
def test_integers_are_digits_only(texts: list[str]) -> None:
    tokens = [text.encode() for text in texts]
    expected = [int(t) if t.isdigit() and t.isascii() and len(t) < 19 else -1 for t in texts]
    assert parse_integers(*placed(tokens)).tolist() == expected


@given(st.lists(st.binary(min_size=8, max_size=8), min_size=1))
def test_bytes_before_the_first_blank(chunks: list[bytes]) -> None:
    words = np.frombuffer(b"".join(chunks), dtype="<u8")
    assert count_before_blank(words).tolist() == [(chunk + b" ").index(b" ") for chunk in chunks]


names = st.lists(st.text("ab", min_size=1, max_size=20).map(str.encode), min_size=1)


@given(names)
def test_same_tokens_have_the_same_hash(tokens: list[bytes]) -> None:
    text, starts, ends = placed(tokens)
    hashes = hash_tokens(text, starts, ends).tolist()
    by_hash = dict(zip(hashes, tokens, strict=True))
    assert [by_hash[value] for value in hashes] == tokens
    first = np.array([tokens.index(token) for token in tokens])
    assert are_same_bytes(text, starts, ends, first)
    assert are_same_bytes(text, starts, ends, np.zeros_like(first)) == (len(set(tokens)) == 1)
    assert stand_at(text, starts[:1], tokens[0] + b" ")
    assert not stand_at(text, starts[:1], tokens[0] + b"x")
    assert not stand_at(text, starts[:1], text.tobytes() + b"x")  # more than there is
    assert stand_at(text, starts, b"")
    assert stand_at(text, starts[:0], b"x")


def test_a_hash_collision_costs_time_only(monkeypatch: pytest.MonkeyPatch) -> None:
    def worst(_text: Bytes, starts: Positions, _ends: Positions) -> NDArray[np.uint64]:
        return np.zeros(len(starts), dtype=np.uint64)

    lines = b"0 ||| a ||| LM= 1 x_a= 1 ||| 3\n0 ||| b ||| LM= 1 x_b= 3 ||| 3\n"
    layout = Layout(True, (("LM", 1),))
    monkeypatch.setattr(nbest_fields, "hash_tokens", worst)
    assert parse_block_fast(lines, layout, "list", 1) is None
    block = parse_block(lines, layout, "list", 1)
    assert block.sparse_names == ("x_a", "x_b")
    assert block.sparse_indices.tolist() == [0, 1]


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


@given(
    arrays(
        np.float32,
        st.tuples(st.integers(0, 5), st.integers(0, 4)),
        elements=FINITE | DECIMAL | TIES,
    )
)
def test_floats(values: NDArray[np.float32]) -> None:
    assert spell_rows(values) == expected(values)


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


def test_every_power_of_ten_and_its_neighbors() -> None:
    near = np.array([10.0**exponent for exponent in range(-46, 39)], dtype=np.float32)
    smaller, larger = (np.nextafter(near, np.float32(limit)) for limit in (0, 1e38))
    values = np.stack([near, smaller, larger], axis=1)
    assert spell_rows(values) == expected(values)
