"""Weights and scores of short runs are those that are kept.

To 1e-6, since processors differ in the last bits; ``compare`` compares two commits on one machine
byte for byte, with many more rows, and ``record`` keeps the values of today.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden.rows import read_rows
from tests.golden.running import LocalRunner, run_row
from tests.golden.values import ROWS, read_values, row_values


@pytest.mark.parametrize("name", ROWS)
def test_weights_and_scores(name: str, tmp_path: Path) -> None:
    (row,) = (each for each in read_rows() if each.name == name)
    left = run_row(row, LocalRunner(), tmp_path / "row")
    failed = [data.decode() for file, data in left.items() if file.startswith("failed.")]
    assert not failed, failed[0]
    found, kept = row_values(row, left), read_values()[name]
    assert found.keys() == kept.keys()
    for file, numbers in kept.items():
        assert found[file] == pytest.approx(numbers, rel=1e-6, abs=1e-6), file
