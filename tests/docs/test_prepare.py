"""The script that makes the example files replaces nothing, and says what is wrong."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.docs.clones import Clones


def prepare(
    clones: Clones, directory: Path, *words: str, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    script = clones.path(3) / "moses-config" / "demo" / "prepare"
    return subprocess.run(
        ["/bin/sh", str(script), *words],
        cwd=directory,
        env=clones.environment if environment is None else environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_files_are_made_once_and_not_replaced(clones: Clones, tmp_path: Path) -> None:
    assert prepare(clones, tmp_path, "2").returncode == 0
    made = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    assert made["dev.src"].count(b"\n") == made["test.ref1"].count(b"\n") == 2
    assert prepare(clones, tmp_path, "2").returncode == 0
    (tmp_path / "dev.src").write_text("mine\n")
    done = prepare(clones, tmp_path, "2")
    assert done.returncode == 1
    assert done.stderr.startswith("dev.src exists with other contents.")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        **made,
        "dev.src": b"mine\n",
    }


@pytest.mark.parametrize("word", ["rum", "0", "-1", ""])
def test_unknown_words_are_refused(word: str, clones: Clones, tmp_path: Path) -> None:
    done = prepare(clones, tmp_path, word)
    assert (done.returncode, done.stderr.split()[0]) == (2, "usage:")
    assert not any(tmp_path.iterdir())


def test_missing_programs_are_named(clones: Clones, tmp_path: Path) -> None:
    done = prepare(clones, tmp_path, environment={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 1
    assert done.stderr.startswith("mosesplug is not on PATH.")
    assert not any(tmp_path.iterdir())
