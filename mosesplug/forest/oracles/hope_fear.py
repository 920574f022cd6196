"""Hope and fear derivations: the best by model score plus or minus BLEU.

The search is bottom-up and keeps one derivation per node, as Moses' ``kbmira`` does: the one with
the highest model score plus or minus the BLEU of its translation so far.
BLEU is computed with a background of earlier choices, see
``metrics.bleu.sentence``. Since n-grams cross edges, each node stores the
first and the last three words of its translation. The search has a beam of one: it is exact if
BLEU has no influence, and otherwise an approximation with the same result as Moses.

During the search, matches are counted edge by edge and clipped by an n-gram's total count in all
references; the reference length is proportional to the covered source words. The statistics of the
resulting derivation follow the definition of BLEU: matches are clipped over the whole translation
by the maximum count in one reference, and the length is that of the shortest reference.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np

from mosesplug.arrays import Floats, Floats32, Ints, Ints32
from mosesplug.candidates import HopeFear, ScoredDerivation
from mosesplug.errors import DataError
from mosesplug.forest.graph_bleu import (
    CONTEXT,
    count_edge,
    edge_context,
    most_touched,
    partial_length,
    translation_statistics,
)
from mosesplug.forest.growing import sort_ascending
from mosesplug.forest.pruning import score_in_single_precision
from mosesplug.forest.search_graph import SearchGraph
from mosesplug.forest.viterbi import MOST_EDGES, derivation_edges
from mosesplug.kernels import inlined_kernel, kernel, lean_kernel
from mosesplug.metrics.bleu.sentence import single_bleu

MODEL_SHARE = np.float32(5.0)
"""With a safe hope, maximum ratio of the model score to the BLEU of the hope."""


def hope_and_fear(
    graph: SearchGraph, weights: Floats32, background: Floats32, *, safe_hope: bool = False
) -> HopeFear:
    """Find the hope and the fear derivation.

    Args:
        graph: the graph of the sentence.
        weights: float32, one per column.
        background: float32 ``[9]``; decayed sum of the statistics of earlier choices.
        safe_hope: if the model score of the hope is more than five times its gain, scale the
            model score down to that ratio and search again.

    Raises:
        DataError: see ``find``.
    """
    hope = find(graph, weights, background, sign=1.0)
    gain = weigh(hope.statistics, background)
    size = abs(hope.score)
    if safe_hope and size > np.float32(1e-8):
        scale = float(abs(gain * MODEL_SHARE) / size)
        if scale < 1.0:
            hope = find(graph, weights, background, sign=1.0, scale=scale)
            gain = weigh(hope.statistics, background)
    fear = find(graph, weights, background, sign=-1.0)
    return HopeFear(hope, fear, gain, weigh(fear.statistics, background))


def find(
    graph: SearchGraph,
    weights: Floats32,
    background: Floats32,
    *,
    sign: float = 0.0,
    scale: float = 1.0,
) -> ScoredDerivation:
    """Find the derivation of highest ``scale * score + sign * gain``.

    The last one wins ties.

    Args:
        graph: the graph of the sentence.
        weights: float32, one per column; absolute values up to 1e-8 count as 0.
        background: float32 ``[9]``; statistics added to those of the derivation.
        sign: sign of the gain; 0 uses the model score alone, which makes the search exact.
        scale: factor of the model score.

    Raises:
        DataError: no derivation builds the goal with a finite score, or the best one has more
            than ten million edges.
    """
    scores = score_in_single_precision(graph.indptr, graph.columns, graph.values, weights)
    best, inside, sizes = _search(graph, scores, background, np.float32(scale), np.float32(sign))
    if best[-1] < 0 or not np.isfinite(inside[-1]):
        raise DataError("no derivation of the search graph has a finite score")
    if sizes[-1] > MOST_EDGES:
        raise DataError(f"the best derivation of the search graph has {sizes[-1]:.3g} edges")
    edges = derivation_edges(graph.tail_offsets, graph.tails, best, int(sizes[-1]))
    return describe_derivation(graph, edges, inside[-1])


def describe_derivation(graph: SearchGraph, edges: Ints, score: np.float32) -> ScoredDerivation:
    """Return a derivation with its features, BLEU statistics and given model score."""
    columns, values = _features(graph, edges)
    statistics = translation_statistics(graph.tree, _words(graph, edges))
    return ScoredDerivation(edges, columns, values, statistics, score)


def _search(
    graph: SearchGraph, scores: Floats32, background: Floats32, scale: np.float32, sign: np.float32
) -> tuple[Ints, Floats32, Floats]:
    """Find each node's best edge, its score and its derivation's number of edges.

    The edge is -1 if the node has no derivation.
    """
    n_nodes = len(graph.edge_offsets) - 1
    best = np.full(n_nodes, -1, dtype=np.int64)
    inside = np.full(n_nodes, -np.inf, dtype=np.float32)
    sizes = np.zeros(n_nodes)
    scratch = _Scratch(
        np.zeros((n_nodes, 9), dtype=np.float32),
        np.empty((n_nodes, CONTEXT), dtype=np.int32),
        np.empty((n_nodes, CONTEXT), dtype=np.int32),
        np.zeros(n_nodes, dtype=np.int64),
        np.zeros(n_nodes, dtype=np.int64),
        np.zeros(len(graph.tree.total_counts), dtype=np.int32),
        np.empty(CONTEXT, dtype=np.int32),
        np.empty(most_touched(graph), dtype=np.int32),
        np.zeros((3, 9), dtype=np.float32),
    )
    _choose_edges(graph, scores, background, scale, sign, scratch, best, inside, sizes)
    return best, inside, sizes


class _Scratch(NamedTuple):
    """Working memory of a search.

    Attributes:
        statistics: float32 ``[n_nodes, 9]``, zeros; of each node's translation.
        left, right: int32 ``[n_nodes, 3]``; its first and last words.
        n_left, n_right: int64 ``[n_nodes]``, zeros; number of these words.
        counts, ngrams, touched: those of ``count_edge``.
        rows: float32 ``[3, 9]``; statistics of an edge, of the best edge, and with the background.
    """

    statistics: Floats32
    left: Ints32
    right: Ints32
    n_left: Ints
    n_right: Ints
    counts: Ints32
    ngrams: Ints32
    touched: Ints32
    rows: Floats32


@lean_kernel
def _choose_edges(
    graph: SearchGraph,
    scores: Floats32,
    background: Floats32,
    scale: np.float32,
    sign: np.float32,
    scratch: _Scratch,
    best: Ints,
    inside: Floats32,
    sizes: Floats,
) -> None:
    """Write ``best``, ``inside`` and ``sizes``, the results of ``_search``."""
    statistics, left, right, n_left, n_right, counts, ngrams, touched, rows = scratch
    trial, kept, totals = rows[0], rows[1], rows[2]
    for node in range(len(best)):
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
                count_edge(
                    graph, edge, left, n_left, right, n_right, counts, ngrams, touched, trial
                )
                for entry in range(graph.tail_offsets[edge], graph.tail_offsets[edge + 1]):
                    for column in range(9):
                        trial[column] += statistics[graph.tails[entry], column]
                trial[8] = length
                for column in range(9):
                    totals[column] = trial[column] + background[column]
                value += sign * np.float32(single_bleu(totals) * totals[8])
            if value >= highest:
                highest = value
                best[node], inside[node] = edge, score
                for column in range(9):
                    kept[column] = trial[column]
        if best[node] < 0:
            continue
        edge = best[node]
        sizes[node] = 1.0
        for entry in range(graph.tail_offsets[edge], graph.tail_offsets[edge + 1]):
            sizes[node] += sizes[graph.tails[entry]]
        if sign != 0.0:
            for column in range(9):
                statistics[node, column] = kept[column]
            n_left[node] = edge_context(graph, edge, left, n_left, left[node], False)
            n_right[node] = edge_context(graph, edge, right, n_right, right[node], True)


@kernel
def weigh(statistics: Floats32, background: Floats32) -> np.float32:
    """Return BLEU with the background, times the reference length of both."""
    totals = statistics + background
    return np.float32(single_bleu(totals) * totals[8])


@kernel
def _features(graph: SearchGraph, edges: Ints) -> tuple[Ints32, Floats32]:
    """Return columns and sums of a derivation's features.

    Each edge is summed first, then its tails.
    """
    size = 0
    for edge in edges:
        size += graph.indptr[edge + 1] - graph.indptr[edge]
    present = np.empty(size, dtype=np.int32)
    size = 0
    for edge in edges:
        for entry in range(graph.indptr[edge], graph.indptr[edge + 1]):
            present[size] = graph.columns[entry]
            size += 1
    sort_ascending(present, size)
    n_columns = 0
    for entry in range(size):
        if n_columns == 0 or present[entry] != present[n_columns - 1]:
            present[n_columns] = present[entry]
            n_columns += 1
    columns = present[:n_columns].copy()
    # Backwards, the sums of an edge's tails have just been made: they are on top of the stack.
    stack = np.zeros((_height(graph, edges), len(columns)), dtype=np.float32)
    height = 0
    for edge in edges[::-1]:
        total = np.zeros(len(columns), dtype=np.float32)
        for entry in range(graph.indptr[edge], graph.indptr[edge + 1]):
            total[_find(columns, graph.columns[entry])] = graph.values[entry]
        for _ in range(graph.tail_offsets[edge], graph.tail_offsets[edge + 1]):
            height -= 1
            for place in range(n_columns):
                total[place] += stack[height, place]
        for place in range(n_columns):
            stack[height, place] = total[place]
        height += 1
    return columns, stack[0].copy()


@inlined_kernel
def _find(columns: Ints32, column: int) -> int:
    """Return the place of a column in ascending ones."""
    first, last = 0, len(columns) - 1
    while first < last:
        middle = (first + last) // 2
        if columns[middle] < column:
            first = middle + 1
        else:
            last = middle
    return first


@kernel
def _height(graph: SearchGraph, edges: Ints) -> int:
    """Return the maximum stack size for processing a derivation's edges backwards."""
    height, highest = 0, 0
    for edge in edges[::-1]:
        height += 1 - (graph.tail_offsets[edge + 1] - graph.tail_offsets[edge])
        highest = max(highest, height)
    return highest


@kernel
def _words(graph: SearchGraph, edges: Ints) -> Ints32:
    """Return the word numbers of a derivation's translation."""
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


@contextmanager
def name_sentence(sentence: int) -> Iterator[None]:
    """Add the sentence id to the message of a ``DataError``."""
    try:
        yield
    except DataError as error:
        raise DataError(f"sentence {sentence}: {error}") from None
