"""Sums over all derivations of recorded search graphs, and what is computed with them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.references import read_reference
from formats.weights.named import read_named_weights
from mosesplug.forest import Hypergraph, viterbi
from mosesplug.forest.derivations import choose_oracles
from mosesplug.forest.inside_outside import expectation_and_gradient, log_inside, posterior
from mosesplug.forest.mbr import Criterion, decide_in_graph
from mosesplug.forest.ngrams.posteriors import expected_counts, occurrence_probabilities
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.ngrams.split import split, split_for
from mosesplug.forest.objectives import ScoredGraph, risk, softmax_margin, xbleu
from mosesplug.learning.weighted_graphs import read_graph_weights, read_weighted_graphs
from mosesplug.metrics.bleu.linear import LinearBleu

TYPICAL = 17_500
"""Edges of a typical graph."""
SCALE = 10.0
GAINS = LinearBleu.of_precisions(0.6, 0.6)


@dataclass(frozen=True)
class Recorded:
    """The graphs, a typical one of them, and their weights."""

    graphs: list[Hypergraph]
    references: list[ReferenceNgramTree]
    place: int
    weights: NDArray[np.float64]

    @property
    def graph(self) -> Hypergraph:
        return self.graphs[self.place]

    @property
    def scores(self) -> NDArray[np.float64]:
        return SCALE * self.graph.edge_scores(self.weights)


@pytest.fixture(scope="module")
def recorded(multi30k: Path) -> Recorded:
    directory = multi30k / "forest" / "hypergraph"
    weights = read_graph_weights(read_named_weights(multi30k / "forest" / "init.dense"), [])
    found = list(read_weighted_graphs([directory], weights))
    graphs = [one.graph for one in found]
    lines = read_reference(multi30k / "text" / "dev.en")
    references = [ReferenceNgramTree.of([lines[one.sentence].split()]) for one in found]
    place = min(range(len(graphs)), key=lambda k: abs(graphs[k].n_edges - TYPICAL))
    # Graphs before the first with an unknown word have a column less.
    longest = max((one.weights for one in found), key=len)
    return Recorded(graphs, references, place, longest)


ONE = [
    "viterbi",
    "log inside",
    "posterior",
    "gradient of an expectation",
    "split",
    "split for refs",
]


@pytest.mark.parametrize("what", ONE)
def test_one_graph(recorded: Recorded, what: str, benchmark: Any) -> None:
    graph, scores = recorded.graph, recorded.scores
    arrays = graph.edge_offsets, graph.tail_offsets, graph.tails
    found = posterior(graph, scores)
    values = np.random.default_rng(1).normal(size=graph.n_edges)
    references = recorded.references[recorded.place]
    work = {
        "viterbi": lambda: viterbi(graph, scores),
        "log inside": lambda: log_inside(*arrays, scores),
        "posterior": lambda: posterior(graph, scores),
        "gradient of an expectation": lambda: expectation_and_gradient(graph, found, values),
        "split": lambda: split(graph),
        "split for refs": lambda: split_for(graph, references),
    }[what]
    benchmark.pedantic(work, rounds=10, warmup_rounds=1)


@pytest.mark.parametrize("what", ["expected counts", "occurrence"])
def test_ngrams_of_one_graph(recorded: Recorded, what: str, benchmark: Any) -> None:
    found = split(recorded.graph)
    distribution = posterior(found, recorded.scores[found.origins])
    work = {"expected counts": expected_counts, "occurrence": occurrence_probabilities}[what]
    benchmark.pedantic(lambda: work(found, distribution), rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("what", ["softmax loss", "risk", "xbleu"])
def test_objectives_of_sixty_graphs(recorded: Recorded, what: str, benchmark: Any) -> None:
    weights = SCALE * recorded.weights
    scored = [
        ScoredGraph.of(*pair) for pair in zip(recorded.graphs, recorded.references, strict=True)
    ]
    oracles = [choose_oracles(graph, graph.gains(GAINS), 0.1)[0] for graph in scored]
    work = {
        "softmax loss": lambda: softmax_margin(scored, oracles, None, weights),
        "risk": lambda: risk(scored, weights, GAINS),
        "xbleu": lambda: xbleu(scored, weights),
    }[what]
    benchmark.pedantic(work, rounds=5, warmup_rounds=1)


@pytest.mark.parametrize("kind", ["consensus", "list", "lattice"])
def test_decisions_of_sixty_graphs(recorded: Recorded, kind: Any, benchmark: Any) -> None:
    criterion = Criterion(kind, SCALE, 200, None, GAINS)

    def work() -> None:
        for graph in recorded.graphs:
            decide_in_graph(graph, recorded.weights, criterion)

    benchmark.pedantic(work, rounds=1, warmup_rounds=1)
