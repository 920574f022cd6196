"""The problem that an algorithm solves on search graphs.

It is solved in a run, or without a decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mosesplug.arrays import SentenceValues
from mosesplug.forest.derivations import GraphDerivations
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.oracles.graph_search import GraphSearch
from mosesplug.forest.search_graph import search_graph
from mosesplug.forest.union import unite_graphs
from mosesplug.hypergraph import Hypergraph
from mosesplug.metrics import PreparedReferences
from mosesplug.optimizers import Algorithm, Problem


def add_graphs(
    problem: Problem,
    algorithm: Algorithm,
    graphs: Sequence[Sequence[Hypergraph]],
    references: Sequence[Sequence[Sequence[bytes]]],
    prepared: PreparedReferences,
    sentence_weights: SentenceValues | None = None,
) -> Problem:
    """Return the problem with search graphs instead of lists.

    Args:
        algorithm: one that learns from graphs with the problem's metric.
        graphs: the graphs of each sentence; some may have none.
        references: ``[sentence][reference][word]``.
        sentence_weights: the weight of each sentence; those of weight 0 are left out. None: 1 each.
    """
    counts = None
    if sentence_weights is not None and (sentence_weights != 1.0).any():
        graphs = [
            own if weight else () for own, weight in zip(graphs, sentence_weights, strict=True)
        ]
        counts = sentence_weights[[len(own) > 0 for own in graphs]]
    if "updates" not in algorithm.asks:
        derivations = GraphDerivations.of(
            graphs,
            references,
            problem.tuning_set.space,
            problem.metric,
            prepared,
            problem.threads,
            counts,
        )
        return replace(problem, source=derivations)
    filled = zip(graphs, references, strict=True)
    searched = [
        search_graph(unite_graphs(own), ReferenceNgramTree.of(words))
        for own, words in filled
        if own
    ]
    return replace(problem, source=GraphSearch(searched, sentence_weights=counts))
