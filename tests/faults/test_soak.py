"""Test the growth criteria of the soak test."""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from tests.long_running import soak
from tests.long_running.soak import Soaked


def soaked(kind: str, peaks: list[float], stored: list[int] | None = None) -> Soaked:
    n = len(peaks)
    return Soaked(
        kind=kind,
        peaks=np.array(peaks),
        hypotheses=np.full(n, 100),
        stored=np.array(stored or [5000] * n),
        store_bytes=1,
        resume_seconds=1.0,
        seconds=1.0,
        verified="",
    )


def test_memory_must_be_flat_after_the_fifth_iteration() -> None:
    assert not soaked("window", [50, 80, 99, 90, 100, 104, 99, 103]).problems()
    (problem,) = soaked("online", [50, 80, 99, 90, 100, 104, 99, 106]).problems()
    assert "grew by 6.0% after iteration 5" in problem


def test_only_merged_lists_may_grow() -> None:
    line = [100.0 + 20 * number for number in range(20)]
    assert not soaked("all", line).problems()
    leak = [100.0 + 20 * number + 2 * number**2 for number in range(20)]
    (problem,) = soaked("all", leak).problems()
    assert "memory grew" in problem


def test_the_store_must_grow_by_the_new_hypotheses() -> None:
    (problem,) = soaked("window", [100] * 8, [9000, *[5000] * 4, *[5600] * 3]).problems()
    assert "bytes for each new hypothesis: 50, then" in problem


def started(script: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sh", "-c", script])


def test_an_iteration_that_an_earlier_run_had_begun_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that says so is there beforehand, and has to be another one."""
    begun = tmp_path / "run8.dense"
    begun.write_text("of a run that was killed")
    script = f"sleep 0.1; echo new > {tmp_path}/new; mv {tmp_path}/new {begun}; exec sleep 60"
    monkeypatch.setattr(soak, "_start", lambda arguments: started(script))
    assert soak._resume_seconds(tmp_path, [], 8) > 0.0
    assert begun.read_text() == "new\n"
    monkeypatch.setattr(soak, "_start", lambda arguments: started("exit 3"))
    with pytest.raises(RuntimeError, match="began no iteration 8: 3"):
        soak._resume_seconds(tmp_path, [], 8)


def test_a_continued_run_has_the_same_settings() -> None:
    words = soak._words("online", 50, 2000)
    assert words[-2:] == ["--option=batch=500", "--epochs=50"]
    assert soak._words("online", 51, 2000) == [*words[:-1], "--epochs=51"]
