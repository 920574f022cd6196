"""Hope and fear in a search graph: the best derivations by model and BLEU together.

The search goes bottom-up and keeps one derivation for each node (Watanabe 2012 and Moses'
``kbmira`` do so): the one of the highest model score plus or minus the worth of its translation
so far. That worth is BLEU of its n-grams in a background of earlier choices, as
``metrics.sentence_bleu.background_bleu_moses`` has it. Since n-grams cross edges, each node
remembers the first and the last three words of its translation. It is a search with a beam of one:
exact where the metric does not count, and else an approximation that finds what Moses finds.

While it searches, matches are counted edge by edge, clipped by an n-gram's occurrences in all
references together, and the reference is as long as the share of the source that is covered. The
derivation that it finds is then counted as BLEU is defined: clipped over the whole translation by
the largest count in one reference, against the shortest reference.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest.graph_bleu import (
    count_edge,
    edge_context,
    partial_length,
    translation_statistics,
)
from mosesplug.forest.pruning import single_scores
from mosesplug.forest.search_graph import SearchGraph
from mosesplug.forest.viterbi import MOST_EDGES, derivation_edges
from mosesplug.kernels import kernel
from mosesplug.metrics.single_bleu import single_bleu

__all__ = ["Found", "HopeFear", "find", "hope_and_fear"]

MODEL_SHARE = np.float32(5.0)
"""With a safe hope, the model's score counts at most this many times as much as the worth."""


@dataclass(frozen=True)
class Found:
    """A derivation that was found.

    Attributes:
        edges: int64; each before those of its tails.
        columns: int32; features that any of its edges has, ascending.
        values: float32; their sums, in the order of Moses' tools.
        statistics: float32 ``[9]``, statistics of ``metrics.Bleu``.
        score: of the model, summed edge by edge.
    """

    edges: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]
    statistics: NDArray[np.float32]
    score: np.float32


@dataclass(frozen=True)
class HopeFear:
    """Hope and fear of a graph, by model and BLEU.

    Attributes:
        hope, fear: derivations that the model likes, and BLEU likes or does not.
        hope_worth, fear_worth: what they are worth with the background.
    """

    hope: Found
    fear: Found
    hope_worth: np.float32
    fear_worth: np.float32


def hope_and_fear(
    graph: SearchGraph,
    weights: NDArray[np.float32],
    background: NDArray[np.float32],
    *,
    safe_hope: bool = False,
) -> HopeFear:
    """Search for hope and fear.

    Args:
        graph: of the sentence.
        weights: float32, one for each column.
        background: float32 ``[9]``, decayed sum of the statistics of earlier choices.
        safe_hope: where the model's score of the hope is more than five times its worth, scale
            the model down to that, and search again.

    Raises:
        DataError: see ``find``.
    """
    hope = find(graph, weights, background, sign=1.0)
    worth = _worth(hope.statistics, background)
    size = abs(hope.score)
    if safe_hope and size > np.float32(1e-8):
        scale = float(abs(worth * MODEL_SHARE) / size)
        if scale < 1.0:
            hope = find(graph, weights, background, sign=1.0, scale=scale)
            worth = _worth(hope.statistics, background)
    fear = find(graph, weights, background, sign=-1.0)
    return HopeFear(hope, fear, worth, _worth(fear.statistics, background))


def find(
    graph: SearchGraph,
    weights: NDArray[np.float32],
    background: NDArray[np.float32],
    *,
    sign: float = 0.0,
    scale: float = 1.0,
) -> Found:
    """The derivation of the highest ``scale * score + sign * worth``, of equal ones the last.

    Args:
        graph: of the sentence.
        weights: float32, one for each column; one up to 1e-8 counts as 0.
        background: float32 ``[9]``.
        sign: of the worth; with 0 the model alone decides, and the search is exact.
        scale: of the model's score.

    Raises:
        DataError: no derivation builds the goal with a finite score, or the best one has more
            than ten million edges.
    """
    scores = single_scores(graph.indptr, graph.columns, graph.values, weights)
    best, inside, sizes = _search(graph, scores, background, np.float32(scale), np.float32(sign))
    if best[-1] < 0 or not np.isfinite(inside[-1]):
        raise DataError("no derivation of the search graph has a finite score")
    if sizes[-1] > MOST_EDGES:
        raise DataError(f"the best derivation of the search graph has {sizes[-1]:.3g} edges")
    edges = derivation_edges(graph.tail_offsets, graph.tails, best, int(sizes[-1]))
    columns, values = _features(graph, edges)
    statistics = translation_statistics(graph.tree, _words(graph, edges))
    return Found(edges, columns, values, statistics, inside[-1])


