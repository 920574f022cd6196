"""Lists in shards, for optimizers that need only sums over sentences.

Such an optimizer maps functions over the shards. A shard is some consecutive sentences.
``ListShards.prepare`` makes what the functions need of each shard once, such as another layout of
its features; ``PreparedShards.map`` then calls a function on each shard and returns the results in
order. Functions are pure, so that a shard may be in any thread, process or machine, and may be
prepared again if its worker died.

The lists of this process are one shard (``WholeLists``). Shards elsewhere are in
``tuning.parallel.list_shards``. An optimizer does not know which it has. Shards begin where blocks
of sentences do, and sums are taken block by block in their order, so results do not depend on the
number of shards.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets
from mosesplug.tuning_set import TuningSet

BLOCKS = 16
"""Maximum number of blocks, unless there are more shards; more threads than this are idle."""

SMALLEST_BLOCK = 4096
"""Least hypotheses of a block; with fewer, a call takes longer than its work."""

NO_ROWS: Mapping[str, NDArray[Any]] = MappingProxyType({})


@dataclass(frozen=True)
class ListShard:
    """Some consecutive sentences of the lists.

    Attributes:
        lists: their hypotheses; arrays may be read-only views.
        blocks: int64 ``[n_blocks + 1]``, positions in the shard where blocks begin and the last
            one ends.
        threads: maximum number of threads that work on the shard.
    """

    lists: TuningSet
    blocks: NDArray[np.int64]
    threads: int = 1


class PreparedShards(Protocol):
    """Shards of which each has a state, from ``ListShards.prepare``."""

    def map(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        """Return ``work(state, ...)`` of all shards, in order.

        Args:
            work: a pure function at the top level of a module. It does not change the state,
                except for what saves time.
            arguments: each yields the argument of one shard after the other; ``itertools.repeat``
                gives all of them the same.
        """


class ListShards(Protocol):
    """The shards of a problem's lists."""

    @property
    def offsets(self) -> NDArray[np.int64]:
        """int64 ``[n_sentences + 1]``, of the lists of all shards."""

    @property
    def total_weight(self) -> float:
        """``TuningSet.total_weight`` of the lists of all shards."""

    @property
    def bounds(self) -> NDArray[np.int64]:
        """int64 ``[n_shards + 1]``; the sentences where shards begin and the last ends."""

    def prepare(
        self,
        make: Callable[..., Any],
        settings: Mapping[str, Any] = NO_ROWS,
        rows: Mapping[str, NDArray[Any]] = NO_ROWS,
    ) -> PreparedShards:
        """Prepare ``make(shard, **settings, **rows)`` of each ``ListShard``.

        Args:
            make: a pure function at the top level of a module.
            settings: arguments that are the same for all shards.
            rows: arrays of one row for each hypothesis; ``make`` gets the rows of its shard.
        """


@dataclass(frozen=True)
class WholeLists:
    """The lists of this process as one shard; implements ``ListShards``."""

    lists: TuningSet
    threads: int = 1

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The offsets of the lists."""
        return self.lists.offsets

    @property
    def total_weight(self) -> float:
        """Sum of the weights of non-empty sentences."""
        return self.lists.total_weight

    @property
    def bounds(self) -> NDArray[np.int64]:
        """All sentences."""
        return np.array([0, self.lists.n_sentences])

    def prepare(
        self,
        make: Callable[..., Any],
        settings: Mapping[str, Any] = NO_ROWS,
        rows: Mapping[str, NDArray[Any]] = NO_ROWS,
    ) -> PreparedShards:
        """Prepare the lists."""
        shard = ListShard(self.lists, split_into_blocks(self.lists.offsets), self.threads)
        return _PreparedHere((make(shard, **settings, **rows),))


@dataclass(frozen=True)
class _PreparedHere:
    states: Sequence[Any]

    def map(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        return [work(*own) for own in map_states(self.states, arguments)]


def map_states(
    states: Sequence[Any], arguments: Sequence[Iterable[Any]]
) -> Iterable[tuple[Any, ...]]:
    """Return the state and the arguments of each shard; the arguments may be endless."""
    return zip(states, *arguments, strict=False)


def split_into_blocks(offsets: Offsets, at_least: int = 1) -> NDArray[np.int64]:
    """Return the sentences where blocks begin and the last ends, int64.

    The result is ``[n_blocks + 1]``. Blocks have about as many hypotheses each; there may be blocks
    without sentences.
    """
    n_hyps = int(offsets[-1])
    n_blocks = max(at_least, min(BLOCKS, n_hyps // SMALLEST_BLOCK))
    rows = np.linspace(0, n_hyps, n_blocks + 1)
    blocks = np.searchsorted(offsets[:-1], rows).astype(np.int64)
    blocks[0], blocks[-1] = 0, len(offsets) - 1
    return blocks
