"""Utilities of pairs of hypotheses, as text and as arrays of three shapes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from formats.errors import FormatError
from formats.utilities import UtilityReader

SIZES = (3, 1, 4)
PAIRS = [np.arange(n * n).reshape(n, n) / 7 for n in SIZES]
LINES = [" ".join(map(repr, row)) for pair in PAIRS for row in pair.tolist()]


def write(directory: Path, form: str) -> Path:
    path = directory / ("utilities" if form == "text" else "utilities.npy")
    if form == "text":
        path.write_text("\n".join(LINES) + "\n")
    elif form == "rows":
        rows = np.full((sum(SIZES), max(SIZES)), np.nan)
        for first, pair in zip((0, 3, 4), PAIRS, strict=True):
            rows[first : first + len(pair), : len(pair)] = pair
        np.save(path, rows)
    else:
        cubes = np.zeros((len(SIZES), max(SIZES), max(SIZES)), dtype=np.float64)
        for place, pair in enumerate(PAIRS):
            cubes[place, : len(pair), : len(pair)] = pair
        np.save(path, cubes)
    return path


@pytest.mark.parametrize("form", ["text", "rows", "cubes"])
def test_pairs(tmp_path: Path, form: str) -> None:
    reader = UtilityReader(write(tmp_path, form))
    for size, pair in zip(SIZES, PAIRS, strict=True):
        np.testing.assert_array_equal(reader.take(size, "list:1"), pair)
    reader.finish()


@pytest.mark.parametrize("is_array", [False, True])
def test_one_number_each(tmp_path: Path, is_array: bool) -> None:
    values, path = np.arange(8.0), tmp_path / "one"
    if is_array:
        with path.open("wb") as file:
            np.save(file, values)
    else:
        path.write_text("".join(f"{value}\n" for value in values))
    reader = UtilityReader(path)
    assert np.concatenate([reader.take(n, "").ravel() for n in SIZES]).tolist() == values.tolist()
    reader.finish()


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LINES[:-1], "the utilities end before the sentence that begins at list:5"),
        ([*LINES, "1"], "utilities:9: more utilities than the 8 hypotheses of the list"),
        (["1 2", *LINES[1:]], "utilities:1: 2 numbers for a hypothesis of a sentence with 3"),
        (["1 nan 2", *LINES[1:]], "utilities:1: a utility is not a finite number"),
        (["1 x 2", *LINES[1:]], "utilities:1: 'x' is not a number"),
        ([*LINES[:4], "1", *LINES[5:]], "utilities:5: 1 numbers for a hypothesis"),
        (["1", "2", "3", "4", "5 6"], "utilities:5: 2 numbers for a hypothesis"),
    ],
)
def test_errors(tmp_path: Path, lines: list[str], message: str) -> None:
    path = tmp_path / "utilities"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(FormatError) as caught:  # noqa: PT012
        reader, first = UtilityReader(path), 1
        for size in SIZES:
            reader.take(size, f"list:{first}")
            first += size
        reader.finish()
    assert message in str(caught.value)


@pytest.mark.parametrize(
    "shape", [(8, 3), (7, 4), (9, 4), (2, 4, 4), (4, 4, 4), (7,), (8, 4, 4, 1)]
)
def test_arrays_of_other_lists(tmp_path: Path, shape: tuple[int, ...]) -> None:
    path = tmp_path / "utilities.npy"
    np.save(path, np.zeros(shape))
    with pytest.raises(FormatError):  # noqa: PT012
        reader = UtilityReader(path)
        for size in SIZES:
            reader.take(size, "list:1")
        reader.finish()
