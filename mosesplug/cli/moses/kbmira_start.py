"""Starting weights of ``kbmira``, and the order of the sentences."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from mosesplug.cli.moses.arguments import Arguments

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

__all__ = ["Orders", "Start", "log", "read_start"]


@dataclass(frozen=True)
class Start:
    """Starting weights from their files.

    Attributes:
        groups: the feature function of each dense weight; empty if the file has only numbers.
        names: the name of each dense weight in search graphs; empty if the file has only numbers.
        dense: the dense weights; empty without a file.
        sparse: sparse weights by name.
    """

    groups: tuple[str, ...]
    names: tuple[str, ...]
    dense: tuple[float, ...]
    sparse: dict[str, float]


def read_start(given: Arguments) -> Start:
    """Read the files of starting weights."""
    from formats.graphs.hypergraph import hypergraph_names
    from formats.weights.any_format import read_weights
    from formats.weights.files import read_sparse

    path = given["dense-init"]
    if path is None:
        return Start((), (), (), {})
    found = read_weights(path, ("dense", "init.opt", "weights.txt"))
    widths = [(name, len(values)) for name, values in found.groups.items()]
    groups = tuple(name for name, width in widths for _ in range(width))
    names = hypergraph_names(widths)
    dense = found.numbers or found.show.values
    if given["verbose"]:
        shown = [f"{name} " for name in names] or [""] * len(dense)
        lines_shown = [f"{name}{value:g}\n" for name, value in zip(shown, dense, strict=True)]
        log("".join(["Reading dense features:\n", *lines_shown]))
    sparse: dict[str, float] = {}
    if given["sparse-init"] is not None:
        sparse = read_sparse(given["sparse-init"])
        log(f"Found {len(sparse)} initial sparse features\n")
    return Start(groups, names, dense, sparse)


class Orders:
    """Orders of sentences, shuffled by ``std::random_shuffle`` from ``rand`` as in Moses."""

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
