"""Shards of lists for batch optimizers, in threads, processes or on a cluster.

Threads share the lists in memory. For other processes the lists are written to files, and each
worker prepares the shards that it is sent tasks of. Tasks of a shard go to the same worker; if it
dies, another one prepares the shard again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mosesplug.arrays import Offsets
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
from mosesplug.settings.sharding import Sharding
from mosesplug.tuning.parallel.executors import Places, open_places
from mosesplug.tuning.parallel.list_files import ShardRecipe, open_lists, work_on_shard
from mosesplug.tuning_set import TuningSet


@contextmanager
def open_list_shards(problem: Problem, sharding: Sharding) -> Iterator[ListShards]:
    """Open the shards of a problem until the block ends.

    Args:
        problem: lists, and how many threads or processes may work at once.

    Raises:
        UsageError: more shards than sentences, or no lists; or see ``open_places``.
    """
    if "lists" not in problem.candidates.answers:
        raise UsageError("search graphs have no shards: learn from n-best lists, or without shards")
    lists = problem.tuning_set
    if lists.n_hyps == 0:
        raise OptimizerError("no hypotheses to tune on; check the n-best lists")
    if sharding.shards > lists.n_sentences:
        raise UsageError(
            f"{sharding.shards} shards for {lists.n_sentences} sentences. Lower {{--shards}}."
        )
    parts = divide_lists(lists.offsets, sharding.shards)
    with ExitStack() as stack:
        places = stack.enter_context(open_places(sharding, len(parts), problem.threads))
        yield OpenShards(
            lists.offsets,
            lists.total_weight,
            parts,
            places,
            stack.enter_context(open_lists(lists, sharding)),
        )


@dataclass(frozen=True)
class ShardPart:
    """The sentences of a shard.

    Attributes:
        sentences: the first position, and one past the last one.
        blocks: int64 ``[n_blocks + 1]``; see ``ListShard``.
    """

    sentences: tuple[int, int]
    blocks: NDArray[np.int64]


def divide_lists(offsets: Offsets, shards: int) -> tuple[ShardPart, ...]:
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


@dataclass(frozen=True)
class OpenShards:
    """``ListShards`` that threads share or workers prepare from files.

    Attributes:
        offsets: those of the lists of all shards.
        total_weight: ``TuningSet.total_weight`` of the same.
        parts: the sentences of each shard.
        places: threads, processes or workers.
        lists: the lists in memory, or the directory into which ``write_lists`` has written them.
    """

    offsets: Offsets
    total_weight: float
    parts: Sequence[ShardPart]
    places: Places
    lists: TuningSet | str
    _numbers: Iterator[int] = field(default_factory=count, repr=False, compare=False)

    @property
    def bounds(self) -> NDArray[np.int64]:
        """The sentences where shards begin."""
        return np.array([0, *(part.sentences[1] for part in self.parts)])

    def prepare(
        self,
        make: Callable[..., Any],
        settings: Mapping[str, Any] = NO_ROWS,
        rows: Mapping[str, NDArray[Any]] = NO_ROWS,
    ) -> PreparedShards:
        """Prepare all shards; workers prepare one from files with its first task."""
        if isinstance(self.lists, TuningSet):
            lists = self.lists
            tasks = []
            for place, part in enumerate(self.parts):
                first, last = (int(self.offsets[position]) for position in part.sentences)
                own = {name: array[first:last] for name, array in rows.items()}
                shard = ListShard(lists.view_sentences(*part.sentences), part.blocks)
                tasks.append(self.places.submit(place, partial(make, shard, **settings, **own)))
            return _Prepared(self.places, _work_here, _results(tasks))
        preparation = next(self._numbers)
        recipes = [
            ShardRecipe(
                self.lists,
                preparation,
                number,
                part.sentences,
                part.blocks,
                make,
                dict(settings),
                tuple(rows),
            )
            for number, part in enumerate(self.parts)
        ]
        for name, array in rows.items():
            np.save(recipes[0].path(name), array)
        return _Prepared(self.places, work_on_shard, recipes)


@dataclass(frozen=True)
class _Prepared:
    """Shards that are ready for work, by their states or their recipes.

    ``call(state, work, ...)`` runs ``work`` on a shard.
    """

    places: Places
    call: Callable[..., Any]
    states: Sequence[Any]

    def map(self, work: Callable[..., Any], *arguments: Iterable[Any]) -> list[Any]:
        tasks = enumerate(map_states(self.states, arguments))
        return _results(
            [
                self.places.submit(place, self.call, state, work, *others)
                for place, (state, *others) in tasks
            ]
        )


def _work_here(state: Any, work: Callable[..., Any], *arguments: Any) -> Any:
    return work(state, *arguments)


def _results(submitted: Sequence[Future[Any]]) -> list[Any]:
    """Wait for all tasks, and return their results or raise the first error."""
    wait(submitted, return_when=FIRST_EXCEPTION)
    return [task.result() for task in submitted]