@kernel
def _search(
    graph: SearchGraph,
    scores: NDArray[np.float32],
    background: NDArray[np.float32],
    scale: np.float32,
    sign: np.float32,
) -> tuple[NDArray[np.int64], NDArray[np.float32], NDArray[np.float64]]:
    """Find for each node its best edge (-1: none), its score, and its derivation's edges."""
    n_nodes = len(graph.edge_offsets) - 1
    best = np.full(n_nodes, -1, dtype=np.int64)
    inside = np.full(n_nodes, np.float32(-np.inf), dtype=np.float32)
    sizes = np.zeros(n_nodes)
    statistics = np.zeros((n_nodes, 9), dtype=np.float32)
    # First and last words of each node's translation, and how many there are of each.
    left, right = np.empty((n_nodes, 3), dtype=np.int32), np.empty((n_nodes, 3), dtype=np.int32)
    n_left, n_right = np.zeros(n_nodes, dtype=np.int64), np.zeros(n_nodes, dtype=np.int64)
    counts = np.zeros(len(graph.tree.summed), dtype=np.int32)
    trial, kept = np.zeros(9, dtype=np.float32), np.zeros(9, dtype=np.float32)
    totals = np.empty(9, dtype=np.float32)
    for node in range(n_nodes):
        highest = np.float32(-np.inf)
        length = partial_length(graph.covered[node], graph.covered[-1], graph.tree.length)
        for edge in range(graph.edge_offsets[node], graph.edge_offsets[node + 1]):
            score = scores[edge]
            for entry in range(graph.tail_offsets[edge], graph.tail_offsets[edge + 1]):
                score += inside[graph.tails[entry]]
            if not score > -np.inf:
                continue
            value = scale * score
            if sign != 0.0:
                trial[:] = 0.0
                count_edge(graph, edge, left, n_left, right, n_right, counts, trial)
                for entry in range(graph.tail_offsets[edge], graph.tail_offsets[edge + 1]):
                    trial += statistics[graph.tails[entry]]
                trial[8] = length
                for column in range(9):
                    totals[column] = trial[column] + background[column]
                value += sign * np.float32(single_bleu(totals) * totals[8])
            if value >= highest:
                highest = value
                best[node], inside[node] = edge, score
                kept[:] = trial
        if best[node] < 0:
            continue
        edge = best[node]
        sizes[node] = 1.0
        for entry in range(graph.tail_offsets[edge], graph.tail_offsets[edge + 1]):
            sizes[node] += sizes[graph.tails[entry]]
        if sign != 0.0:
            statistics[node] = kept
            n_left[node] = edge_context(graph, edge, left, n_left, left[node], False)
            n_right[node] = edge_context(graph, edge, right, n_right, right[node], True)
    return best, inside, sizes


@kernel
def _worth(statistics: NDArray[np.float32], background: NDArray[np.float32]) -> np.float32:
    """Return BLEU with the background, times the reference length of both."""
    totals = statistics + background
    return np.float32(single_bleu(totals) * totals[8])


@kernel
def _features(
    graph: SearchGraph, edges: NDArray[np.int64]
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """Columns and sums of a derivation's features: of each edge, then of its tails in turn."""
    size = 0
    for edge in edges:
        size += graph.indptr[edge + 1] - graph.indptr[edge]
    present = np.empty(size, dtype=np.int32)
    size = 0
    for edge in edges:
        for entry in range(graph.indptr[edge], graph.indptr[edge + 1]):
            present[size] = graph.columns[entry]
            size += 1
    columns = np.unique(present)
    # Backwards, the sums of an edge's tails have just been made: they are on top of the stack.
    stack = np.zeros((_height(graph, edges), len(columns)), dtype=np.float32)
    height = 0
    for edge in edges[::-1]:
        total = np.zeros(len(columns), dtype=np.float32)
        for entry in range(graph.indptr[edge], graph.indptr[edge + 1]):
            total[np.searchsorted(columns, graph.columns[entry])] = graph.values[entry]
        for _ in range(graph.tail_offsets[edge], graph.tail_offsets[edge + 1]):
            height -= 1
            total += stack[height]
        stack[height] = total
        height += 1
    return columns, stack[0].copy()


@kernel
def _height(graph: SearchGraph, edges: NDArray[np.int64]) -> int:
    """Return the most edges of a derivation that wait for their heads at once, read backwards."""
    height, highest = 0, 0
    for edge in edges[::-1]:
        height += 1 - (graph.tail_offsets[edge + 1] - graph.tail_offsets[edge])
        highest = max(highest, height)
    return highest


@kernel
def _words(graph: SearchGraph, edges: NDArray[np.int64]) -> NDArray[np.int32]:
    """Return numbers of the words of a derivation's translation."""
    size = 0
    for edge in edges:
        size += graph.target_offsets[edge + 1] - graph.target_offsets[edge]
    words = np.empty(size, dtype=np.int32)
    # Places in the targets of the edges that are being written out, and the next edge to begin.
    places = np.empty(len(edges), dtype=np.int64)
    ends = np.empty(len(edges), dtype=np.int64)
    height, following, size = 0, 0, 0
    while following == 0 or height > 0:
        begins = following == 0
        if not begins:
            if places[height - 1] == ends[height - 1]:
                height -= 1
                continue
            word = graph.targets[places[height - 1]]
            places[height - 1] += 1
            begins = word == -1
            if not begins:
                words[size] = word
                size += 1
        if begins:
            places[height] = graph.target_offsets[edges[following]]
            ends[height] = graph.target_offsets[edges[following] + 1]
            height += 1
            following += 1
    return words[:size]
