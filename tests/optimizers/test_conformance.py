"""Conformance tests of every registered optimizer, which plug-ins share."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import pytest

from mosesplug.errors import UsageError
from mosesplug.forest.derivations import GraphDerivations
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.oracles.graph_search import GraphSearch
from mosesplug.forest.search_graph import search_graph
from mosesplug.optimizers.registry import Algorithm, algorithm, algorithms
from mosesplug.testing import ALGORITHM_CHECKS
from mosesplug.testing.algorithms import check_end, list_ends
from tests.optimizers.batch.mert.test_graphs import problem_of

pytestmark = [
    pytest.mark.parametrize("tuner", algorithms().values(), ids=lambda each: each.name),
    pytest.mark.usefixtures("few_restarts"),
]


@pytest.mark.parametrize("check", ALGORITHM_CHECKS.values(), ids=ALGORITHM_CHECKS.keys())
def test_conformance(tuner: Algorithm, check: Callable[[Algorithm], None]) -> None:
    check(tuner)


def test_ends_of_ranges_on_graphs(tuner: Algorithm) -> None:
    problem = problem_of(1)
    if "updates" in tuner.asks:
        graphs = problem.source
        assert isinstance(graphs, GraphDerivations)
        pairs = zip(graphs.graphs, graphs.references, strict=True)
        searched = [search_graph(graph, ReferenceNgramTree.of(words)) for graph, words in pairs]
        problem = replace(problem, source=GraphSearch(searched))
    for options in list_ends(tuner) if tuner.graphs else ():
        check_end(tuner, problem, options)


def test_is_found_by_name(tuner: Algorithm) -> None:
    assert algorithm(tuner.name).options is tuner.options
    with pytest.raises(UsageError, match=re.escape(tuner.name)):
        algorithm("no-such-thing")
