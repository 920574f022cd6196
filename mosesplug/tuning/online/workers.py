"""Decoders that work at once for one learner, each on a mini-batch with weights of its moment.

Green et al. (2013), Algorithm 2: a worker that is idle is given the next mini-batch and the weights
of that moment, and decodes it. When its turn has come, one writer stores the lists, computes the
gradient on them at the weights that they were decoded with, and applies it to the weights of now.
So features get their columns, and lists their place in the store, in the order of application.

That order is kept with the lists: of each batch its place in the epoch, and how many updates of the
epoch the weights had seen that it was decoded with. An epoch that was cut off learns its stored
batches again in that order, each at those weights, and goes on. In the fixed order it ends with the
same bytes; in the order of arrival, nobody can say what else would have arrived.

Workers are threads of this process, each with a decoder of its own: decoders are processes
already, and servers keep running from batch to batch. Where a decoder is started for each batch
anyway, other processes and machines can do that, too: what they do is a function of the sentences
and the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from formats.nbest.files import NBestList
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.protocol import DecoderRecipe
from mosesplug.optimizers.online.epochs import BatchDone, EpochResult, Plan, batches_of
from mosesplug.optimizers.online.learner import Learner, State
from mosesplug.settings.sharding import AsyncOrder, Sharding
from mosesplug.tuning.events import Note, Watcher
from mosesplug.tuning.online.source import EpochLists
from mosesplug.tuning.parallel.asynchronous import Found, Task, Writer, found_in, stale_epoch
from mosesplug.tuning.parallel.executors import Ending, threads, workers

__all__ = ["DecodingWorkers", "StaleSource", "decoding_workers"]

_BEAT_SECONDS = 0.2
"""A worker that waits for another process looks as often whether it is to stop."""


@dataclass(frozen=True)
class DecodingWorkers:
    """Workers that each have a decoder; ``decoding_workers`` makes them.

    Attributes:
        count: how many.
        order: in which their batches are applied.
        executor: their threads.
        idle: the decoders that have nothing to do.
    """

    count: int
    order: AsyncOrder
    executor: Executor
    idle: SimpleQueue[BatchDecoder]

    def submit(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> Future[list[NBestList]]:
        """Let an idle decoder decode a batch, as ``BatchDecoder.decode``."""
        return self.executor.submit(self._decode, sentences, weights)

    def _decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        decoder = self.idle.get()
        try:
            return decoder.decode(sentences, weights)
        finally:
            self.idle.put(decoder)


@contextmanager
def decoding_workers(
    recipe: DecoderRecipe, sharding: Sharding, watch: Watcher
) -> Iterator[DecodingWorkers]:
    """Workers until the block ends; what they still decode then is given up at once.

    Args:
        recipe: of their decoders.
        sharding: how many, where, and the order.
        watch: told what a user should know of the decoders, once.

    Raises:
        DataError: worker processes died, or a cluster does not answer.
    """
    ending = Ending()
    told: set[str] = set()

    def note(text: str) -> None:
        # A server that is lost is told of before it is started again: not at the end.
        ending.check()
        if text not in told:
            told.add(text)
            watch(Note(text))

    with ExitStack() as stack:
        prefixes = [f"worker{number}" for number in range(1, sharding.shards + 1)]
        decoders: list[BatchDecoder]
        if sharding.elsewhere:
            there = stack.enter_context(
                workers(sharding.workers, sharding.shards, sharding.scheduler)
            )
            decoders = [_Elsewhere(there, recipe, prefix, ending) for prefix in prefixes]
        else:
            decoders = [recipe.make(prefix, note, ending.check) for prefix in prefixes]
        for decoder in decoders:
            stack.enter_context(decoder)
            ending.closes(decoder.close)  # whoever waits for it has an answer
        executor = stack.enter_context(threads(sharding.shards))
        idle: SimpleQueue[BatchDecoder] = SimpleQueue()
        for decoder in decoders:
            idle.put(decoder)
        try:
            yield DecodingWorkers(sharding.shards, sharding.async_order, executor, idle)
        finally:
            ending.now()


@dataclass(frozen=True)
class _Elsewhere:
    """A ``BatchDecoder`` that is started for each batch by a worker in another process.

    Attributes:
        executor: of the workers.
        recipe: of the decoder.
        prefix: of its files.
        ending: after it, nobody waits for a batch any more.
    """

    executor: Executor
    recipe: DecoderRecipe
    prefix: str
    ending: Ending

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """As ``BatchDecoder.decode``."""
        future = self.executor.submit(_decoded, self.recipe, self.prefix, sentences, weights)
        while not wait([future], _BEAT_SECONDS).done:
            self.ending.check()
        return future.result()

    def close(self) -> None:
        """Nothing is running between two batches."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _decoded(
    recipe: DecoderRecipe,
    prefix: str,
    sentences: Sequence[tuple[int, bytes]],
    weights: ModelWeights,
) -> list[NBestList]:
    """In another process: the lists of one batch."""
    with recipe.make(prefix, lambda text: None) as decoder:
        return decoder.decode(sentences, weights)


