"""Shards of lists that exist: in memory for threads, in files for other processes.

For other processes the lists are written once, as plain arrays, to a directory that all workers
see. A worker maps the files and reads what its batches need. So an epoch sends no lists, and a
worker that replaces a dead one finds them too.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.epochs import EpochReport, StoredSource
from mosesplug.optimizers.online.learner import BatchSource, Learner
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.executors import StopSignal
from mosesplug.tuning.parallel.shards import Shard, ShardSource
from mosesplug.tuning_set import Batch, SparseRows, TuningSet

__all__ = ["FiledShard", "SharedShard", "open_shards", "read_lists", "write_lists"]

_ARRAYS = ("sentence_ids", "offsets", "dense", "stats", "lengths")
_SPARSE = ("indptr", "indices", "data")


@dataclass(frozen=True)
class _StoredShardSource:
    """The part of a source that belongs to a shard; a ``ShardSource``."""

    source: BatchSource
    sentences: NDArray[np.int64]

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        return self.source.batch(sentences, weights)

    def restrict(self, learner: Learner) -> Learner:
        return learner  # no features appear, and the plan says which weights are active

    def finish(self, report: EpochReport, learner: Learner) -> EpochReport:
        return report


@dataclass(frozen=True)
class SharedShard:
    """Sentences of a source that all threads share.

    Attributes:
        source: several threads may call it at once; not closed here.
        sentences: int64, of this shard.
    """

    source: BatchSource
    sentences: NDArray[np.int64]

    @contextmanager
    def open(self, stop: StopSignal | None = None) -> Iterator[ShardSource]:
        """Open the shard's part of the source."""
        yield _StoredShardSource(self.source, self.sentences)


@dataclass(frozen=True)
class FiledShard:
    """Sentences of lists that ``write_lists`` has written to a directory.

    Attributes:
        directory: every worker sees it under this name.
        sentences: int64, of this shard.
    """

    directory: str
    sentences: NDArray[np.int64]

    @contextmanager
    def open(self, stop: StopSignal | None = None) -> Iterator[ShardSource]:
        """Map the lists."""
        yield _StoredShardSource(StoredSource(read_lists(self.directory)), self.sentences)


@contextmanager
def open_shards(
    tuning_set: TuningSet, parts: Sequence[NDArray[np.int64]], sharding: Sharding
) -> Iterator[list[Shard]]:
    """Open one shard per part, with the lists where the workers see them."""
    if not sharding.elsewhere:
        source = StoredSource(tuning_set)
        yield [SharedShard(source, part) for part in parts]
        return
    with tempfile.TemporaryDirectory(prefix="mosesplug-", dir=sharding.directory) as directory:
        write_lists(tuning_set, directory)
        yield [FiledShard(directory, part) for part in parts]


def write_lists(tuning_set: TuningSet, directory: str | PathLike[str]) -> None:
    """Write a tuning set to an empty directory for workers to map, one file per array.

    Raises:
        OSError: the disk is full, or the directory is not writable.
    """
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

    Raises:
        DataError: this process sees no lists there.
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
