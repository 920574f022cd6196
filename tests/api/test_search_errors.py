"""Test the arguments of ``search_errors``."""

from __future__ import annotations

from pathlib import Path

import pytest

import mosesplug
from tests.results.analysis.test_search_errors import write_graphs


def test_invalid_arguments_are_named(tmp_path: Path) -> None:
    narrow, wide, references = write_graphs(tmp_path)
    with pytest.raises(mosesplug.UsageError, match="top is 0: give an integer of at least 1"):
        mosesplug.search_errors(narrow, references, top=0)
    with pytest.raises(mosesplug.UsageError, match="run is empty: give a run"):
        mosesplug.search_errors([], references)
    with pytest.raises(mosesplug.UsageError, match=r"run .*missing: No such file or directory"):
        mosesplug.search_errors(tmp_path / "missing", references)
    with pytest.raises(mosesplug.UsageError, match=r"wider .*missing: No such file or directory"):
        mosesplug.search_errors(narrow, references, wider=[wide, tmp_path / "missing"])
