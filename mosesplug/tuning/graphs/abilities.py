"""Which algorithms learn from search graphs, by their metric and by how a run decodes."""

from __future__ import annotations

from mosesplug.metrics import Metric
from mosesplug.optimizers import Algorithm
from mosesplug.settings.configuration import Configuration

__all__ = ["can_learn_from_graphs", "learns_from_graphs"]


def can_learn_from_graphs(algorithm: Algorithm, metric: Metric) -> bool:
    """Return whether an algorithm learns from search graphs with a metric."""
    if algorithm.graphs is None:
        return False
    return algorithm.graphs == "source" or metric.can_search_graphs


def learns_from_graphs(configuration: Configuration, algorithm: Algorithm) -> bool:
    """Return whether a run learns from search graphs, not from lists that are taken from them.

    Mini-batches of a decoder and shards are lists.
    """
    if configuration.decoding.graphs is None or configuration.online is not None:
        return False
    if configuration.optimising.sharding is not None and algorithm.learner is not None:
        return False
    return can_learn_from_graphs(algorithm, configuration.metric)
