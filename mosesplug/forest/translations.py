"""Translations of derivations: their words and sufficient statistics.

The same translations win on many lines of a search, so each is scored once and cached.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from formats.graphs.hypergraph import TAIL
from mosesplug.arrays import Ints, Ints32
from mosesplug.forest.growing import double_length
from mosesplug.kernels import kernel
from mosesplug.metrics.protocol import Metric, PreparedReferences


class Translations:
    """Caches the sufficient statistics of one sentence's translations. Thread-safe."""

    def __init__(
        self,
        sentence: int,
        words: Sequence[bytes],
        metric: Metric,
        references: PreparedReferences,
        most: int,
    ) -> None:
        """Create an empty cache.

        Args:
            words: the words that the numbers in translations stand for.
            references: the references as prepared by ``metric.prepare``.
            most: number of translations that the cache always keeps; beyond it, the cache is
                cleared.
        """
        self._sentence = sentence
        self._words = words
        self._metric = metric
        self._references = references
        self._most = most
        self._rows: dict[bytes, int] = {}
        self._statistics = np.empty((16, metric.n_statistics), dtype=np.int32)
        self._lock = threading.Lock()

    def statistics(self, words: Ints32, offsets: Ints) -> Ints32:
        """Return the sufficient statistics of translations, int32 ``[n, n_statistics]``.

        Args:
            words: int32; word numbers.
            offsets: int64 ``[n + 1]``; translation ``i`` is ``words[offsets[i]:offsets[i + 1]]``.
        """
        text, width = words.tobytes(), words.itemsize
        ends = (offsets * width).tolist()
        with self._lock:
            if len(self._rows) > self._most:
                self._rows.clear()
            known = self._rows
            before = len(known)
            rows = [known.setdefault(text[a:b], len(known)) for a, b in pairwise(ends)]
            if len(known) > before:
                self._score(before)
            return np.asarray(self._statistics[rows])

    def _score(self, first: int) -> None:
        """Compute the statistics of the translations from ``first`` on."""
        new = [np.frombuffer(key, np.int32) for key in list(self._rows)[first:]]
        texts = [b" ".join([self._words[word] for word in numbers.tolist()]) for numbers in new]
        ends = np.cumsum([len(text) for text in texts], dtype=np.int64)
        starts = np.concatenate([np.zeros(1, np.int64), ends[:-1]])
        counted = self._metric.statistics(
            self._references,
            np.full(len(texts), self._sentence, dtype=np.int64),
            np.frombuffer(b"".join(texts), dtype=np.uint8),
            starts,
            ends,
        )
        if first + len(counted) > len(self._statistics):
            larger = np.empty((2 * (first + len(counted)), counted.shape[1]), counted.dtype)
            larger[:first] = self._statistics[:first]
            self._statistics = larger
        self._statistics[first : first + len(counted)] = counted


@kernel
def append_words(
    target_offsets: Ints, targets: Ints32, edges: Ints, words: Ints32, top: int
) -> tuple[Ints32, int]:
    """Append the translation of a derivation to ``words[:top]``.

    Args:
        edges: int64; the derivation, each edge before those of its tails.

    Returns:
        The array, or a larger copy, and the new number of words.
    """
    # Position and end of each open edge; at most as deep as the number of edges.
    places = np.empty(len(edges), dtype=np.int64)
    ends = np.empty(len(edges), dtype=np.int64)
    places[0], ends[0] = target_offsets[edges[0]], target_offsets[edges[0] + 1]
    height = begun = 1
    while height > 0:
        place = places[height - 1]
        if place == ends[height - 1]:
            height -= 1
            continue
        places[height - 1] += 1
        if targets[place] == TAIL:
            edge = edges[begun]
            places[height], ends[height] = target_offsets[edge], target_offsets[edge + 1]
            height += 1
            begun += 1
            continue
        if top == len(words):
            words = double_length(words)
        words[top] = targets[place]
        top += 1
    return words, top
