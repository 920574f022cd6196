"""Lists as files that workers map, and the shards that a worker prepared.

The files are written once, to a directory that all workers see. Nothing depends on what a worker
keeps: one that lacks a shard prepares it again, with the same result.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.features import FeatureSpace
from mosesplug.optimizers.lists.shards import ListShard
from mosesplug.scratch import ScratchDirectory
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning_set import SparseRows, TuningSet

_ARRAYS = ("sentence_ids", "offsets", "dense", "stats", "lengths")
_SPARSE = ("indptr", "indices", "data")


@contextmanager
def open_lists(tuning_set: TuningSet, sharding: Sharding) -> Iterator[TuningSet | str]:
    """Yield lists that workers can read: in memory, or the directory of their files."""
    if not sharding.elsewhere:
        yield tuning_set
        return
    with ScratchDirectory(directory=sharding.directory) as directory:
        write_lists(tuning_set, directory)
        yield directory


def write_lists(tuning_set: TuningSet, directory: str | PathLike[str]) -> None:
    """Write a tuning set to an empty directory for workers to map, one file per array."""
    folder = Path(directory)
    for name in _ARRAYS:
        np.save(folder / f"{name}.npy", getattr(tuning_set, name))
    if tuning_set.sentence_weights is not None:
        np.save(folder / "sentence_weights.npy", tuning_set.sentence_weights)
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
            "workers see ({--shard-directory})."
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
    if (folder / "sentence_weights.npy").exists():
        arrays["sentence_weights"] = read("sentence_weights")
    return TuningSet(space=space, sparse=sparse, **arrays)


@dataclass(frozen=True)
class ShardRecipe:
    """The files and the function from which a worker prepares a shard.

    Attributes:
        directory: the directory of the lists, as ``write_lists`` has written them.
        preparation: its number in the directory; a worker keeps the last one of each shard.
        sentences: the first position, and one past the last one.
        blocks: see ``ListShard``.
        make: see ``ListShards.prepare``.
        settings: arguments of ``make``.
        rows: names of the arrays that ``make`` gets.
    """

    directory: str
    preparation: int
    number: int
    sentences: tuple[int, int]
    blocks: NDArray[np.int64]
    make: Callable[..., Any]
    settings: Mapping[str, Any]
    rows: tuple[str, ...]

    def prepare(self) -> Any:
        """Map the files and prepare the shard."""
        lists = read_lists(self.directory)
        first, last = (int(lists.offsets[position]) for position in self.sentences)
        rows = {
            name: np.load(self.path(name), mmap_mode="r", allow_pickle=False)[first:last]
            for name in self.rows
        }
        shard = ListShard(lists.view_sentences(*self.sentences), self.blocks)
        return self.make(shard, **self.settings, **rows)

    def path(self, name: str) -> Path:
        """Return the file of an array with a row for each hypothesis."""
        return Path(self.directory, f"rows{self.preparation}_{name}.npy")


@dataclass
class _Entry:
    """The last preparation of a shard; its lock is held while it is made."""

    preparation: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    states: list[Any] = field(default_factory=list)


_PREPARED: dict[tuple[str, int], _Entry] = {}
"""The shards of this process, by directory and number."""

_LOCK = threading.Lock()


def work_on_shard(recipe: ShardRecipe, work: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``work(state, *arguments)`` of a shard; prepare it if necessary."""
    key = recipe.directory, recipe.number
    with _LOCK:
        entry = _PREPARED.get(key)
        if entry is None or entry.preparation != recipe.preparation:
            entry = _PREPARED[key] = _Entry(recipe.preparation)
    with entry.lock:
        if not entry.states:
            entry.states.append(recipe.prepare())
    return work(entry.states[0], *arguments)


def forget_shards() -> None:
    """Forget the shards whose files were removed."""
    with _LOCK:
        for key in [key for key in _PREPARED if not Path(key[0]).exists()]:
            del _PREPARED[key]
