"""Read a store beside a tuner for a moment; ``tests.long_running.readers`` does it for a minute."""

from __future__ import annotations

from pathlib import Path

from tests.long_running.readers import Findings, read_beside
from tests.long_running.system import make_toy


def test_a_sample(tmp_path: Path) -> None:
    found = read_beside(
        make_toy(tmp_path / "system"),
        tmp_path,
        "online",
        readers=1,
        seconds=0.0,
        commands=("nbest ls", "nbest verify", "nbest export"),
        second_tuner=False,
    )
    assert not found.problems
    assert sum(found.commands.values()) == 3
    assert found.iterations >= 1


def test_changes_are_detected() -> None:
    findings = Findings()
    findings.same("list 1", b"lists")
    findings.same("list 1", b"lists")
    assert not findings.problems
    findings.same("list 1", b"lis")
    assert findings.problems
