"""The number of threads changes no file of a run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mosesplug.tuning import tune

pytestmark = pytest.mark.usefixtures("decoder_in_process")

Files = Callable[[Path], dict[str, bytes]]


@pytest.mark.parametrize(
    ("algorithm", "options"), [("mert", {"restarts": 3}), ("kbmira", {}), ("pro+mert", {})]
)
def test_files_do_not_depend_on_threads(
    toy: Any, left_by_run: Files, algorithm: str, options: dict[str, Any]
) -> None:
    left = []
    for name, threads in (("one", 1), ("two", 3)):  # names of one length, as they are in files
        settings = {"algorithm": algorithm, "options": options, "threads": threads}
        more = {"maximum_iterations": 2, "minimum_change": 0.0, "keep_extractor_files": True}
        tune(toy.configuration(name, optimization=settings, **more))
        left.append(left_by_run(toy.directory / name))
    one, two = left
    assert one.keys() == two.keys()
    assert [name for name in one if one[name] != two[name]] == []
    assert {"run2.features.dat", "run2.scores.dat", "moses.ini", "summary.json"} <= one.keys()
