"""The store: all n-best lists of a tuning run in one database.

The database is transactional and memory-mapped.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mosesplug.store.batches import MergedBatches
    from mosesplug.store.fingerprints import fingerprint_files
    from mosesplug.store.graph_records import StoredGraphs
    from mosesplug.store.nbest_store import NBestStore
    from mosesplug.store.records import KbestRecord
    from mosesplug.store.stored import IterationRecord
    from mosesplug.store.views import (
        GraphReport,
        IngestReport,
        IterationList,
        IterationLists,
        OpenIteration,
    )

__all__ = [
    "GraphReport",
    "IngestReport",
    "IterationList",
    "IterationLists",
    "IterationRecord",
    "KbestRecord",
    "MergedBatches",
    "NBestStore",
    "OpenIteration",
    "StoredGraphs",
    "fingerprint_files",
]

# Loaded on first access: code that needs only the kernels does not load the database.
_MODULES = {
    "GraphReport": "views",
    "IngestReport": "views",
    "IterationList": "views",
    "IterationLists": "views",
    "IterationRecord": "stored",
    "KbestRecord": "records",
    "MergedBatches": "batches",
    "NBestStore": "nbest_store",
    "OpenIteration": "views",
    "StoredGraphs": "graph_records",
    "fingerprint_files": "fingerprints",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
