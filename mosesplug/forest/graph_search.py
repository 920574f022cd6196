"""Search for hypotheses in the search graphs of a tuning set, sentence by sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest.oracles.hope_fear import Found, HopeFear, find, hope_and_fear
from mosesplug.forest.search_graph import SearchGraph

__all__ = ["GraphSearch", "named"]


@dataclass(frozen=True)
class GraphSearch:
    """Finds hypotheses in the search graphs of the sentences.

    Attributes:
        graphs: one search graph per sentence.
    """

    graphs: Sequence[SearchGraph]

    @property
    def n_sentences(self) -> int:
        """Number of sentences."""
        return len(self.graphs)

    def hope_and_fear(
        self,
        sentence: int,
        weights: NDArray[np.float32],
        background: NDArray[np.float32],
        *,
        safe_hope: bool,
    ) -> HopeFear:
        """See ``forest.oracles.hope_fear.hope_and_fear``."""
        with named(sentence):
            return hope_and_fear(self.graphs[sentence], weights, background, safe_hope=safe_hope)

    def model_best(self, sentence: int, weights: NDArray[np.float32]) -> Found:
        """Return the derivation with the highest model score; the last one wins ties."""
        with named(sentence):
            return find(self.graphs[sentence], weights, np.ones(9, dtype=np.float32))


@contextmanager
def named(sentence: int) -> Iterator[None]:
    """Add the sentence id to the message of a ``DataError``."""
    try:
        yield
    except DataError as error:
        raise DataError(f"sentence {sentence}: {error}") from None
