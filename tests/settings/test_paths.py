"""Test the messages about missing files."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.errors import UsageError
from mosesplug.settings.paths import require_file, require_path, require_references


def test_existing_paths_are_returned_as_absolute_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "dev.en").touch()
    (tmp_path / "more.en0").touch()
    assert require_path(".", "--graphs") == tmp_path
    assert require_file("dev.en", "the input") == tmp_path / "dev.en"
    assert require_references("dev.en") == tmp_path / "dev.en"
    assert require_references("more.en") == tmp_path / "more.en"


def test_missing_file_is_reported_with_a_similar_name(tmp_path: Path) -> None:
    (tmp_path / "dev.en").touch()
    with pytest.raises(UsageError) as found:
        require_path(tmp_path / "dev.n", "--refs")
    missing = f"--refs {tmp_path / 'dev.n'}: No such file or directory"
    assert str(found.value) == f"{missing}. Did you mean dev.en?"


@pytest.mark.parametrize("name", ["xyzzy", "none/dev.en"])
def test_missing_file_without_a_similar_name(name: str, tmp_path: Path) -> None:
    (tmp_path / "dev.en").touch()
    with pytest.raises(UsageError, match=r"No such file or directory\. Check the name$"):
        require_path(tmp_path / name, "--init")


def test_directory_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"the input .* is not a file"):
        require_file(tmp_path, "the input")
