"""Every n-best list of a tuning run in one transactional, memory-mapped place."""

from __future__ import annotations

from mosesplug.store.fingerprints import fingerprint_bytes, fingerprint_files
from mosesplug.store.nbest_store import NBestStore
from mosesplug.store.records import KbestRecord
from mosesplug.store.state import IterationRecord
from mosesplug.store.views import IngestReport, IterationList, IterationLists

__all__ = [
    "IngestReport",
    "IterationList",
    "IterationLists",
    "IterationRecord",
    "KbestRecord",
    "NBestStore",
    "fingerprint_bytes",
    "fingerprint_files",
]
