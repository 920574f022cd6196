"""An online run whose mini-batches somebody else decodes: ask and tell.

The run goes on in a thread, as any online run does. Its decoder hands each mini-batch over and
waits for the lists, so no epoch is repeated for the next one. What is told is stored before it is
learned from: another process that opens the run replays the stored mini-batches of the epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from queue import SimpleQueue

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.decoders.protocol import Decoder
from mosesplug.tuning.context import Context
from mosesplug.tuning.loop import run_epochs


@dataclass(frozen=True)
class BatchRequest:
    """A mini-batch is to be decoded.

    Attributes:
        iteration: the epoch, from 1.
        batch: number of the mini-batch in its epoch, from 1.
        sentences: int64, its sentence ids, ascending.
        weights: to decode with.
    """

    iteration: int
    batch: int
    sentences: NDArray[np.int64]
    weights: ModelWeights


class _Closed(BaseException):
    """Ends the thread while it waits for lists."""


@dataclass(frozen=True)
class _Finished:
    """The end of the thread: of the run, unless there is an error."""

    error: BaseException | None = None


_Asked = tuple[Sequence[int], ModelWeights]


@dataclass(frozen=True)
class _AskedDecoder(Decoder, BatchDecoder):
    """A ``Decoder`` of mini-batches that waits until the lists are told."""

    asked: SimpleQueue[_Asked | _Finished]
    told: SimpleQueue[Sequence[NBestList] | None]

    def serve(
        self, sentences: Sequence[bytes], weights: ModelWeights
    ) -> AbstractContextManager[BatchDecoder]:
        """Return this decoder."""
        del sentences, weights
        return nullcontext(self)

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """Ask for the lists, and wait for them; see ``BatchDecoder.decode``."""
        self.asked.put(([number for number, _ in sentences], weights))
        if (lists := self.told.get()) is None:
            raise _Closed
        by_number = {int(nbest.sentence_ids[0]): nbest for nbest in lists}
        return [by_number[number] for number, _ in sentences if number in by_number]

    def close(self) -> None:
        """Do nothing."""


class AskedRun:
    """The mini-batches of an online run, in turn.

    Its methods raise what the run raises; the next ``ask`` resumes it from what is stored.
    """

    def __init__(self, context: Context) -> None:
        decoder = _AskedDecoder(context.decoder.features, SimpleQueue(), SimpleQueue())
        self._decoder, self._context = decoder, replace(context, decoder=decoder)
        self._thread: threading.Thread | None = None
        self._open: BatchRequest | None = None

    def ask(self) -> BatchRequest | None:
        """Return the mini-batch that is to be decoded; None if the run is finished."""
        if self._open is None:
            if self._thread is None:
                # A program may end without closing the run: the thread must not keep it alive.
                self._thread = threading.Thread(target=self._run, name="asked", daemon=True)
                self._thread.start()
            self._open = self._wait()
        return self._open

    def tell(self, lists: Sequence[NBestList]) -> None:
        """Store the lists of the open mini-batch, and learn from them.

        Args:
            lists: one for each sentence.
        """
        self._open = None
        self._decoder.told.put(lists)
        self._open = self._wait()

    def close(self) -> None:
        """End the thread; it loses nothing that was told."""
        if self._thread is not None:
            self._decoder.told.put(None)
            self._thread.join()
            self._thread = None

    def _run(self) -> None:
        error: BaseException | None = None
        try:
            run_epochs(self._context)
        except _Closed:
            return
        except BaseException as failure:
            error = failure
        self._decoder.asked.put(_Finished(error))

    def _wait(self) -> BatchRequest | None:
        """Return the next mini-batch; None at the end of the run."""
        message = self._decoder.asked.get()
        if isinstance(message, _Finished):
            if self._thread is not None:
                self._thread.join()
                self._thread = None
            if message.error is not None:
                raise message.error
            return None
        numbers, weights = message
        store = self._context.store
        iteration = 1 + sum(record.result is not None for record in store.iterations())
        opened = store.open_iteration()
        place = 1 + (0 if opened is None else int(opened.progress["batches"]))
        return BatchRequest(iteration, place, np.array(sorted(numbers), dtype=np.int64), weights)
