"""A run whose sentences somebody else decodes: ask and tell.

A held-out set and monitors are asked for when their scores are needed. An online run goes on in a
thread, as any online run does. Its decoder hands each mini-batch over and waits for the lists, so
no epoch is repeated for the next one. What is told is stored before it is learned from: another
process that opens the run replays the stored mini-batches of the epoch.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from queue import SimpleQueue
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from formats.nbest.block import NBestList
from mosesplug.decoders.asked import AskedTexts, TextRequest
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


class TextWanted(Exception):
    """A held-out set or a monitor is to be translated before the run goes on."""

    def __init__(self, request: TextRequest) -> None:
        super().__init__(request)
        self.request = request


def raise_wanted(request: TextRequest) -> NoReturn:
    """Raise ``TextWanted``."""
    raise TextWanted(request)


def ask_for_texts(context: Context, wait: Callable[[TextRequest], None]) -> Context:
    """Return a context that asks for translations of held-out texts.

    Args:
        wait: called with each request; returns when its lists are told, or raises.
    """
    if (held_out := context.held_out) is None:
        return context
    sets = (
        replace(scored_set, decoder=replace(decoder, wait=wait))
        if isinstance(decoder := scored_set.decoder, AskedTexts)
        else scored_set
        for scored_set in held_out.sets
    )
    return replace(context, held_out=replace(held_out, sets=tuple(sets)))


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

    asked: SimpleQueue[_Asked | TextRequest | _Finished]
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

    def wait_for_text(self, request: TextRequest) -> None:
        """Ask for the translation of a text, and wait until it is told."""
        self.asked.put(request)
        if self.told.get() is None:
            raise _Closed

    def close(self) -> None:
        """Do nothing."""


class AskedRun:
    """The mini-batches and held-out texts of an online run, in turn.

    Its methods raise what the run raises; the next ``ask`` resumes it from what is stored.
    """

    def __init__(self, context: Context) -> None:
        decoder = _AskedDecoder(context.decoder.features, SimpleQueue(), SimpleQueue())
        context = ask_for_texts(context, decoder.wait_for_text)
        self._decoder, self._context = decoder, replace(context, decoder=decoder)
        self._thread: threading.Thread | None = None
        self._open: BatchRequest | TextRequest | None = None

    def ask(self) -> BatchRequest | TextRequest | None:
        """Return what is to be decoded next; None if all epochs are done."""
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
            lists: one for each sentence; none of a text, whose request keeps its lists.
        """
        self._open = None
        if self._thread is None:
            return  # a text that the result asks for, after the last epoch
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

    def _wait(self) -> BatchRequest | TextRequest | None:
        """Return the next request; None at the end of the run."""
        message = self._decoder.asked.get()
        if isinstance(message, TextRequest):
            return message
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
