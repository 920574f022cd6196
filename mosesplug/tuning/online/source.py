"""Batches that are decoded when they are asked for, stored, and read back from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from formats.errors import FormatError
from formats.nbest.files import NBestList
from formats.weights.files import ShowWeights
from mosesplug.decoders.batch import BatchDecoder, ModelWeights
from mosesplug.errors import DecoderError
from mosesplug.metrics import Metric, Prepared
from mosesplug.store import NBestStore
from mosesplug.tuning.online.numbering import Numbering
from mosesplug.tuning.resources import Clock
from mosesplug.tuning.weights import Weights
from mosesplug.tuning_set import Batch

__all__ = ["EpochLists", "OnlineSource", "model_weights", "weights_of"]


def weights_of(numbering: Numbering, vector: NDArray[np.float64], start: Weights) -> Weights:
    """Weights by name, from float64 ``[n]``, ``n`` columns at most.

    A starting weight that became 0 says so, lest the decoder take it from its configuration.
    Where all weights are 0, which ranks nothing, the starting weights stand in for them.
    """
    if not vector.any():
        return start
    space = numbering.space
    padded = np.append(vector, np.zeros(len(space) - len(vector)))
    found = Weights.of_vector(space, padded)
    return Weights(found.dense, {**dict.fromkeys(start.sparse, 0.0), **found.sparse})


def model_weights(show: ShowWeights, weights: Weights) -> ModelWeights:
    """Weights as a decoder of batches takes them."""
    return ModelWeights(show.with_values(weights.dense).groups, weights.sparse)


@dataclass(frozen=True)
class EpochLists:
    """The lists of one epoch, in the store: new ones go in, a batch comes out.

    Attributes:
        store: open to be written.
        iteration: that the lists belong to.
        numbering: of the features; it grows.
        read: gives a batch that is stored, over the store's columns.
        metric, references, threads: as ``NBestStore.add_part``.
        look: is shown new lists as soon as they are stored; what it raises ends the epoch.
    """

    store: NBestStore
    iteration: int
    numbering: Numbering
    read: Callable[[NDArray[np.int64]], Batch]
    metric: Metric
    references: Prepared
    threads: int
    look: Callable[[Sequence[NBestList]], None] = lambda lists: None

    def keep(self, lists: Sequence[NBestList], progress: Mapping[str, Any]) -> None:
        """Commit lists of a batch, and how far the epoch is with them.

        Raises:
            DecoderError: they cannot be used.
        """
        try:
            self.store.add_part(
                self.iteration,
                lists,
                metric=self.metric,
                references=self.references,
                n_sentences=self.references.n_sentences,
                progress=progress,
                threads=self.threads,
            )
        except FormatError as error:
            raise DecoderError(f"the decoder made a list that cannot be used: {error}") from error
        self.look(lists)

    def batch(self, sentences: NDArray[np.int64]) -> Batch:
        """A batch that is stored, over the columns of the epoch."""
        return self.numbering.renumbered(self.read(sentences))


class OnlineSource:
    """The sentences of one epoch, or of a shard in it: a ``Source`` for ``run_epoch``.

    Lists of a batch are committed to the store before anything is learnt from them, so that an
    epoch that was cut off is gone on with by learning again what is stored: that takes the time of
    the updates only, and no copy of the learner's state for each batch.

    Attributes:
        seconds: spent on decoding.
    """

    def __init__(
        self,
        lists: EpochLists,
        texts: Mapping[int, bytes],
        decoder: BatchDecoder,
        *,
        stored: int,
        to_weights: Callable[[NDArray[np.float64]], ModelWeights],
        progress: Callable[[], Mapping[str, Any]],
    ) -> None:
        """Say where lists come from and where they go.

        Args:
            lists: the store.
            texts: the sentences that it has, by number.
            decoder: makes the lists.
            stored: how many of the epoch's batches are in the store.
            to_weights: the decoder's, from a vector of the learner's.
            progress: what to store with the next part.
        """
        self.seconds = 0.0
        self._lists = lists
        self._texts = texts
        self._decoder = decoder
        self._stored = stored
        self._place = 0
        self._to_weights = to_weights
        self._progress = progress

    @property
    def sentences(self) -> NDArray[np.int64]:
        """int64, ascending: all that it has."""
        return np.array(sorted(self._texts), dtype=np.int64)

    def batch(
        self, sentences: NDArray[np.int64], weights: Callable[[], NDArray[np.float64]]
    ) -> Batch:
        """The lists of a batch, as the decoder makes them with these weights.

        Raises:
            DecoderError: the decoder failed, or made lists that cannot be used.
        """
        if self._place >= self._stored:
            clock = Clock()
            asked = [(number, self._texts[number]) for number in sentences.tolist()]
            made = self._decoder.decode(asked, self._to_weights(weights()))
            self.seconds += clock.seconds()
            self._lists.keep(made, {**self._progress(), "batches": self._place + 1})
        self._place += 1
        return self._lists.batch(sentences)
