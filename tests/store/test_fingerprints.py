"""Fingerprints, and the message about those that differ."""

from __future__ import annotations

from pathlib import Path

import pytest

from mosesplug.errors import StoreMismatch
from mosesplug.store import fingerprint_files
from mosesplug.store.fingerprints import check_fingerprints


def test_files_count_by_content_and_order(tmp_path: Path) -> None:
    for name, content in (("a", b"x"), ("b", b"y"), ("c", b"x"), ("d", b"xy"), ("e", b"")):
        tmp_path.joinpath(name).write_bytes(content)

    def of(names: str) -> str:
        return fingerprint_files(tmp_path / name for name in names)

    assert of("ab") == of("cb")
    different = ["", "a", "b", "ab", "ba", "d", "ed", "de", "aa"]
    assert len({of(names) for names in different}) == len(different)
    with pytest.raises(OSError, match="none"):
        fingerprint_files([tmp_path / "none"])


def test_every_difference_is_named() -> None:
    stored = {"input": "1", "references": "2", "configuration": "3"}
    assert check_fingerprints({}, stored, path="p") == stored
    assert check_fingerprints(stored, {"input": "1", "decoder": "4"}, path="p") == {
        **stored,
        "decoder": "4",
    }
    with pytest.raises(StoreMismatch) as caught:
        check_fingerprints(
            stored, {"input": "7", "references": "2", "configuration": "8"}, path="p"
        )
    assert str(caught.value) == (
        "the n-best store at p was made with different input and different configuration (input: "
        "stored 1, given 7; configuration: stored 3, given 8). Use the same as before, or "
        "start in an empty directory"
    )
    replaced = check_fingerprints(stored, {"input": "7"}, replace=["input"], path="p")
    assert replaced == {**stored, "input": "7"}
