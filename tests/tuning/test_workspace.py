"""The working directory."""

from __future__ import annotations

from pathlib import Path

import pytest

from formats.text import atomic_write
from mosesplug.errors import DataError
from mosesplug.tuning.workspace import Workspace


def test_names_are_the_scripts(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, 100)
    assert workspace.nbest(3).name == "run3.best100.out"
    assert workspace.nbest_packed(3).name == "run3.best100.out.gz"
    assert workspace.samples(3, 7).name == "run3.lsamp7.out"
    assert workspace.run(3, "moses.ini") == tmp_path / "run3.moses.ini"


def test_clearing(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, 100)
    own = ["run1.dense", "run1.best100.out.gz", "run12.out", "moses.ini", "finished_step.txt"]
    others = ["features.list", "filtered", "runs.txt", "run1"]
    for name in own + others:
        (tmp_path / name).write_text("")
    workspace.store.mkdir()
    (workspace.store / "data.mdb").write_text("")
    workspace.clear(keep_list=True)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted([*others, "run1.best100.out.gz"])
    workspace.clear(keep_list=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(others)


def test_one_run_at_a_time_and_nothing_left_of_a_killed_one(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "new" / "work", 100)
    with workspace.locked(), pytest.raises(DataError, match="in use"), workspace.locked():
        pass
    (tmp_path / "new" / "work" / ".keep").write_text("")
    with atomic_write(workspace.run(1, "dense")):
        (unfinished,) = workspace.directory.glob(".run1*")
        leftover = unfinished.read_bytes()
    unfinished.write_bytes(leftover)
    with workspace.locked():
        assert not unfinished.exists()
        assert (workspace.directory / ".keep").exists()
