"""Learn from the search graphs of all iterations instead of their n-best lists.

MERT searches the derivations of all graphs of a sentence, learners of margins find hope and fear in
them, and expected scores are sums over all derivations. Other algorithms learn from n-best lists
that are taken from the graphs, and so do those of BLEU if the metric is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from formats.moses.ini_features import UNKNOWN_WORD
from mosesplug.errors import UsageError
from mosesplug.optimizers import Algorithm, Problem
from mosesplug.settings.checks import reject_combinations
from mosesplug.settings.configuration import Configuration
from mosesplug.store import NBestStore
from mosesplug.tuning.context import RunData, learns_from_graphs
from mosesplug.tuning.graphs.features import read_configured_features
from mosesplug.tuning.graphs.problem import add_graphs
from mosesplug.tuning.graphs.storing import read_sentence_references


def check_graphs(configuration: Configuration, algorithm: Algorithm) -> None:
    """Reject settings that exclude search graphs from the decoder."""
    decoding = configuration.decoding
    if decoding.graphs is None:
        return
    wrappers = decoding.decoder.wrappers
    rejected = {
        "{--lattice-samples}": decoding.lattice_samples > 0,
        "{--transform}": decoding.transform is not None,
        "{--jobs}": "jobs" in wrappers,
        "{--multi-moses}": "multi-moses" in wrappers,
        "a decoder that is search graphs (forest:)": decoding.decoder.stored_graphs is not None,
    }
    reject_combinations("{--forest}", rejected)
    if learns_from_graphs(configuration, algorithm):
        configuration.optimization.selection.reject_counts()
    metric = configuration.metric
    if "updates" in algorithm.asks and not metric.can_search_graphs:
        raise UsageError(
            f"{algorithm.name} learns from search graphs by BLEU with case, not by"
            f" {metric.signature()}: leave out {{--forest}} (--hg-mira), or the other metric"
        )


def read_fixed_weights(
    configuration: Configuration, config: Path, algorithm: Algorithm
) -> Mapping[str, float]:
    """Return weights of untuned features, if search graphs are learned from.

    MIRA uses them, too, although Moses' ``kbmira`` has 0 there: derivations of one sentence differ
    in unknown words (a word may be known in longer phrases only), and the decoder scores that.
    """
    if not learns_from_graphs(configuration, algorithm):
        return {}
    return read_configured_features(config).fixed_weights


def use_graphs(
    problem: Problem,
    data: RunData,
    algorithm: Algorithm,
    store: NBestStore,
    iterations: Iterable[int],
) -> Problem:
    """Return the problem with the search graphs of some iterations instead of lists.

    Args:
        iterations: whose graphs are used; at least one has some.
    """
    with store.graphs(iterations) as graphs:
        space = problem.tuning_set.space
        tail = np.array([name in data.fixed_weights for name in space.sparse], dtype=np.bool_)
        own = replace(
            problem,
            is_fixed=np.concatenate([np.zeros(space.n_dense, np.bool_), tail]),
            keeps_scale=keeps_scale(data.fixed_weights),
        )
        every = [graphs.of_sentence(number) for number in range(graphs.n_sentences)]
        words = read_sentence_references(data.configuration, graphs.n_sentences)
        weights = None if data.sentence_weights is None else data.sentence_weights.values
        return add_graphs(own, algorithm, every, words, data.references, weights)


def keeps_scale(fixed: Mapping[str, float]) -> bool:
    """Return whether the scale of the tuned weights matters, given the fixed weights.

    It does not with the penalty of unknown words alone, which outweighs the rest at any scale.
    """
    return any(weight and not name.startswith(UNKNOWN_WORD) for name, weight in fixed.items())
