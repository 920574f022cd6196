"""The random numbers of the C library, as Moses' tools draw them.

``rand`` of the GNU C library is an additive feedback generator: ``r[i] = r[i-3] + r[i-31]`` modulo
2^32, without the lowest bit. From the same seed, a launcher that draws from it in the same order
as Moses' program makes the same choices. The generator is weak; code that does not imitate Moses
uses NumPy's generators.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel

_DEGREE = 31
_SEPARATION = 3
_WARM_UP = 310
_MULTIPLIER, _MODULUS = 16807, 2**31 - 1


class CRand:
    """``srand`` and ``rand`` of the GNU C library on Linux."""

    def __init__(self, seed: int) -> None:
        word = int(np.uint32(seed & 0xFFFFFFFF).astype(np.int32)) or 1
        words = [word]
        for _ in range(_DEGREE - 1):
            words.append(words[-1] * _MULTIPLIER % _MODULUS)
        self._state = np.array([w & 0xFFFFFFFF for w in words], dtype=np.uint32)
        self._position = np.full(1, _SEPARATION, dtype=np.int64)
        self.draw(_WARM_UP)

    def draw(self, count: int) -> NDArray[np.int64]:
        """Return the next ``count`` values of ``rand()``, int64 in 0 to 2^31 - 1."""
        numbers = np.empty(count, dtype=np.int64)
        _draw(self._state, self._position, numbers)
        return numbers

    def below(self, top: int, count: int) -> NDArray[np.int64]:
        """Return the next ``count`` values of ``rand() % top``."""
        return self.draw(count) % top


class SentenceOrders:
    """Orders of the sentences in epochs, shuffled as in Moses.

    Moses calls ``std::random_shuffle``, which draws from ``rand``.
    """

    def __init__(self, seed: int, n_sentences: int, *, shuffled: bool, once: bool = False) -> None:
        """Start from the input order.

        Args:
            once: shuffle only now, as Moses does with search graphs; otherwise before each epoch.
        """
        self._rand = CRand(seed)
        self._order = list(range(n_sentences))
        if shuffled and once:
            self._shuffle()
        self._shuffled = shuffled and not once

    def shuffle_for_evaluation(self) -> None:
        """Shuffle for an evaluation, as Moses does."""
        if self._shuffled:
            self._shuffle()

    def _shuffle(self) -> None:
        order = self._order
        for place, number in enumerate(self._rand.draw(len(order) - 1).tolist(), start=1):
            other = number % (place + 1)
            order[place], order[other] = order[other], order[place]

    def next(self) -> NDArray[np.int64]:
        """Return the order of the next epoch."""
        self.shuffle_for_evaluation()
        return np.array(self._order, dtype=np.int64)


@kernel
def _draw(
    state: NDArray[np.uint32], position: NDArray[np.int64], numbers: NDArray[np.int64]
) -> None:
    """Fill ``numbers``; advance ``state``, a ring of 31 words, and ``position``."""
    oldest = position[0]
    for i in range(len(numbers)):
        third = oldest - _SEPARATION
        if third < 0:
            third += _DEGREE
        word = np.uint32(state[oldest] + state[third])
        state[oldest] = word
        numbers[i] = word >> np.uint32(1)
        oldest += 1
        if oldest == _DEGREE:
            oldest = 0
    position[0] = oldest
