"""The extractor beside Moses' own, on several lists."""

from __future__ import annotations

import filecmp
import subprocess
from pathlib import Path

import pytest

from mosesplug.cli.moses.extractor import main


@pytest.mark.parametrize("flags", [[], ["--binary"], ["--allow-duplicates"]])
def test_several_lists(
    moses_home: Path,
    multi30k: Path,
    short_lists: list[Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
) -> None:
    """Files of an earlier iteration, and two lists that repeat its lines and each other's."""
    monkeypatch.chdir(tmp_path)
    lists = [str(path) for path in short_lists]
    common = ["-r", str(multi30k / "text" / "dev.en"), *flags]
    steps = [
        [*common, "-n", lists[0], "-F", "{}.f1", "-S", "{}.s1"],
        [*common, "-n", ",".join(lists), "-F", "{}.f2", "-S", "{}.s2"],
        [
            *(*common, "-n", ",".join(lists[1:]), "-E", "{}.f1", "-R", "{}.s1"),
            *("-F", "{}.f3", "-S", "{}.s3"),
        ],
    ]
    program = str(moses_home / "bin" / "extractor")
    for step in steps:
        theirs = [program, *(word.format("moses") for word in step)]
        subprocess.run(theirs, check=True, capture_output=True)
        with pytest.raises(SystemExit) as caught:
            main([word.format("ours") for word in step])
        assert caught.value.code == 0
    for name in ("f1", "s1", "f2", "s2", "f3", "s3"):
        assert filecmp.cmp(f"ours.{name}", f"moses.{name}", shallow=False), name
