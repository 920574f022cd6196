"""The matrix is read as its docstring says, and covers every algorithm and launcher."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from mosesplug.optimizers import algorithms
from tests.golden.rows import Command, Row, matching_rows, read_rows
from tests.golden.values import ROWS, read_values

MATRIX = r"""
# A comment.
SHORT = --seed 5
TUNE = tune SHORT
QUICK = SHORT --quiet

first
    ~tune QUICK --metric BLEU
    !2 TUNE 'two words' {here}/x
    < more a b\nc\n

second
    /bin/true
"""


def test_reading(tmp_path: Path) -> None:
    (tmp_path / "matrix").write_text(MATRIX)
    first = (
        Command(("tune", "--seed", "5", "--quiet", "--metric", "BLEU"), exact=False),
        Command(("tune", "--seed", "5", "two words", "{here}/x"), code=2),
    )
    assert read_rows(tmp_path / "matrix") == [
        Row("first", first, {"more": "a b\nc\n"}),
        Row("second", (Command(("/bin/true",)),)),
    ]


def test_the_matrix_covers_all_algorithms_and_launchers(tmp_path: Path) -> None:
    words = {word for row in read_rows() for each in row.commands for word in each.words}
    assert algorithms().keys() <= words
    mosesplug = Path(sys.executable).with_name("mosesplug")
    subprocess.run([mosesplug, "install-tools", tmp_path], stdout=subprocess.DEVNULL, check=True)
    launchers = {f"tools/{path.name}" for path in tmp_path.iterdir()}
    assert launchers <= {found for word in words for found in re.findall(r"tools/[\w.-]+", word)}


def test_stored_values_are_of_rows() -> None:
    assert set(ROWS) == read_values().keys()
    assert [row.name for name in ROWS for row in matching_rows([name])] == list(ROWS)
