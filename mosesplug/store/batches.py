"""Random batches from merged iterations: each sentence is merged once, then kept in memory.

To merge a sentence is to look up one record an iteration. An online learner wants every sentence
once an epoch, so after the first epoch a batch is no more than a copy of some arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosesplug.features import FeatureSpace
from mosesplug.store.merge import joined_sparse
from mosesplug.tuning_set import Batch

__all__ = ["MergedBatches"]

_OBJECTS = 1024


class MergedBatches:
    """Merged lists of some iterations, by any few sentences; made by ``NBestStore.merged``.

    Sentences are kept as they are asked for until ``memory`` bytes are in use; from then on, the
    others are read anew each time. Nothing is thrown out: where each epoch visits every sentence
    once, in random order, what was used longest ago is no less likely to be needed next, and to
    keep the first is to find as many as fit.

    It shows the iterations that it was made for, whatever is added later; dropping one of them
    makes it useless. Several threads may take batches while nothing else uses the store.

    Attributes:
        sentences: int64; all sentences of the input, some of them perhaps without a list.
        space: the columns of every batch.
        memory: bytes to keep at most.
        bytes_kept: bytes that are kept: arrays, and a kilobyte a sentence for the objects.
    """

    def __init__(
        self,
        read: Callable[[NDArray[np.int64]], Batch],
        n_sentences: int,
        space: FeatureSpace,
        memory: int,
    ) -> None:
        self.sentences = np.arange(n_sentences)
        self.space = space
        self.memory = memory
        self.bytes_kept = 0
        self._read = read
        self._kept: dict[int, Batch] = {}
        self._lock = threading.Lock()

    def batch(self, sentence_ids: ArrayLike) -> Batch:
        """Return the same as ``NBestStore.batch``: arrays are copies, sentences in the given order.

        Time and memory grow with the batch alone where its sentences are kept, and with the
        number of iterations where they are not.

        Raises:
            DataError: there is no such sentence.
            StoreError: the store is closed, or one of the iterations was dropped, and a sentence
                is not kept.
        """
        wanted = np.atleast_1d(np.asarray(sentence_ids, dtype=np.int64))
        if not len(wanted):
            return self._read(wanted)
        with self._lock:
            pieces = self._pieces(wanted.tolist())
        return _joined(wanted, pieces, self.space)

    def _pieces(self, numbers: list[int]) -> list[Batch]:
        """Return each of the sentences as a batch of its own."""
        missing = [number for number in dict.fromkeys(numbers) if number not in self._kept]
        if not missing:
            return [self._kept[number] for number in numbers]
        read = self._read(np.array(missing, dtype=np.int64))
        pieces = {
            number: read.take_sentences(np.array([place])) for place, number in enumerate(missing)
        }
        for number, piece in pieces.items():
            size = _size(piece)
            if self.bytes_kept + size <= self.memory:
                self._kept[number] = piece
                self.bytes_kept += size
        return [pieces[n] if n in pieces else self._kept[n] for n in numbers]


def _size(piece: Batch) -> int:
    """Return bytes that it takes."""
    arrays: list[NDArray[Any]] = [piece.offsets, piece.dense, piece.stats, piece.lengths]
    if piece.sparse is not None:
        arrays += [piece.sparse.indptr, piece.sparse.indices, piece.sparse.data]
    return _OBJECTS + sum(array.nbytes for array in arrays)


def _joined(sentences: NDArray[np.int64], pieces: Sequence[Batch], space: FeatureSpace) -> Batch:
    """Return one batch of one or more sentences, each a batch of its own."""
    offsets = np.zeros(len(pieces) + 1, dtype=np.int64)
    np.cumsum([len(piece.lengths) for piece in pieces], out=offsets[1:])
    sparse = [piece.sparse for piece in pieces if piece.sparse is not None]
    return Batch(
        space=space,
        sentence_ids=sentences,
        offsets=offsets,
        dense=np.concatenate([piece.dense for piece in pieces]),
        sparse=joined_sparse(sparse) if sparse else None,
        stats=np.concatenate([piece.stats for piece in pieces]),
        lengths=np.concatenate([piece.lengths for piece in pieces]),
    )
