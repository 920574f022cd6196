"""Weights of sentences on search graphs: weight 2 stands for the graph of a sentence twice."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.candidates import Candidates, Objective
from mosesplug.optimizers import algorithm
from mosesplug.optimizers.batch.mira.hypotheses import GraphHypotheses
from mosesplug.optimizers.batch.mira.state import MiraSettings, MiraState
from mosesplug.optimizers.problem import Problem, no_progress
from mosesplug.tuning.graphs.problem import add_graphs
from mosesplug.tuning_set import SparseRows, TuningSet
from tests.forest.every_derivation import WORDS, every, random_graph
from tests.forest.test_derivations import BLEU, GAINS, SPACE, WEIGHTS

COUNTS = np.array([2.0, 1.0, 0.0, 3.0])


def make_problem(name: str, *, repeats: bool = False, counts: Any = COUNTS) -> Problem:
    """Four sentences with weights, or each as often as its weight says."""
    rng = np.random.default_rng(7)
    graphs, words = [], []
    for place in range(len(COUNTS)):
        graph = random_graph(rng, phrase_based=place % 2 == 0)
        near = graph.translation(np.array(every(graph).edges[rng.integers(8)]))
        graphs.append([graph])
        words.append([near[1:], [WORDS[k] for k in rng.integers(0, len(WORDS), len(near) + 1)]])
    if repeats:
        order = np.repeat(np.arange(len(COUNTS)), COUNTS.astype(np.int64)).tolist()
        graphs, words, counts = [graphs[k] for k in order], [words[k] for k in order], None
    lines = [[b" ".join(own[k]) for own in words] for k in range(2)]
    nothing = TuningSet(
        SPACE,
        np.zeros(0, np.int64),
        np.zeros(1, np.int64),
        np.zeros((0, 2), np.float32),
        SparseRows.empty(0),
        np.zeros((0, 9), np.int32),
        np.zeros(0, np.int32),
    )
    bare = Problem(nothing, BLEU, np.ones(3, dtype=np.bool_))
    return add_graphs(bare, algorithm(name), graphs, words, BLEU.prepare(lines), counts)


def candidates(*, repeats: bool = False, counts: Any = COUNTS) -> Any:
    return make_problem("risk", repeats=repeats, counts=counts).candidates


def check_alike(one: Objective, other: Objective) -> None:
    for factor in (0.0, 1.0, 3.0):
        (value, gradient), (expected, slopes) = one(factor * WEIGHTS), other(factor * WEIGHTS)
        assert value == pytest.approx(expected, rel=1e-12)
        assert gradient == pytest.approx(slopes, rel=1e-9, abs=1e-12)


def test_scores_and_surfaces_are_those_of_repeated_graphs() -> None:
    weighted, repeated = candidates(), candidates(repeats=True)
    assert weighted.n_sentences == 3
    assert weighted.first_best(WEIGHTS).tolist() == repeated.first_best(WEIGHTS).tolist()
    active = np.ones(3, dtype=np.bool_)
    spaces = [source.lines(active, WEIGHTS) for source in (weighted, repeated)]
    assert spaces[0].spread == pytest.approx(spaces[1].spread)
    for axis in range(3):
        (starts, scores), (others, expected) = (
            next(iter(space.along_axes(np.array([axis]), space.at(WEIGHTS)))) for space in spaces
        )
        # The thresholds of copies are equal: only the last of them ends an interval.
        ends = np.append(np.flatnonzero(np.diff(others) > 0.0), len(others) - 1)
        assert starts == pytest.approx(others[ends])
        assert scores == pytest.approx(expected[np.append(0, ends + 1)])
        halves = candidates(counts=COUNTS / 2).lines(active, WEIGHTS)
        _, half = next(iter(halves.along_axes(np.array([axis]), halves.at(WEIGHTS))))
        assert half == pytest.approx(scores)


@pytest.mark.parametrize("temperature", [0.0, 0.4])
def test_objectives_are_those_of_repeated_graphs(temperature: float) -> None:
    weighted, repeated, plain = candidates(), candidates(repeats=True), candidates(counts=None)
    for question in (
        lambda source: source.expected_error(GAINS, temperature),
        lambda source: source.expected_bleu(temperature),
        lambda source: source.softmax(GAINS, 0.1, temperature, np.arange(source.n_sentences)),
    ):
        check_alike(question(weighted), question(repeated))
        assert question(plain)(WEIGHTS)[0] != pytest.approx(question(repeated)(WEIGHTS)[0])


def test_entropy_is_a_mean_over_small_weights() -> None:
    weighted, scaled = candidates(), candidates(counts=COUNTS / 16)
    check_alike(scaled.expected_bleu(0.4), weighted.expected_bleu(0.4))


@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("mert", {"restarts": 0, "polish": 0, "graph_search": "graphs"}),
        ("mert", {"restarts": 0, "polish": 0}),
        ("risk", {"temperature": 0.1}),
        ("xbleu", {"temperature": 0.1}),
        ("linear-bleu", {}),
        ("softmax", {}),
    ],
)
def test_results_are_those_of_repeated_graphs(name: str, options: dict[str, Any]) -> None:
    def learn(problem: Problem) -> tuple[NDArray[np.float64], float]:
        tuner, rng = algorithm(name), np.random.default_rng(0)
        start = np.array([0.4, 0.5, 0.1])
        solution = tuner.optimize(problem, start, rng, tuner.options(**options), no_progress)
        return solution.weights, solution.score

    weights, score = learn(make_problem(name))
    expected, expected_score = learn(make_problem(name, repeats=True))
    np.testing.assert_allclose(weights, expected, rtol=2e-4, atol=2e-5)
    assert score == pytest.approx(expected_score, abs=1e-12)


def test_lists_of_graphs_have_the_weights_of_their_sentences() -> None:
    source = candidates()
    for lists in (
        source.best_lists(WEIGHTS, 5),
        source.hopes_and_fears(np.arange(3), lambda: WEIGHTS, 2, 5),
    ):
        assert lists.sentence_weights is not None
        assert lists.sentence_weights.tolist() == [2.0, 1.0, 3.0]


def test_a_mira_step_is_as_large_as_the_weight_allows() -> None:
    """A cap of weight times C, and the chosen translation as often in the background."""

    def visit(source: Candidates, cap: float) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        columns = np.zeros(3, dtype=np.int64), np.zeros(1, dtype=np.int64)
        state = MiraState(
            WEIGHTS.astype(np.float32), WEIGHTS.astype(np.float32), *columns,
            np.ones(9, dtype=np.float32), np.zeros(1),
        )  # fmt: skip
        wide = np.full(3, np.inf, dtype=np.float32)
        active = np.ones(3, dtype=np.bool_)
        settings = MiraSettings(np.float32(cap), np.float32(0.9), False, False, active, -wide, wide)
        hypotheses = GraphHypotheses(source, 2)
        decisions = hypotheses.visit(np.array([2]), settings, state)
        assert decisions.occasion[0]
        return state.weights, state.background, decisions.hope[0].statistics

    own, background, chosen = visit(make_problem("kbmira").candidates, 1e-4)
    plain = make_problem("kbmira", counts=None).candidates
    graphs = [graph for place, graph in enumerate(plain.graphs) if COUNTS[place]]  # type: ignore[attr-defined]
    expected, before, _ = visit(type(plain)(graphs), 3e-4)  # type: ignore[call-arg]
    assert own.tolist() == expected.tolist()
    np.testing.assert_allclose(background - before, 2 * chosen, rtol=1e-6)


def test_kbmira_scores_graphs_weighted() -> None:
    weighted, repeated = (make_problem("kbmira", repeats=twice).candidates for twice in (0, 1))
    assert weighted.score(WEIGHTS) == repeated.score(WEIGHTS)
    assert weighted.score(WEIGHTS) != make_problem("kbmira", counts=None).candidates.score(WEIGHTS)
