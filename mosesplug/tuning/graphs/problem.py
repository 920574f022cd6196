"""The problem that an algorithm solves on search graphs.

It is solved in a run, or without a decoder.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from mosesplug.forest.derivations import GraphDerivations
from mosesplug.forest.line_search.graph_space import graph_source
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.oracles.hope_fear import GraphSearch
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
) -> Problem:
    """Return the problem with search graphs instead of lists.

    Args:
        algorithm: one that learns from graphs with the problem's metric.
        graphs: the graphs of each sentence; some may have none.
        references: ``[sentence][reference][word]``.
    """
    if algorithm.graphs == "search":
        filled = zip(graphs, references, strict=True)
        found = [
            search_graph(unite_graphs(each), ReferenceNgramTree.of(words))
            for each, words in filled
            if each
        ]
        return replace(problem, search=GraphSearch(found))
    space, threads = problem.tuning_set.space, problem.threads
    united = [[unite_graphs(each)] if each else [] for each in graphs]
    source = graph_source(united, space, problem.metric, prepared, threads)
    derivations = GraphDerivations(
        tuple(each[0] for each in united if each),
        tuple(words for each, words in zip(united, references, strict=True) if each),
        source,
        space,
        threads,
    )
    return replace(problem, source=source, derivations=derivations)
