"""Test the selection of stored iterations."""

from __future__ import annotations

import pytest

from mosesplug.errors import UsageError
from mosesplug.learning.lists.stored import select_iterations


def test_iterations_are_ranges_or_the_newest() -> None:
    for text, numbers in {
        None: [1, 2, 3, 4], "2:3": [2, 3], ":2": [1, 2], "3:": [3, 4], "2": [2], "-3": [2, 3, 4],
        "-9": [1, 2, 3, 4], ":": [1, 2, 3, 4],
    }.items():  # fmt: skip
        assert select_iterations(text, 4) == numbers
    for text in ("0", "5", "3:2", "1:5", "0:2", "-0"):
        with pytest.raises(UsageError, match="the store has iterations 1 to 4"):
            select_iterations(text, 4)
    for text in ("x", "1:2:3", "--1", "1-2", ""):
        with pytest.raises(UsageError, match="must be A:B, N, or -N"):
            select_iterations(text, 4)
