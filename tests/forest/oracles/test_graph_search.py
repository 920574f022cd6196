"""Hope and fear with wide beams against every derivation."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.oracles.graph_search import GraphSearch
from mosesplug.forest.oracles.hope_fear import weigh
from mosesplug.forest.search_graph import search_graph
from tests.forest.every_derivation import WORDS, every, random_graph
from tests.forest.oracles.test_hope_fear import whole_statistics

BACKGROUND = np.array([9, 10, 7, 9, 5, 8, 3, 7, 10], dtype=np.float32)
WEIGHTS = np.array([0.9, -0.7, 0.31], dtype=np.float32)


@pytest.mark.parametrize("seed", range(8))
def test_hope_and_fear_of_all_partial_derivations_are_exact(seed: int) -> None:
    rng = np.random.default_rng(seed)
    graph = random_graph(rng, phrase_based=seed % 2 == 0)
    listed = every(graph)
    texts = [graph.translation(np.array(edges)) for edges in listed.edges]
    references = [texts[rng.integers(len(texts))][1:], [WORDS[k] for k in rng.integers(0, 3, 6)]]
    search = GraphSearch([search_graph(graph, ReferenceNgramTree.of(references))])
    exact = search.widen(0)
    assert exact.n_sentences == 1
    scores = listed.uses @ graph.edge_scores(WEIGHTS.astype(np.float64))
    gains = [float(weigh(whole_statistics(text, references), BACKGROUND)) for text in texts]
    pair = exact.hope_and_fear(0, WEIGHTS, BACKGROUND, safe_hope=False)
    best = exact.model_best(0, WEIGHTS)
    assert best.score == pytest.approx(scores.max(), abs=1e-5)
    assert exact.lowest_score(0, WEIGHTS) == pytest.approx(scores.min(), abs=1e-5)
    for sign, found, gain in ((1, pair.hope, pair.hope_gain), (-1, pair.fear, pair.fear_gain)):
        assert found.values @ WEIGHTS[found.columns] == pytest.approx(found.score, abs=1e-5)
        value = float(found.score) + sign * float(gain)
        assert value == pytest.approx((scores + sign * np.array(gains)).max(), abs=1e-4)
    # A beam of one, as in Moses, finds nothing better.
    narrow = search.hope_and_fear(0, WEIGHTS, BACKGROUND, safe_hope=False)
    assert narrow.hope.score + narrow.hope_gain <= pair.hope.score + pair.hope_gain + 1e-4
    assert narrow.fear.score - narrow.fear_gain <= pair.fear.score - pair.fear_gain + 1e-4


def test_the_lowest_derivation_may_be_too_long_to_list() -> None:
    """It uses the first node 2**29 times; the other derivation of the goal is one edge."""
    tails = [[], *([node, node] for node in range(29)), [], [29]]
    graph: Any = SimpleNamespace(
        indptr=np.array([0, 1, *[1] * 31]),
        columns=np.zeros(1, dtype=np.int32),
        values=np.array([-1.0], dtype=np.float32),
        edge_offsets=np.array([*range(31), 32]),
        tail_offsets=np.cumsum([0, *map(len, tails)]),
        tails=np.concatenate(tails).astype(np.int32),
    )
    search = GraphSearch([graph])
    assert search.lowest_score(0, np.ones(1, dtype=np.float32)) == -(2.0**29)


def test_safe_hope_limits_the_model_score() -> None:
    graph = random_graph(np.random.default_rng(1), phrase_based=True)
    references = [graph.translation(np.array(every(graph).edges[0]))]
    search = GraphSearch([search_graph(graph, ReferenceNgramTree.of(references))]).widen(5)
    weights = 1000 * WEIGHTS
    free = search.hope_and_fear(0, weights, BACKGROUND, safe_hope=False)
    safe = search.hope_and_fear(0, weights, BACKGROUND, safe_hope=True)
    assert safe.hope_gain >= free.hope_gain
    assert search.widen(7).beam == 7
