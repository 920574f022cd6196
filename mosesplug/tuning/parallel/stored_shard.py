"""Shards of lists that are there already: in memory for threads, in files for other processes.

For other processes the lists are written once, as plain arrays, into a directory that all workers
see; a worker maps them, and reads what its batches need. So an epoch sends no lists, and a worker
that takes the place of a dead one finds them too.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.online.epochs import StoredSource
from mosesplug.optimizers.online.learner import Source
from mosesplug.tuning_set import Batch, SparseRows, TuningSet

__all__ = ["FiledShard", "SharedShard", "read_lists", "write_lists"]

_ARRAYS = ("sentence_ids", "offsets", "dense", "stats", "lengths")
_SPARSE = ("indptr", "indices", "data")


@dataclass(frozen=True)
class _Part:
    """Some sentences of a source, which gives no batch any more once ``stopped`` is set."""

    source: Source
    sentences: NDArray[np.int64]
    stopped: Event

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        if self.stopped.is_set():
            raise CancelledError
        return self.source.batch(sentences, weights)


@dataclass(frozen=True)
class SharedShard:
    """Sentences of a source that all threads share.

    Attributes:
        source: may be asked by several threads at once; not closed here.
        sentences: int64, of this shard.
        stopped: set it, and who learns from this shard stops at the next batch.
    """

    source: Source
    sentences: NDArray[np.int64]
    stopped: Event = field(default_factory=Event)

    @contextmanager
    def open(self) -> Iterator[Source]:
        """The source, as far as it is this shard's."""
        yield _Part(self.source, self.sentences, self.stopped)


@dataclass(frozen=True)
class FiledShard:
    """Sentences of lists that ``write_lists`` has put into a directory.

    Attributes:
        directory: seen by the worker under this name.
        sentences: int64, of this shard.
    """

    directory: str
    sentences: NDArray[np.int64]

    @contextmanager
    def open(self) -> Iterator[Source]:
        """The lists, mapped."""
        yield _Part(StoredSource(read_lists(self.directory)), self.sentences, Event())


def write_lists(tuning_set: TuningSet, directory: str | PathLike[str]) -> None:
    """Put a tuning set into an empty directory, one file an array, to be mapped by others.

    Raises:
        OSError: there is no room, or no right to write.
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
    """What ``write_lists`` wrote; arrays are views on read-only maps of the files.

    Sparse features have their columns and no names: learners need none, and a million names would
    take longer to read than a batch to learn from.

    Raises:
        DataError: nothing is there, as this process sees it.
    """
    folder = Path(directory)
    try:
        known = json.loads((folder / "features.json").read_text(encoding="ascii"))
    except FileNotFoundError as error:
        raise DataError(
            f"a worker sees no lists in {folder}; give a directory that all workers see "
            "(--shard-directory)"
        ) from error
    groups = tuple((name, width) for name, width in known["groups"])
    space = FeatureSpace(groups, ("",) * known["n_sparse"])

    def mapped(name: str) -> Any:
        path = folder / f"{name}.npy"
        return np.asarray(np.load(path, mmap_mode="r", allow_pickle=False))

    sparse = None
    if (folder / "sparse_indptr.npy").exists():
        sparse = SparseRows(**{name: mapped(f"sparse_{name}") for name in _SPARSE})
    arrays = {name: mapped(name) for name in _ARRAYS}
    return TuningSet(space=space, sparse=sparse, **arrays)