class StaleSource:
    """The sentences of one epoch, decoded with stale weights: a ``Crew`` for ``stale_epoch``."""

    def __init__(
        self,
        lists: EpochLists,
        texts: Sequence[bytes],
        workers: DecodingWorkers,
        learner: Learner,
        plan: Plan,
        *,
        stored: Callable[[int], bool],
        replayed: Sequence[tuple[int, int]],
        to_weights: Callable[[NDArray[np.float64]], ModelWeights],
        progress: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Say who decodes, who learns, and where lists go.

        Args:
            lists: the store.
            texts: all sentences.
            workers: decode.
            learner: learns from all batches.
            plan: seed, batches, metric.
            stored: whether the lists of the batch at this place of the epoch are in the store.
            replayed: those that were applied before the epoch was cut off, as ``stale_epoch``.
            to_weights: the decoder's, from a vector of the learner's.
            progress: what to store with the next part.
        """
        self._lists = lists
        self._texts = texts
        self._workers = workers
        self._learner = learner
        self._plan = plan
        self._stored = stored
        self._replayed = replayed
        self._to_weights = to_weights
        self._progress = progress
        self._applied: list[tuple[int, int]] = []
        self._writer: Writer | None = None

    @property
    def seconds(self) -> float:
        """Spent on waiting for lists, while there was nothing to learn."""
        return 0.0 if self._writer is None else self._writer.seconds_waiting

    @property
    def record(self) -> dict[str, Any]:
        """To be kept with the lists: place and version of each batch, as they were applied."""
        return {"order": np.array(self._applied, dtype=np.int32).reshape(-1, 2)}

    def learn(self, state: State, epoch: int, on_batch: Callable[[BatchDone], None]) -> EpochResult:
        """Go through the epoch; with one worker this is ``run_epoch``.

        Args:
            state: where it begins; it is spent.
            epoch: from 1.
            on_batch: told of every batch, in the order of application.

        Raises:
            DecoderError: a decoder failed, or made lists that cannot be used.
            OptimizerError: the weights are no longer finite numbers.
        """
        batches = batches_of(np.arange(len(self._texts)), self._plan, epoch)
        self._where = self._plan, epoch, len(batches)
        self._writer = Writer(self._learner, state, *self._where)
        return stale_epoch(
            self._writer,
            batches,
            self,
            workers=self._workers.count,
            order=self._workers.order,
            replayed=self._replayed,
            on_batch=on_batch,
        )

    def send(self, task: Task) -> Future[Any]:
        """Have a batch decoded with the weights of a task; one that is stored gives None."""
        if self._stored(task.place):
            known: Future[None] = Future()
            known.set_result(None)
            return known
        asked = [(number, self._texts[number]) for number in task.sentences.tolist()]
        return self._workers.submit(asked, self._to_weights(self._learner.weights(task.state)))

    def found(self, task: Task, result: list[NBestList] | None) -> Found:
        """Store the lists, unless they are, and look at them with the weights of the task."""
        self._applied.append((task.place, task.version))
        if result is not None:
            far = {**self.record, "batches": len(self._applied)}
            self._lists.keep(result, {**self._progress(), **far})
        batch = self._lists.batch(task.sentences)
        plan, epoch, per_epoch = self._where
        return found_in(batch, self._learner, task.state, (plan, epoch, task.place, per_epoch))
