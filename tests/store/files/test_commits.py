"""Test that a commit that fails in its last write leaves the meta pages as they were."""

from __future__ import annotations

from pathlib import Path

import lmdb
import pytest

from mosesplug.store import NBestStore
from mosesplug.store.files.commits import undo_failed_commit
from tests.store.files.test_environment import add
from tests.store.toys import Hypothesis


@pytest.mark.parametrize("error", [lmdb.DiskError("no"), lmdb.MapFullError("full")])
def test_meta_pages_are_written_back(error: lmdb.Error, tmp_path: Path) -> None:
    with NBestStore.open(tmp_path, writable=True) as store:
        add(store, [Hypothesis(0, b"a")])
    data = tmp_path / "data.mdb"
    before = data.read_bytes()

    def fail() -> None:
        with data.open("rb+") as file:
            file.seek(4096 + 40)  # the trees of the second meta page
            file.write(b"\0" * 16)
            file.seek(3 * 4096)  # a page of data
            file.write(b"\1" * 16)
        raise error

    with pytest.raises(lmdb.Error), undo_failed_commit(data, 4096):
        fail()
    after = data.read_bytes()
    assert after[: 2 * 4096] == before[: 2 * 4096]
    assert after[2 * 4096 :] != before[2 * 4096 :]
