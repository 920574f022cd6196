"""Options of both tuning commands for search graphs from the decoder."""

from __future__ import annotations

from mosesplug.errors import UsageError
from mosesplug.tuning.configuration import Graphs

__all__ = ["graphs_of"]


def graphs_of(forest: bool, edges: int | None) -> Graphs | None:
    """What is done with search graphs; None where they are not asked for.

    Args:
        forest: whether they are.
        edges: of a graph for each word of the reference; None for the default.

    Raises:
        UsageError: ``edges`` without graphs, or negative.
    """
    if not forest:
        if edges is not None:
            raise UsageError("--forest-edges is of --forest: give both, or neither")
        return None
    if edges is None:
        return Graphs()
    if edges < 0:
        raise UsageError(f"--forest-edges must be at least 0 (for all), not {edges}")
    return Graphs(edges)
