"""Compute the step values of a lattice that Moses wrote.

Moses gives the first word of each phrase the feature values of the whole hypothesis, from the
beginning of the sentence on, and the other words of the phrase zeros. The value of a step
is the difference to the previous hypothesis. This is well defined, since every hypothesis has its
own node; only the last node, whose incoming links have no words, joins several.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from formats.graphs.slf_records import Lattice

__all__ = ["subtract_sums"]


def subtract_sums(
    lattice: Lattice,
    tails: Sequence[int],
    heads: Sequence[int],
    first: int,
    totals: NDArray[np.float64],
) -> NDArray[np.float64]:
    """Return the feature values of each link, without those of the links before it.

    Args:
        lattice: the lattice, with links in the order of the search.
        tails: tail node of each link.
        heads: head node of each link.
        first: the node where all sums are 0.
        totals: float64 ``[n_links, n_features]``; the sums in the file.

    Returns:
        float64 ``[n_links, n_features]``.

    Raises:
        FormatError: a link precedes a link to its tail, or two hypotheses share a node.
    """
    nothing = np.zeros(totals.shape[1])
    reached = {first: nothing}
    added = np.zeros_like(totals)
    has_values = (totals != 0).any(axis=1)
    for row, (tail, head, link) in enumerate(zip(tails, heads, lattice.links, strict=True)):
        before = reached.get(tail)
        if before is None:
            raise lattice.error(
                link.line,
                "a link precedes the links to its start node",
                "Keep Moses' order of links: their values are cumulative",
            )
        if b"W" not in link.fields:
            continue
        if head in reached:
            raise lattice.error(
                link.line,
                "two hypotheses lead to the same node",
                "Use a lattice as Moses writes it: its values are cumulative",
            )
        if has_values[row]:
            added[row] = totals[row] - before
            reached[head] = totals[row]
        else:
            reached[head] = before
    return added
