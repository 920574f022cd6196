"""Lists as files that worker processes map.

They are written once, to a directory that all workers see.
"""

from __future__ import annotations

import json
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import SparseRows, TuningSet

_ARRAYS = ("sentence_ids", "offsets", "dense", "stats", "lengths")
_SPARSE = ("indptr", "indices", "data")


def write_lists(tuning_set: TuningSet, directory: str | PathLike[str]) -> None:
    """Write a tuning set to an empty directory for workers to map, one file per array."""
    folder = Path(directory)
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(tuning_set, name))
    if tuning_set.sparse is not None:
        for name in _SPARSE:
            np.save(folder / f"sparse_{name}.npy", getattr(tuning_set.sparse, name))
    space = {"groups": tuning_set.space.groups, "n_sparse": tuning_set.space.n_sparse}
    (folder / "features.json").write_text(json.dumps(space), encoding="ascii")


def read_lists(directory: str | PathLike[str]) -> TuningSet:
    """Map the tuning set that ``write_lists`` has written, read-only.

    Sparse features have columns but empty names: learners need none, and reading a million names
    would take longer than learning from a batch.
    """
    folder = Path(directory)
    try:
        known = json.loads((folder / "features.json").read_text(encoding="ascii"))
    except FileNotFoundError as error:
        raise DataError(
            f"{folder}: a worker does not find the n-best lists there. Choose a directory that all "
            "workers see (--shard-directory)."
        ) from error
    groups = tuple((name, width) for name, width in known["groups"])
    space = FeatureSpace(groups, ("",) * known["n_sparse"])

    def read(name: str) -> Any:
        path = folder / f"{name}.npy"
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))

    sparse = None
    if (folder / "sparse_indptr.npy").exists():
        sparse = SparseRows(**{name: read(f"sparse_{name}") for name in _SPARSE})
    arrays = {name: read(name) for name in _ARRAYS}
    return TuningSet(space=space, sparse=sparse, **arrays)
