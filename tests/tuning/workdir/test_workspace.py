"""The working directory."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from formats.text import atomic_write
from mosesplug.errors import DataError, DecoderError, UsageError
from mosesplug.tuning.workdir.workspace import Workspace


def test_names_are_the_scripts(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path, 100)
    assert workspace.nbest(3).name == "run3.best100.out"
    assert workspace.packed_nbest(3).name == "run3.best100.out.gz"
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


def test_killed_while_clearing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At any step there is all of a run, as far as continuing needs it, or nothing that tells."""
    own = ["run1.dense", "run2.weights.txt", "finished_step.txt", "moses.ini", "summary.json"]
    steps: list[str] = []
    limit = 0

    def killed(name: str) -> Callable[..., None]:
        do = getattr(os, name)

        def step(*arguments: Any, **options: Any) -> None:
            steps.append(name)
            if len(steps) == limit:
                raise KeyboardInterrupt
            do(*arguments, **options)

        return step

    for name in ("unlink", "rename", "rmdir"):
        monkeypatch.setattr(os, name, killed(name))
    for number in range(1, 30):
        workspace = Workspace(tmp_path / f"run{number}", 100)
        workspace.store.mkdir(parents=True)
        for path in ("nbests.lmdb/data.mdb", "nbests.lmdb/lock.mdb", "features.list", *own):
            (workspace.directory / path).write_text(path)
        steps.clear()
        limit = number
        try:
            workspace.clear(keep_list=False)
        except KeyboardInterrupt:
            pass
        else:
            break
        finally:
            limit = 0
        if workspace.finished_step.exists() or workspace.store.exists():
            stored = sorted(path.name for path in workspace.store.iterdir())
            assert stored == ["data.mdb", "lock.mdb"], steps
        with workspace.lock():
            workspace.clear(keep_list=False)
        left = sorted(path.name for path in workspace.directory.iterdir())
        assert left == ["features.list", "tuning.lock"], steps
    assert "rename" in steps
    assert 8 <= number < 29


def test_one_run_at_a_time_and_no_leftovers_of_a_killed_one(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "new" / "work", 100)
    with workspace.lock(), pytest.raises(DataError, match="in use"), workspace.lock():
        pass
    (tmp_path / "new" / "work" / ".keep").write_text("")
    written = [workspace.run(1, "dense"), workspace.packed_nbest(2), workspace.features_list]
    written += [workspace.finished_step, workspace.tuned_config, workspace.tuned_sparse]
    written += [workspace.summary, workspace.filtered_model.with_name("filtered.made-from.json")]
    drafts = []
    for path in written:
        with atomic_write(path):
            (draft,) = workspace.directory.glob(f".{path.name}*")
        draft.write_bytes(b"half")
        drafts.append(draft)
    with workspace.lock():
        assert not [draft for draft in drafts if draft.exists()]
        assert (workspace.directory / ".keep").exists()


def ended(workspace: Workspace, error: Exception, *written: str) -> None:
    """A run that writes some files, and ends with an error."""
    with workspace.lock():
        for name in written:
            (workspace.directory / name).parent.mkdir(exist_ok=True)
            (workspace.directory / name).write_text("")
        raise error


@pytest.mark.parametrize("name", ["work", "new/deep"])
def test_a_rejection_leaves_nothing(tmp_path: Path, name: str) -> None:
    (tmp_path / "work").mkdir()
    workspace = Workspace(tmp_path / name, 100)
    features = ("features.list", "features.list.err", "features.list.made-from.json")
    with pytest.raises(UsageError):
        ended(workspace, UsageError("no such feature"), *features, "nbests.lmdb/data.mdb")
    assert [path.name for path in tmp_path.rglob("*")] == ["work"]


def test_files_that_explain_a_failure_are_kept(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "work", 100)
    with pytest.raises(DecoderError):
        ended(workspace, DecoderError("died"), "features.list.err")
    assert (workspace.directory / "features.list.err").exists()


def test_existing_files_and_started_runs_are_kept(tmp_path: Path) -> None:
    for name, before, written in (("one", "mine", "features.list"), ("two", None, "run1.dense")):
        workspace = Workspace(tmp_path / name, 100)
        workspace.directory.mkdir()
        if before is not None:
            (workspace.directory / before).write_text("")
        with pytest.raises(UsageError):
            ended(workspace, UsageError("no"), written)
        assert (workspace.directory / written).exists()


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_is_not_a_working_directory(name: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    workspace = Workspace(tmp_path / name, 100)
    with (
        pytest.raises(UsageError, match=r"is a file, not a directory. Choose another"),
        workspace.lock(),
    ):
        pass
