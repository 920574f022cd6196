"""A decoder made of stored search graphs.

Where a text was decoded once, with its search graphs kept, its n-best lists for other weights come
from the graphs in milliseconds a sentence (Xiao et al. 2011; Watanabe 2012, section 5.1). The
lists are exact in the graphs: what the search never looked at, no weights bring back.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Self

from formats.nbest.files import NBestList
from mosesplug.decoders.batch import ModelWeights
from mosesplug.errors import DataError, DecoderError
from mosesplug.features import FeatureSpace, spelled_groups
from mosesplug.forest.n_best import GraphFeatures, n_best
from mosesplug.tuning.graphs.source import GraphSource

__all__ = ["ForestDecoder"]


class ForestDecoder:
    """A ``BatchDecoder`` that lists the best translations in the search graphs of each sentence.

    What it gives is a pure function of the graphs and the weights, whatever the threads.
    """

    def __init__(
        self,
        graphs: GraphSource,
        fixed: Mapping[str, float],
        nbest: int,
        *,
        source: str,
        threads: int = 1,
    ) -> None:
        """Say where the graphs are.

        Args:
            graphs: gives them for the time of a batch; it is closed with the decoder.
            fixed: weights of features that are not tuned, by their names in the graphs.
            nbest: length of the lists.
            source: where the graphs are, for messages.
            threads: for sentences of a batch.
        """
        self._graphs = graphs
        self._fixed = fixed
        self._nbest = nbest
        self._source = source
        self._features = GraphFeatures(FeatureSpace(()), fixed)
        self._threads = threads

    def decode(
        self, sentences: Sequence[tuple[int, bytes]], weights: ModelWeights
    ) -> list[NBestList]:
        """As ``BatchDecoder.decode`` says; a sentence without a graph has no list.

        Raises:
            DecoderError: a graph cannot be searched, or the weights are for other features.
        """
        with self._graphs() as graphs:
            features = self._features_of(graphs.space)
            if weights.columns != graphs.space.groups:
                raise DecoderError(
                    f"{self._source}: the search graphs have the features"
                    f" {spelled_groups(graphs.space.groups)}, but the weights are for"
                    f" {spelled_groups(weights.columns)}"
                )
            dense = [v for group in weights.groups for v in group.values if v is not None]
            vector = features.vector(dense, weights.sparse)
            lock = threading.Lock()

            def listed(sentence: tuple[int, bytes]) -> NBestList | None:
                number, _ = sentence
                with lock:  # what reads is one transaction
                    found = graphs.of_sentence(number) if number < graphs.n_sentences else []
                try:
                    return n_best(number, found, features, vector, self._nbest, source=self._source)
                except DataError as error:
                    raise DecoderError(
                        f"{self._source}: the search graph of sentence {number}: {error}"
                    ) from error

            with ThreadPoolExecutor(self._threads, "forest") as pool:
                lists = list(pool.map(listed, sentences))
        return [found for found in lists if found is not None]

    def close(self) -> None:
        """Let go of the graphs; a batch after it asks for them again."""
        self._graphs.close()

    def _features_of(self, space: FeatureSpace) -> GraphFeatures:
        """Made once for all batches, as long as no graph brings new features."""
        if self._features.space != space:
            self._features = GraphFeatures(space, self._fixed)
        return self._features

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()
