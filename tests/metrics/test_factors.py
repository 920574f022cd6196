"""Factors of tokens."""

from __future__ import annotations

import pytest

from mosesplug.errors import DataError, UsageError
from mosesplug.metrics import parse_factors, select_factors


@pytest.mark.parametrize(
    ("line", "factors", "expected"),
    [
        (b"a|b|c d|e|f", (0,), b"a d"),
        (b"a|b|c d|e|f", (2, 0), b"c|a f|d"),
        (b" a|b  c|d ", (1,), b"b d"),
        (b"a||c", (1,), b""),
        (b"", (0,), b""),
        (b" a|b ", (), b" a|b "),
    ],
)
def test_selection(line: bytes, factors: tuple[int, ...], expected: bytes) -> None:
    assert select_factors(line, factors) == expected


def test_a_token_without_the_factor_is_rejected() -> None:
    with pytest.raises(DataError, match="token 'c' has 1 factors and factor 1 is selected"):
        select_factors(b"a|b c", (0, 1))


@pytest.mark.parametrize(("text", "factors"), [("", ()), ("0", (0,)), ("0|12", (0, 12))])
def test_parsing(text: str, factors: tuple[int, ...]) -> None:
    assert parse_factors(text) == factors


@pytest.mark.parametrize("text", ["0,1", "-1", "a", "|", "0|", "²"])
def test_invalid_factors_are_rejected(text: str) -> None:
    with pytest.raises(UsageError, match="non-negative integers"):
        parse_factors(text)
