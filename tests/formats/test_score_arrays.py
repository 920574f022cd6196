"""Scores as arrays of NumPy: what ``numpy.save`` writes, and headers that nothing should trust."""

from __future__ import annotations

import gzip
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from formats.errors import FormatError
from formats.scores import read_score_blocks

VALID = (
    np.linspace(0, 1, 5),
    np.arange(6).reshape(3, 2),
    np.asfortranarray(np.arange(6, dtype=np.float32).reshape(3, 2)),
    np.array([True, False]),
    np.arange(3, dtype=">f8"),
    np.arange(3, dtype=np.float16),
)


def saved(array: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("array", VALID, ids=lambda array: f"{array.dtype.str}-{array.shape}")
def test_arrays(tmp_path: Path, array: Any, packed: bool) -> None:
    path = tmp_path / "scores.npy"
    path.write_bytes(gzip.compress(saved(array)) if packed else saved(array))
    (rows,) = read_score_blocks(path)
    np.testing.assert_array_equal(rows.values, array.reshape(len(array), -1))


SOUND = saved(np.zeros(3))


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (saved(np.array(["a"])), "an array of <U1 (1)"),
        (saved(np.array(3.0)), "an array of float64 (single number)"),
        (saved(np.zeros((2, 0))), "an array of float64 (2x0)"),
        (saved(np.zeros((2, 2, 2))), "an array of float64 (2x2x2)"),
        (saved(np.zeros(2, dtype=[("a", "f4")])), "an array of object (2)"),
        (
            SOUND[:-1],
            "the array cannot be read: it has 23 bytes of numbers, and its header says 24",
        ),
        (SOUND + b"\n", "the array cannot be read: it has 25 bytes of numbers"),
        (SOUND.replace(b"(3,)", b"(-3,)"), "its header cannot be parsed"),
        (SOUND.replace(b"(3,)", b"(True,)"), "its header cannot be parsed"),
        (SOUND.replace(b"'<f8'", b"'<f5'"), "its header cannot be parsed"),
        (SOUND.replace(b"'<f8'", b"f('8')"), "its header cannot be parsed"),
        (SOUND.replace(b"(3,)", b"(3, "), "its header cannot be parsed"),
        (SOUND.replace(b"(3,), } ", b"(9**99,),"), "its header cannot be parsed"),
        (SOUND.replace(b"(3,), }         ", b"(99999999999,),}"), "it has 24 bytes of numbers"),
        (SOUND[:9], "its header cannot be parsed"),
        (saved(np.array([0, np.nan])), "row 1 (from 0) holds [nan]"),
    ],
)
def test_no_header_is_trusted(tmp_path: Path, text: bytes, message: str, packed: bool) -> None:
    path = tmp_path / "scores.npy"
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(FormatError) as caught:
        list(read_score_blocks(path))
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_byte_that_some_count_as_a_blank(tmp_path: Path) -> None:
    path = tmp_path / "scores"
    path.write_bytes(b"1 2\x1a\xf2\n")
    with pytest.raises(FormatError, match=r"scores:1: '\\xf2' is not a finite number"):
        list(read_score_blocks(path))
