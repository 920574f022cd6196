"""Shards that a worker process has prepared from files and keeps.

Nothing depends on what is kept: a worker that lacks a shard prepares it again, with the same
result.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.optimizers.lists.shards import ListShard
from mosesplug.tuning.parallel.list_files import read_lists


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


@dataclass(frozen=True)
class _Kept:
    """The shards of this process, by directory and number."""

    entries: dict[tuple[str, int], _Entry] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)


@cache
def _kept() -> _Kept:
    return _Kept()


def work_on_shard(recipe: ShardRecipe, work: Callable[..., Any], *arguments: Any) -> Any:
    """Return ``work(state, *arguments)`` of a shard; prepare it if necessary."""
    kept, key = _kept(), (recipe.directory, recipe.number)
    with kept.lock:
        entry = kept.entries.get(key)
        if entry is None or entry.preparation != recipe.preparation:
            entry = kept.entries[key] = _Entry(recipe.preparation)
    with entry.lock:
        if not entry.states:
            entry.states.append(recipe.prepare())
    return work(entry.states[0], *arguments)


def forget_shards() -> None:
    """Forget the shards whose files were removed."""
    kept = _kept()
    with kept.lock:
        for key in [key for key in kept.entries if not Path(key[0]).exists()]:
            del kept.entries[key]
