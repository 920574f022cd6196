"""Samples of derivations from the model distribution of a search graph.

The probability of drawing a derivation of score ``s`` is proportional to ``exp(scale * s)``. From
the goal down, each node draws one of its edges by the edge's share of the node's inside score
(Blunsom & Osborne 2008; Chatterjee & Cancedda 2010). The draws are independent, so a sample covers
the whole distribution, whereas the k best derivations differ by only a few words.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mosesplug.arrays import Floats, Ints, Ints32
from mosesplug.errors import DataError
from mosesplug.forest.inside_outside import log_inside
from mosesplug.forest.k_best import Derivations, translations
from mosesplug.forest.viterbi import MOST_EDGES
from mosesplug.hypergraph import Hypergraph
from mosesplug.kernels import kernel


@dataclass(frozen=True)
class TranslationCounts:
    """The distinct translations of a sample.

    Attributes:
        derivations: the best drawn derivation of each translation, the highest score first.
        counts: int64; how often each translation was drawn.
    """

    derivations: Derivations
    counts: Ints


def sample_derivations(
    graph: Hypergraph, scores: Floats, n: int, rng: np.random.Generator, *, scale: float = 1.0
) -> Derivations:
    """Draw independent derivations and return them in the order of the draws.

    Args:
        scores: float64 ``[n_edges]``; edges whose score is -inf or NaN are ignored.
        scale: positive factor of the scores; a larger one draws the best derivations more often.

    Returns:
        The drawn derivations with unscaled scores.

    Raises:
        ValueError: ``n`` is not positive, or ``scale`` is not a positive number.
        DataError: no derivation builds the goal, or one was drawn that has more than ten million
            edges.
    """
    if n < 1:
        raise ValueError(f"number of derivations must be positive: {n}")
    if not 0.0 < scale < np.inf:
        raise ValueError(f"scale must be positive and finite: {scale}")
    scaled = np.where(np.isnan(scores), -np.inf, scores * scale)
    inside, shares = log_inside(graph.edge_offsets, graph.tail_offsets, graph.tails, scaled)
    if not np.isfinite(inside[-1]):
        raise DataError("no derivation of the search graph has a finite score")
    sums, offsets, edges = _draw(
        graph.edge_offsets, graph.tail_offsets, graph.tails, scores, shares, n, rng
    )
    if not len(sums):
        raise DataError(f"a derivation of the search graph has over {MOST_EDGES:.0e} edges")
    return Derivations(sums, offsets, edges)


def count_translations(graph: Hypergraph, drawn: Derivations) -> TranslationCounts:
    """Return the distinct translations of a sample, the highest score first."""
    order = np.argsort(-drawn.scores, kind="stable").tolist()
    texts = [tuple(words) for words in translations(graph, drawn)]
    numbers: dict[tuple[bytes, ...], int] = {}
    rows: list[int] = []
    counts: list[int] = []
    for row in order:
        number = numbers.setdefault(texts[row], len(numbers))
        if number == len(rows):
            rows.append(row)
            counts.append(0)
        counts[number] += 1
    return TranslationCounts(
        drawn.some(np.array(rows, dtype=np.int64)), np.array(counts, dtype=np.int64)
    )


@kernel
def _draw(
    edge_offsets: Ints,
    tail_offsets: Ints,
    tails: Ints32,
    scores: Floats,
    shares: Floats,
    n: int,
    rng: np.random.Generator,
) -> tuple[Floats, Ints, Ints]:
    """Return scores, offsets and edges of the draws; no scores if one is too large."""
    sums = np.zeros(n)
    offsets = np.zeros(n + 1, dtype=np.int64)
    edges = np.empty(1024, dtype=np.int64)
    # Of each edge, the share of its node's earlier edges and of itself.
    reached = np.empty(len(shares))
    for node in range(len(edge_offsets) - 1):
        total = 0.0
        for edge in range(edge_offsets[node], edge_offsets[node + 1]):
            total += shares[edge]
            reached[edge] = total
    stack = np.empty(64, dtype=np.int64)
    place = 0
    for draw in range(n):
        stack[0] = len(edge_offsets) - 2
        height = 1
        while height > 0:
            height -= 1
            first, last = edge_offsets[stack[height]], edge_offsets[stack[height] + 1]
            point = rng.random() * reached[last - 1]
            edge = first + np.searchsorted(reached[first:last], point, side="right")
            if place == len(edges):
                edges = np.append(edges, np.empty_like(edges))
            edges[place] = edge
            place += 1
            if place - offsets[draw] > MOST_EDGES:
                return sums[:0].copy(), offsets, edges
            sums[draw] += scores[edge]
            low, high = tail_offsets[edge], tail_offsets[edge + 1]
            if height + high - low > len(stack):
                stack = np.append(stack, np.empty(height + high - low, dtype=np.int64))
            for entry in range(high - 1, low - 1, -1):
                stack[height] = tails[entry]
                height += 1
        offsets[draw + 1] = place
    return sums, offsets, edges[:place].copy()
