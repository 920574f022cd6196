"""The n best translations of a search graph, best first, exactly and lazily.

Algorithm 3 of Huang & Chiang (2005), for graphs whose edges have one tail: the k-th best path to a
node is computed only on demand. For distinct lists, only the best of the paths to a node with the
same words is kept: all continuations are the same for each of them. (Moses removes duplicate
translations at the end, and may give up before it has n.)
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import islice

import numpy as np

from mosesplug.arrays import Floats
from mosesplug.extras.phrase_decoder.search_graph import PhraseGraph


@dataclass(frozen=True)
class PhraseDerivation:
    """A translation and its derivation.

    Attributes:
        values: float64 ``[n_values]``; its features.
        edges: edges of the search graph, in the order of the translation.
        sparse: values of sparse features, by name.
    """

    words: list[bytes]
    values: Floats
    score: float
    edges: list[int]
    sparse: Mapping[str, float]


def find_best_derivations(
    graph: PhraseGraph, size: int, *, distinct: bool
) -> list[PhraseDerivation]:
    """Return the ``size`` best derivations; if ``distinct``, one per translation.

    The list is shorter if the graph has fewer, and empty if no hypothesis covers the sentence.
    """
    recursion_limit = sys.getrecursionlimit()
    # A path has at most one edge per source word, and each edge recurses into its tail.
    sys.setrecursionlimit(recursion_limit + 2 * int(graph.node_covered.max()))
    try:
        paths = list(islice(_Enumeration(graph, distinct).goal_paths(), size))
    finally:
        sys.setrecursionlimit(recursion_limit)
    model = graph.model
    targets = {pair: model.target(pair) for path in paths for pair in graph.pair[path].tolist()}
    derivations = []
    for path, values in zip(paths, _values(graph, paths), strict=True):
        words = [word for pair in graph.pair[path].tolist() for word in targets[pair]]
        sparse: dict[str, float] = {}
        for edge in path if model.features.templates else ():
            for name, value in graph.sparse_values(edge):
                sparse[name] = sparse.get(name, 0.0) + value
        score = float(values @ model.features.weights) + model.features.weigh(sparse)
        derivations.append(PhraseDerivation(words, values, score, path, sparse))
    return derivations


def _values(graph: PhraseGraph, paths: list[list[int]]) -> Floats:
    """Return the feature values of paths, float64 ``[len(paths), n_values]``."""
    if not all(paths):
        # Only an empty sentence has a path without edges, and this is its only path.
        return np.zeros((len(paths), len(graph.model.features.weights)))
    edges, rows = np.unique(np.concatenate(paths), return_inverse=True)
    lengths = np.array([len(path) for path in paths])
    values = graph.edge_values(edges)[rows]
    sums: Floats = np.add.reduceat(values, np.cumsum(lengths) - lengths)
    return sums


@dataclass
class _Node:
    """Paths to a node: those found, and a heap.

    A path has its score, its words, its edge, and the rank of the tail's path.
    """

    found: list[tuple[float, int, int, int]] = field(default_factory=list)
    heap: list[tuple[float, int, int]] = field(default_factory=list)
    words: set[int] = field(default_factory=set)


class _Enumeration:
    """The paths to each node of a graph, computed on demand.

    The words of a path are one number: the id of (prefix, last word) in ``texts``.
    """

    def __init__(self, graph: PhraseGraph, distinct: bool) -> None:
        self.graph = graph
        self.distinct = distinct
        self.first_edge: list[int] = graph.first_edge.tolist()
        self.tail: list[int] = graph.tail.tolist()
        self.pair: list[int] = graph.pair.tolist()
        self.score: list[float] = graph.score.tolist()
        self.nodes: dict[int, _Node] = {0: _Node(found=[(0.0, 0, -1, 0)])}
        self.texts: dict[tuple[int, int], int] = {}
        self.targets: dict[int, list[int]] = {}

    def goal_paths(self) -> Iterator[list[int]]:
        """Yield the edges of the best path to any goal, of the second best, and so on."""
        heap = [
            (-way[0], goal, 0)
            for goal in self.graph.goals.tolist()
            if (way := self._way(goal, 0)) is not None
        ]
        heapify(heap)
        seen: set[int] = set()
        while heap:
            _, goal, rank = heappop(heap)
            words = self.nodes[goal].found[rank][1]
            if not self.distinct or words not in seen:
                seen.add(words)
                yield self._path(goal, rank)
            way = self._way(goal, rank + 1)
            if way is not None:
                heappush(heap, (-way[0], goal, rank + 1))

    def _way(self, number: int, rank: int) -> tuple[float, int, int, int] | None:
        """Return the path of that rank to a node, from 0; None if there are fewer paths."""
        node = self.nodes.get(number)
        if node is None:
            node = self.nodes[number] = _Node()
            for edge in range(self.first_edge[number], self.first_edge[number + 1]):
                best = self.graph.node_score[self.tail[edge]] + self.score[edge]
                node.heap.append((-best, edge, 0))
            heapify(node.heap)
        while len(node.found) <= rank:
            if not node.heap:
                return None
            score, edge, tail_rank = heappop(node.heap)
            tail = self.tail[edge]
            before = self._way(tail, tail_rank)
            if before is None:
                continue
            words = self._extend(before[1], self.pair[edge])
            if not self.distinct or words not in node.words:
                node.words.add(words)
                node.found.append((-score, words, edge, tail_rank))
            after = self._way(tail, tail_rank + 1)
            if after is not None:
                heappush(node.heap, (-(after[0] + self.score[edge]), edge, tail_rank + 1))
        return node.found[rank]

    def _extend(self, words: int, pair: int) -> int:
        """Return the id of a text extended by the target words of a phrase pair."""
        target = self.targets.get(pair)
        if target is None:
            model = self.graph.model
            start, end = model.target_offsets[pair : pair + 2]
            target = self.targets[pair] = model.target_words[start:end].tolist()
        for word in target:
            words = self.texts.setdefault((words, word), len(self.texts) + 1)
        return words

    def _path(self, number: int, rank: int) -> list[int]:
        """Return the edges of a path that was found."""
        edges = []
        while number:
            _, _, edge, rank = self.nodes[number].found[rank]
            edges.append(edge)
            number = self.tail[edge]
        return edges[::-1]
