"""Options of both tuning commands for search graphs from the decoder."""

from __future__ import annotations

from mosesplug.errors import UsageError
from mosesplug.settings.configuration import Graphs

__all__ = ["graphs_of"]


def graphs_of(forest: bool, edges: int | None, every: int | None) -> Graphs | None:
    """What is done with search graphs; None where they are not asked for.

    Args:
        forest: whether they are.
        edges: of a graph for each word of the reference; None for the default.
        every: iterations from one decoding to the next; None for 1.

    Raises:
        UsageError: a setting without graphs, or too low.
    """
    if not forest:
        for given, name in ((edges, "forest-edges"), (every, "redecode-every")):
            if given is not None:
                raise UsageError(f"--{name} is of --forest: give both, or neither")
        return None
    default = Graphs()
    if edges is None:
        edges = default.edges
    if every is None:
        every = default.every
    if edges < 0:
        raise UsageError(f"--forest-edges must be at least 0 (for all), not {edges}")
    if every < 1:
        raise UsageError(f"--redecode-every must be at least 1, not {every}")
    return Graphs(edges, every)
