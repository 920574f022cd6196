"""Upper envelopes of search graphs: derivations that win somewhere along a line.

Along ``w + x d`` the score of an edge is ``intercept + slope x``. The score of a derivation is a
line too, the sum over its edges. The derivations that win somewhere form the upper envelope of all
these lines (Macherey et al. 2008; Kumar et al. 2009).

The result equals that of the inside algorithm in the semiring of envelopes (Dyer et al. 2010): the
envelope of a node is that of the union of its edges' envelopes, and the envelope of an edge is the
Minkowski sum of its own line and its tails' envelopes. But most nodes of a decoder's graph have
lines that are in no envelope of the goal. The search therefore computes only the goal's envelope,
by decoding at intersections of its lines (Eisner & Severance 1976). This takes about an eighth of
the time. See ``envelope_search``.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from mosesplug.errors import DataError
from mosesplug.forest.line_search.envelope_search import NO_DERIVATION, LineGraph, find_winners
from mosesplug.forest.viterbi import MOST_EDGES
from mosesplug.hypergraph import Hypergraph


@dataclass(frozen=True)
class Envelope:
    """The derivations of the goal that win somewhere on a line, from left to right.

    Attributes:
        thresholds: float64 ``[n_lines - 1]``, ascending; derivation ``i`` wins between
            ``thresholds[i - 1]`` and ``thresholds[i]``.
        intercepts, slopes: float64 ``[n_lines]``; slopes ascend.
        derivations: int64 ``[n_lines, 2]``; start and end of each derivation's edges in ``edges``.
        edges: int64; within a derivation, each edge before those of its tails.
    """

    thresholds: NDArray[np.float64]
    intercepts: NDArray[np.float64]
    slopes: NDArray[np.float64]
    derivations: NDArray[np.int64]
    edges: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.intercepts)

    def derivation(self, number: int) -> NDArray[np.int64]:
        """Return the edges of a derivation, int64, each before those of its tails."""
        begin, end = self.derivations[number]
        return self.edges[begin:end]


def envelope(
    graph: Hypergraph, intercepts: NDArray[np.float64], slopes: NDArray[np.float64]
) -> Envelope:
    """Return the upper envelope over all derivations of a graph.

    Of derivations with the same line, the envelope has the one that decoding finds: at every node
    the later of two tied edges wins.

    Args:
        graph: a graph whose goal can be built.
        intercepts: float64 ``[n_edges]``, ``w . h`` of each edge.
        slopes: float64 ``[n_edges]``, ``d . h`` of each edge.

    Raises:
        DataError: an edge's intercept or slope is not finite, no derivation builds the goal, or
            a winning derivation has more than ten million edges.
    """
    wrong = np.flatnonzero(~(np.isfinite(intercepts) & np.isfinite(slopes)))
    if len(wrong):
        edge = int(wrong[0])
        raise DataError(
            f"edge {edge} of the search graph scores {intercepts[edge]:g} + {slopes[edge]:g} x, "
            "and both must be finite numbers"
        )
    winners = find_winners(
        LineGraph(graph.edge_offsets, graph.tail_offsets, graph.tails, intercepts, slopes)
    )
    if winners.size < 0:
        raise DataError(explain_failure(winners.size))
    lines = winners.lines[: winners.size]
    return Envelope(
        winners.starts[1 : winners.size].copy(),
        lines[:, 0].copy(),
        lines[:, 1].copy(),
        winners.derivations[: winners.size].copy(),
        winners.edges,
    )


def explain_failure(size: int) -> str:
    """Return the error message for ``NO_DERIVATION`` or ``TOO_LARGE``."""
    if size == NO_DERIVATION:
        return "no derivation of the search graph builds its goal"
    return f"a derivation of the search graph has more than {MOST_EDGES:.3g} edges"
