"""Warn of lists whose sparse features have no weight."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection

from formats.weights.any_format import WeightFile
from mosesplug.errors import count_noun


class SparseCoverage:
    """Warns if no sparse feature of lists or graphs has a weight.

    A single missing weight is usual, since most features are rare. If all are missing, a file of
    sparse weights was forgotten.

    Args:
        find_known: returns the features that have weights, when it is needed: it may read files.
    """

    def __init__(self, find_known: Callable[[], Collection[str]], weights: str) -> None:
        self._find_known, self._weights = find_known, weights
        self._missing: set[str] | None = set()

    @classmethod
    def of_file(cls, file: WeightFile) -> SparseCoverage:
        """Return an empty collection for the weights of a file."""
        return cls(lambda: file.sparse_by_name, file.path)

    def add(self, names: Collection[str]) -> None:
        """Add sparse features of a block."""
        if self._missing is None or not names:
            return
        known = self._find_known()
        if any(name in known for name in names):
            self._missing = None
        else:
            self._missing.update(names)

    def warn(self, source: str) -> None:
        """Warn if there were sparse features, and none has a weight.

        Args:
            source: what the message calls the lists or graphs.
        """
        if self._missing:
            features = count_noun(len(self._missing), "sparse feature")
            logging.getLogger(__name__).warning(
                "warning: %s has no weight of any sparse feature of %s (%s): all of them count as"
                " 0. Give a file of sparse weights, too, as FILE+SPARSE",
                self._weights,
                source,
                features,
            )


def warn_of_sparse(file: WeightFile, names: Collection[str], source: str) -> None:
    """Warn if a file has no weight of any of these sparse features."""
    coverage = SparseCoverage.of_file(file)
    coverage.add(names)
    coverage.warn(source)
