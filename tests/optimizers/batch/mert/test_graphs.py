"""MERT on search graphs by lists that are taken from them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from mosesplug.optimizers.batch.mert.graphs import merge_lists, search_lists_first
from mosesplug.optimizers.problem import Problem, Solution, no_progress
from mosesplug.tuning_set import TuningSet
from tests.forest.test_derivations import BLEU, SPACE, WEIGHTS, derivations_of


def problem_of(seed: int) -> Problem:
    derivations = derivations_of(seed, phrase_based=True)
    nothing = np.zeros((0, 9), np.int32)
    empty = TuningSet(
        SPACE,
        np.zeros(0, np.int64),
        np.zeros(1, np.int64),
        np.zeros((0, 2), np.float32),
        None,
        nothing,
        nothing[:, 0],
    )
    return Problem(empty, BLEU, source=derivations)


def test_merged_lists_are_those_of_all_parts() -> None:
    graphs = derivations_of(0, phrase_based=True)
    parts = [graphs.best_lists(WEIGHTS, 4), graphs.best_lists(-WEIGHTS, 3)]
    merged = merge_lists(parts)
    assert merged.n_hyps == sum(part.n_hyps for part in parts)
    scores = [part.model_scores(WEIGHTS) for part in (*parts, merged)]
    for sentence in range(2):
        own = [
            each[part.offsets[sentence] : part.offsets[sentence + 1]].tolist()
            for part, each in zip((*parts, merged), scores, strict=True)
        ]
        assert own[2] == own[0] + own[1]
    assert merged.stats.sum() == sum(part.stats.sum() for part in parts)
    assert merge_lists(parts[:1]) is parts[0]


def test_lists_are_searched_until_the_graphs_gain_nothing() -> None:
    """Weights that score lower in the graphs are dropped; the climb starts from the best."""
    problem = problem_of(1)
    good, bad = (np.array(each) for each in ([1.0, 2.0, 0.0], [-1.0, 0.5, 0.0]))
    if problem.candidates.score(good) < problem.candidates.score(bad):
        good, bad = bad, good
    sizes, starts = [], []

    def search(lists: Problem, start: Any, told: Any) -> Solution:
        assert lists.source is None
        sizes.append(lists.tuning_set.n_hyps)
        return Solution([good, bad][len(sizes) - 1], 0.0)

    def climb(graphs: Problem, start: Any, told: Any) -> Solution:
        starts.append(start.tolist())
        return Solution(start, 0.0)

    found = search_lists_first(problem, bad, 0.0, search, climb, no_progress)
    assert starts == [good.tolist()]
    assert found.weights.tolist() == good.tolist()
    assert len(sizes) == 2
    assert sizes[1] > sizes[0]


@pytest.mark.parametrize("seed", [1, 2])
def test_ends_in_an_optimum_of_the_graphs(seed: int) -> None:
    from mosesplug.optimizers.registry import algorithm

    mert = algorithm("mert").optimize
    from mosesplug.optimizers.batch.mert.options import MertOptions

    problem = problem_of(seed)
    options = MertOptions(restarts=3, polish=2)
    start = np.array([0.2, -0.3, 0.1])
    found = mert(problem, start, np.random.default_rng(1), options)
    assert found.score == problem.candidates.score(found.weights)
    assert found.score >= problem.candidates.score(start)
    again = replace(options, restarts=0, polish=0, graph_search="graphs")
    climbed = mert(problem, found.weights, np.random.default_rng(1), again)
    assert climbed.score == pytest.approx(found.score, abs=options.tolerance)
    assert {step.get("searched") for step in found.history} == {"lists", None}
