"""The upper envelope semiring, as the papers write it.

An element is a set of lines of which each is the highest somewhere. The sum of two is what is left
of their union; their product has the sums of a line of each, which are those of the two that lead
at the same place (the Minkowski sum of the convex hulls of the lines as points). Macherey et al.
(2008), Kumar et al. (2009) and Dyer et al. (2010) have it. Numbers are fractions, so that nothing
is rounded.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mosesplug.forest import Hypergraph

Line = tuple[Fraction, Fraction]
"""Slope and intercept."""
Lines = list[Line]
"""Of an element, by ascending slopes."""


def meeting(left: Line, right: Line) -> Fraction:
    """Where a line passes one of less slope."""
    return (left[1] - right[1]) / (right[0] - left[0])


def thresholds(lines: Lines) -> list[Fraction]:
    """Where each line but the first begins to lead."""
    return [meeting(left, right) for left, right in pairwise(lines)]


def added(*parts: Lines) -> Lines:
    """The upper envelope of the lines of all parts."""
    highest = dict(sorted(line for part in parts for line in part))  # one of each slope
    hull: Lines = []
    for line in highest.items():
        # The last one leads nowhere if this passes it before it has passed the one below it.
        while len(hull) > 1 and meeting(hull[-1], line) <= meeting(hull[-2], hull[-1]):
            hull.pop()
        hull.append(line)
    return hull


def multiplied(a: Lines, b: Lines) -> Lines:
    """Sums of the lines of both that lead at the same place, walked from left to right."""
    if not (a and b):
        return []
    ends_a, ends_b = thresholds(a), thresholds(b)
    i = j = 0
    found = [(a[0][0] + b[0][0], a[0][1] + b[0][1])]
    while i < len(ends_a) or j < len(ends_b):
        place = min([*ends_a[i : i + 1], *ends_b[j : j + 1]])
        i += place in ends_a[i : i + 1]
        j += place in ends_b[j : j + 1]
        found.append((a[i][0] + b[j][0], a[i][1] + b[j][1]))
    return found


def goal_envelope(
    graph: Hypergraph, intercepts: NDArray[np.float64], slopes: NDArray[np.float64]
) -> Lines:
    """The inside algorithm: for every node the sum of its edges, each times those of its tails."""
    inside: list[Lines] = []
    for begin, end in pairwise(graph.edge_offsets.tolist()):
        ways = []
        for edge in range(begin, end):
            way = [(Fraction(float(slopes[edge])), Fraction(float(intercepts[edge])))]
            for tail in graph.tails[graph.tail_offsets[edge] : graph.tail_offsets[edge + 1]]:
                way = multiplied(way, inside[tail])
            ways.append(way)
        inside.append(added(*ways))
    return inside[-1]
