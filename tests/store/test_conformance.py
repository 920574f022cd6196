"""The LMDB store passes the suite for stores."""

from __future__ import annotations

from pathlib import Path

from mosesplug.store import NBestStore
from tests.store.conformance import StoreConformance


class TestNBestStore(StoreConformance):
    def open(self, path: Path, *, writable: bool) -> NBestStore:
        return NBestStore.open(path, writable=writable)


class TestTinyMap(StoreConformance):
    """A map that must grow again and again."""

    def open(self, path: Path, *, writable: bool) -> NBestStore:
        return NBestStore.open(path, writable=writable, map_size=1 << 15)
