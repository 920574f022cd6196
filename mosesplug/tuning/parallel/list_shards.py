"""Shards of lists for batch optimizers, in threads, processes or on a cluster.

Threads share the lists in memory. For other processes the lists are written to files, and each
worker prepares the shards that it is sent tasks of (``prepared``). Tasks of a shard go to the same
worker (``places``); if it dies, another one prepares the shard again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import OptimizerError, UsageError
from mosesplug.optimizers.lists.shards import (
    NO_ROWS,
    ListShard,
    ListShards,
    PreparedShards,
    map_states,
    split_into_blocks,
)
from mosesplug.optimizers.problem import Problem
from mosesplug.scratch import ScratchDirectory
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.list_files import write_lists
from mosesplug.tuning.parallel.places import Places, open_places
from mosesplug.tuning.parallel.prepared import ShardRecipe, work_on_shard
from mosesplug.tuning_set import TuningSet


@contextmanager
def open_list_shards(problem: Problem, sharding: Sharding) -> Iterator[ListShards]:
    """Open the shards of a problem until the block ends.

    Args:
        problem: lists, and how many threads or processes may work at once.

    Raises:
        UsageError: more shards than sentences, or no lists; or see ``open_places``.
    """
    if problem.source is not None or problem.search is not None or problem.derivations is not None:
        raise UsageError("search graphs have no shards: learn from n-best lists, or without shards")
    lists = problem.tuning_set
    if lists.n_hyps == 0:
        raise OptimizerError("no hypotheses to tune on; check the n-best lists")
    if sharding.shards > lists.n_sentences:
        raise UsageError(
            f"{sharding.shards} shards for {lists.n_sentences} sentences. Lower --shards."
        )
    parts = divide_lists(lists.offsets, sharding.shards)
    with ExitStack() as stack:
        places = stack.enter_context(open_places(sharding, len(parts), problem.threads))
        if not sharding.elsewhere:
            yield ThreadShards(lists, parts, places)
            return
        directory = stack.enter_context(ScratchDirectory(directory=sharding.directory))
        write_lists(lists, directory)
        yield FiledShards(lists.offsets, parts, places, directory)


@dataclass(frozen=True)
class ShardPart:
    """The sentences of a shard.

    Attributes:
        sentences: the first position, and one past the last one.
        blocks: int64 ``[n_blocks + 1]``; see ``ListShard``.
    """

    sentences: tuple[int, int]
    blocks: NDArray[np.int64]


def divide_lists(offsets: NDArray[np.int64], shards: int) -> tuple[ShardPart, ...]:
    """Divide lists into shards of whole blocks, with about as many hypotheses each.

    Args:
        offsets: int64 ``[n_sentences + 1]``, of at least one hypothesis.
        shards: the largest number of shards; there are fewer if some would have no hypotheses.
    """
    blocks = split_into_blocks(offsets, shards)
    starts = np.arange(shards + 1) * (len(blocks) - 1) // shards
    # A shard without hypotheses would have nothing to prepare: its sentences go to another one.
    rows = offsets[blocks[starts]]
    starts = starts[np.diff(rows, append=rows[-1] + 1) > 0]
    starts[0] = 0
    ends = zip(starts[:-1].tolist(), starts[1:].tolist(), strict=True)
    owned = (blocks[first : last + 1] for first, last in ends)
    return tuple(ShardPart((int(own[0]), int(own[-1])), own - own[0]) for own in owned)


def _bounds(parts: Sequence[ShardPart]) -> NDArray[np.int64]:
    return np.array([0, *(part.sentences[1] for part in parts)])


@dataclass(frozen=True)
class ThreadShards:
    """Shards in the memory of this process; implements ``ListShards``."""

    lists: TuningSet
    parts: Sequence[ShardPart]
    places: Places

    @property
    def offsets(self) -> NDArray[np.int64]:
        """The offsets of the lists."""
        return self.lists.offsets

    @property
    def bounds(self) -> NDArray[np.int64]:
        """The sentences where shards begin."""
        return _bounds(self.parts)

    def prepare(
        self,
        make: Callable[..., Any],
        settings: Mapping[str, Any] = NO_ROWS,
        rows: Mapping[str, NDArray[Any]] = NO_ROWS,
    ) -> PreparedShards:
        """Prepare all shards."""

        def prepare(part: ShardPart) -> Any:
            first, last = (int(self.offsets[position]) for position in part.sentences)
            own = {name: array[first:last] for name, array in rows.items()}
            shard = ListShard(self.lists.view_sentences(*part.sentences), part.blocks)
            return make(shard, **settings, **own)

        submitted = [
            self.places.submit(place, prepare, part) for place, part in enumerate(self.parts)
        ]
        return _PreparedThreads(self.places, _results(submitted))


@dataclass(frozen=True)
class _PreparedThreads:
    places: Places
    states: Sequence[Any]

    def map(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        tasks = enumerate(map_states(self.states, arguments))
        return _results([self.places.submit(place, work, *task) for place, task in tasks])


@dataclass(frozen=True)
class FiledShards:
    """Shards of lists in files, which workers prepare; implements ``ListShards``.

    Attributes:
        offsets: int64 ``[n_sentences + 1]``, of the lists of all shards.
        directory: the directory of the lists, as ``write_lists`` has written them; all workers see
            it.
    """

    offsets: NDArray[np.int64]
    parts: Sequence[ShardPart]
    places: Places
    directory: str
    _numbers: Iterator[int] = field(default_factory=count, repr=False, compare=False)

    @property
    def bounds(self) -> NDArray[np.int64]:
        """The sentences where shards begin."""
        return _bounds(self.parts)

    def prepare(
        self,
        make: Callable[..., Any],
        settings: Mapping[str, Any] = NO_ROWS,
        rows: Mapping[str, NDArray[Any]] = NO_ROWS,
    ) -> PreparedShards:
        """Write the rows; workers prepare a shard with its first task."""
        preparation = next(self._numbers)
        recipes = tuple(
            ShardRecipe(
                self.directory,
                preparation,
                number,
                part.sentences,
                part.blocks,
                make,
                dict(settings),
                tuple(rows),
            )
            for number, part in enumerate(self.parts)
        )
        for name, array in rows.items():
            np.save(recipes[0].path(name), array)
        return _PreparedFiles(self.places, recipes)


@dataclass(frozen=True)
class _PreparedFiles:
    places: Places
    recipes: Sequence[ShardRecipe]

    def map(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        tasks = enumerate(map_states(self.recipes, arguments))
        return _results(
            [
                self.places.submit(place, work_on_shard, recipe, work, *others)
                for place, (recipe, *others) in tasks
            ]
        )


def _results(submitted: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all tasks, and return their results or raise the first error."""
    wait(submitted, return_when=FIRST_EXCEPTION)
    return [task.result() for task in submitted]
