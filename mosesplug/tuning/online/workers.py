"""Decoders that work at once for one learner, each with the weights of its moment.

Green et al. (2013), Algorithm 2: each idle worker gets the next mini-batch and the current weights,
and decodes it. When its turn comes, one writer stores the lists, computes the gradient on them at
the weights that they were decoded with, and applies it to the current weights. So features get
their columns, and lists their place in the store, in the order of application.

That order is stored with the lists: for each batch its place in the epoch, and how many updates of
the epoch its weights included. An interrupted epoch is resumed by replaying its stored batches in
that order, each at those weights. In the fixed order it ends with the same bytes; in the order of
arrival, it is unknown which others would have arrived.

Workers are threads of this process, each with a decoder of its own: decoders are processes already,
and servers keep running from batch to batch. Where a decoder is started for each batch anyway,
other processes and machines can start it: the lists depend on the sentences and the weights only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Executor, Future, wait
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.decoders.batch import BatchDecoder, DecoderRecipe, ModelWeights
from mosesplug.events import Note, Watcher
from mosesplug.optimizers.online.learner import Learner
from mosesplug.settings.sharding import AsyncOrder, Sharding
from mosesplug.tuning.online.source import EpochLists
from mosesplug.tuning.parallel.executors import StopSignal, open_executor, open_threads
from mosesplug.tuning.parallel.stale import BatchChange, BatchJob, compute_change

_BEAT_SECONDS = 0.2
"""How often a thread that waits for another process checks whether it is to stop."""


@dataclass(frozen=True)
class DecodingWorkers:
    """Workers that each have a decoder; ``open_decoding_workers`` makes them.

    Attributes:
        order: the order in which their batches are applied.
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
def open_decoding_workers(
    recipe: DecoderRecipe, sharding: Sharding, watch: Watcher
) -> Iterator[DecodingWorkers]:
    """Open workers until the block ends, which also stops their decoding.

    Args:
        sharding: the number of workers, where they are, and the order of their batches.
        watch: receives messages about the decoders, each once.

    Raises:
        DataError: worker processes died, or a cluster does not answer.
    """
    stop = StopSignal()
    sent: set[str] = set()

    def note(text: str) -> None:
        stop.check()  # a lost server announces its restart here: not while stopping
        if text not in sent:
            sent.add(text)
            watch(Note(text))

    with ExitStack() as stack:
        prefixes = [f"worker{number}" for number in range(1, sharding.shards + 1)]
        decoders: list[BatchDecoder]
        if sharding.elsewhere:
            executor = stack.enter_context(
                open_executor(sharding.workers, sharding.shards, sharding.scheduler)
            )
            decoders = [_RemoteDecoder(executor, recipe, prefix, stop) for prefix in prefixes]
        else:
            decoders = [recipe.make(prefix, note, stop.check) for prefix in prefixes]
        for decoder in decoders:
            stack.enter_context(decoder)
            stop.on_stop(decoder.close)  # who waits for it gets an answer
        threads = stack.enter_context(open_threads(sharding.shards))
        idle: SimpleQueue[BatchDecoder] = SimpleQueue()
        for decoder in decoders:
            idle.put(decoder)
        try:
            yield DecodingWorkers(sharding.shards, sharding.async_order, threads, idle)
        finally:
            stop.stop_now()


@dataclass(frozen=True)
class _RemoteDecoder(BatchDecoder):
    """A ``BatchDecoder`` that a worker in another process starts for each batch.

    Attributes:
        executor: the executor of the workers.
    """

    executor: Executor
    recipe: DecoderRecipe
    prefix: str
    stop: StopSignal

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        future = self.executor.submit(_decode_batch, self.recipe, self.prefix, sentences, weights)
        while not wait([future], _BEAT_SECONDS).done:
            self.stop.check()
        return future.result()

    def close(self) -> None:
        """Do nothing: no decoder runs between two batches."""


def _decode_batch(
    recipe: DecoderRecipe,
    prefix: str,
    sentences: Sequence[tuple[int, bytes]],
    weights: ModelWeights,
) -> list[NBestList]:
    with recipe.make(prefix, lambda text: None) as decoder:
        return decoder.decode(sentences, weights)


class StaleDecodingSource:
    """A ``StaleSource`` that decodes: workers decode, the writer stores and learns.

    Attributes:
        replay: place and version of the stored batches, as they were applied.
    """

    def __init__(self, lists: EpochLists, workers: DecodingWorkers, learner: Learner) -> None:
        """Start an epoch."""
        order = lists.stored.get("order", ())
        self.replay = [(int(place), int(version)) for place, version in order]
        self._lists, self._workers, self._learner = lists, workers, learner
        self._stored = {place for place, _ in self.replay}
        self._applied: list[tuple[int, int]] = []

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64, ascending."""
        return self._lists.sentences

    @property
    def order(self) -> NDArray[np.int32]:
        """int32 ``[n, 2]``: place and version of each batch, as they were applied."""
        return np.array(self._applied, dtype=np.int32).reshape(-1, 2)

    def submit(self, job: BatchJob) -> Future[Any]:
        """Let a worker decode a batch with the job's weights, unless it is stored."""
        if self._lists.is_complete or job.place in self._stored:
            stored: Future[None] = Future()
            stored.set_result(None)
            return stored
        texts = self._lists.setup.texts
        batch = [(number, texts[number]) for number in job.sentences.tolist()]
        weights = self._lists.model_weights(self._learner.weights(job.state))
        return self._workers.submit(batch, weights)

    def change(self, job: BatchJob, result: list[NBestList] | None, seconds: float) -> BatchChange:
        """Store the lists, unless they are, and compute the change on them."""
        lists = self._lists
        lists.seconds += seconds
        self._applied.append((job.place, job.version))
        if result is not None:
            lists.add(result, len(self._applied), self.order)
        return compute_change(lists.take(job.sentences), self._learner, job)
