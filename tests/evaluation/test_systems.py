"""Working directories in the place of files of translations, and of stores."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mosesplug.errors import DataError, StoreError, UsageError
from mosesplug.evaluation.comparison import System, find_tuned_translations, parse_systems
from mosesplug.tuning.workdir.stores import find_store


def a_run(directory: Path, decoded: int | None) -> Path:
    (directory / "nbests.lmdb").mkdir(parents=True)
    summary = {"result": {"decoded_in_iteration": decoded}}
    (directory / "summary.json").write_text(json.dumps(summary))
    if decoded:
        (directory / f"run{decoded}.out").write_text("a\n")
    return directory


def several(directory: Path) -> Path:
    for number, decoded in ((2, 1), (1, 3), (10, 2)):
        a_run(directory / f"run.{number}", decoded)
    (directory / "runs.json").write_text("{}")
    (directory / "run.4").mkdir()  # not begun
    return directory


def test_directories_provide_their_tuned_translations(tmp_path: Path) -> None:
    one, many = a_run(tmp_path / "one", 2), several(tmp_path / "many")
    (tmp_path / "plain").write_text("a\n")
    assert parse_systems([f"base={one}", f"new={many}", f"mixed={tmp_path / 'plain'},{one}"]) == [
        System("base", (one / "run2.out",)),
        System(
            "new",
            tuple(many / f"run.{n}" / f"run{i}.out" for n, i in ((1, 3), (2, 1), (10, 2))),
        ),
        System("mixed", (tmp_path / "plain", one / "run2.out")),
    ]
    with pytest.raises(UsageError, match="SYSTEM nowhere: No such file"):
        parse_systems(["base=nowhere", str(one)])


def test_a_run_without_such_translations_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="was not translated with the final weights"):
        find_tuned_translations(a_run(tmp_path / "one", None))
    with pytest.raises(DataError, match="is not the working directory of a finished run"):
        find_tuned_translations(tmp_path)


def test_a_store_in_a_directory_of_several_runs_must_be_named(tmp_path: Path) -> None:
    many = several(tmp_path / "many")
    with pytest.raises(StoreError, match=r"holds 3 runs.*many/run\.1, .*run\.2, .*run\.10$"):
        find_store(many)
