"""Functions of both searches for TER shifts, that of Moses and that of sacrebleu."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from mosesplug.kernels import kernel

FAR = 1 << 29
"""Cost of unreachable cells."""


@kernel
def longest_sentence(offsets: NDArray[np.int64]) -> int:
    """Return the length of the longest sentence, given ``offsets``, ``[n + 1]``."""
    longest = 0
    for line in range(len(offsets) - 1):
        longest = max(longest, offsets[line + 1] - offsets[line])
    return longest


@kernel
def move_block(
    words: NDArray[np.int32],
    n_words: int,
    start: int,
    length: int,
    place: int,
    result: NDArray[np.int32],
) -> None:
    """Copy ``words[:n_words]`` to ``result`` and move a block to ``place``.

    The block has ``length`` words; ``place`` is from 0 to ``n_words - length``.
    """
    source = 0
    for target in range(n_words):
        if place <= target < place + length:
            result[target] = words[start + target - place]
            continue
        if source == start:
            source += length
        result[target] = words[source]
        source += 1
