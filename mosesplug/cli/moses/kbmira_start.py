"""Starting weights of ``kbmira``, and the order of the sentences."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from mosesplug.cli.moses.arguments import Arguments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from formats.weights.any_format import WeightFile

__all__ = ["Orders", "log", "read_start"]


def read_start(given: Arguments) -> WeightFile:
    """Read the files of starting weights; without any, there are no weights."""
    from formats.weights.any_format import WeightFile, read_weights

    path = given["dense-init"]
    if path is None:
        return WeightFile("", "dense")
    found = read_weights(path, ("dense", "init.opt", "weights.txt"))
    if given["verbose"]:
        shown = [f"{name} " for name in found.value_names] or [""] * len(found.dense)
        lines_shown = [f"{name}{value:g}\n" for name, value in zip(shown, found.dense, strict=True)]
        log("".join(["Reading dense features:\n", *lines_shown]))
    if given["sparse-init"] is not None:
        found = found.with_sparse(given["sparse-init"])
        log(f"Found {len(found.all_sparse)} initial sparse features\n")
    return found


class Orders:
    """Orders of sentences, shuffled as in Moses.

    Moses calls ``std::random_shuffle``, which draws from ``rand``.
    """

    def __init__(self, seed: int, n_sentences: int, *, shuffled: bool, once: bool = False) -> None:
        """Start from the input order.

        Args:
            seed: seed of the C library's generator.
            n_sentences: number of sentences.
            shuffled: whether to shuffle the sentences.
            once: shuffle only now, as Moses does with search graphs; otherwise before each epoch.
        """
        from mosesplug.moses_tools.c_rand import CRand

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
        import numpy as np

        self.shuffle_for_evaluation()
        return np.array(self._order, dtype=np.int64)


def log(text: str) -> None:
    """Write to stderr, which mert-moses.pl logs."""
    print(text, end="", file=sys.stderr, flush=True)
