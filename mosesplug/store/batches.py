"""Random batches of merged iterations.

Each sentence is merged once, then kept in memory. Merging a sentence reads one record per
iteration. An online learner visits every sentence once per epoch, so after the first epoch a batch
is only a copy of some arrays.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from mosesplug.features import FeatureSpace
from mosesplug.tuning_set import Batch, SparseRows

_OBJECTS = 1024


class MergedBatches:
    """Merged lists of some iterations, in random batches.

    ``NBestStore.merge_batches`` makes it.

    Sentences are cached on first use until ``memory`` bytes are in use; the others are read again
    each time. Nothing is evicted: epochs visit every sentence once in random order, so evicting the
    least recently used sentence would gain nothing.

    Iterations added later are not included; dropping an included one invalidates the object.
    Several threads may take batches while nothing else uses the store.

    Attributes:
        sentences: int64; all sentences of the input; some may have no list.
        space: the columns of every batch.
        memory: largest number of bytes to cache.
        bytes_kept: bytes in the cache: arrays, and a kilobyte per sentence for objects.
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
        """Return the same as ``NBestStore.batch``, as copies, in the given order.

        Time and memory depend only on the batch if its sentences are cached, else also on the
        number of iterations.

        Raises:
            DataError: a sentence does not exist.
            StoreError: a sentence is not cached, and the store is closed or an iteration was
                dropped.
        """
        wanted = np.atleast_1d(np.asarray(sentence_ids, dtype=np.int64))
        if not len(wanted):
            return self._read(wanted)
        with self._lock:
            pieces = self._pieces(wanted.tolist())
        return _concatenate(wanted, pieces, self.space)

    def _pieces(self, numbers: list[int]) -> list[Batch]:
        """Return one batch per sentence."""
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
    arrays: list[NDArray[Any]] = [piece.offsets, piece.dense, piece.stats, piece.lengths]
    if piece.sparse is not None:
        arrays += [piece.sparse.indptr, piece.sparse.indices, piece.sparse.data]
    return _OBJECTS + sum(array.nbytes for array in arrays)


def _concatenate(
    sentences: NDArray[np.int64], pieces: Sequence[Batch], space: FeatureSpace
) -> Batch:
    """Concatenate batches of one sentence each."""
    offsets = np.zeros(len(pieces) + 1, dtype=np.int64)
    np.cumsum([len(piece.lengths) for piece in pieces], out=offsets[1:])
    sparse = [piece.sparse for piece in pieces if piece.sparse is not None]
    return Batch(
        space=space,
        sentence_ids=sentences,
        offsets=offsets,
        dense=np.concatenate([piece.dense for piece in pieces]),
        sparse=SparseRows.concatenate(sparse) if sparse else None,
        stats=np.concatenate([piece.stats for piece in pieces]),
        lengths=np.concatenate([piece.lengths for piece in pieces]),
    )
