"""Derivations as optimizers see them, against lists of every derivation of small graphs."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise, product

import numpy as np
import pytest
from numpy.typing import NDArray

from mosesplug.candidates import Objective
from mosesplug.features import FeatureSpace
from mosesplug.forest import Hypergraph
from mosesplug.forest.derivations import GraphDerivations, choose_oracles
from mosesplug.forest.ngrams.split import SplitGraph
from mosesplug.metrics import metric
from mosesplug.metrics.bleu.linear import LinearBleu
from mosesplug.optimizers.batch.expected import objectives
from mosesplug.optimizers.lists.shards import WholeLists
from mosesplug.tuning_set import SparseRows, TuningSet
from tests.forest.every_derivation import WORDS, Every, every, random_graph

WEIGHTS = np.array([0.9, -0.7, 0.31])
GAINS = LinearBleu(-0.02, np.array([0.05, 0.07, 0.11, 0.2]))
BLEU = metric("BLEU")
SPACE = FeatureSpace((("A", 1), ("B", 1)), ("C",))


def derivations_of(seed: int, phrase_based: bool) -> GraphDerivations:
    """Two sentences, each with two references; the third feature is sparse."""
    rng = np.random.default_rng(seed)
    graphs = [random_graph(rng, phrase_based=phrase_based) for _ in range(2)]
    references = []
    for graph in graphs:
        near = graph.translation(np.array(every(graph).edges[rng.integers(8)]))
        far = [WORDS[k] for k in rng.integers(0, len(WORDS), len(near) + 1)]
        references.append([near[1:], far])
    lines = [[b" ".join(each[k]) for each in references] for k in range(2)]
    return GraphDerivations.of(
        [[each] for each in graphs], references, SPACE, BLEU, BLEU.prepare(lines)
    )


@pytest.fixture(params=[(seed, kind) for seed in range(2) for kind in (True, False)])
def derivations(request: pytest.FixtureRequest) -> GraphDerivations:
    return derivations_of(*request.param)


class Expanded:
    """Lists of all derivations of the split graphs, which are those of the graphs."""

    def __init__(self, derivations: GraphDerivations) -> None:
        features, gains, costs, oracles, sizes = [], [], [], [], [0]
        for graph, scored in zip(derivations.graphs, derivations._scored, strict=True):
            uses = uses_of(scored.split)
            edge_gains = scored.gains(GAINS)
            own = uses @ edge_gains
            kept, best = choose_oracles(scored, edge_gains, 0.1)
            # An edge is kept if a derivation that uses it is good enough.
            through = np.where(uses > 0, own[:, None], -np.inf).max(axis=0)
            assert best == pytest.approx(own.max())
            assert kept.tolist() == (through >= own.max() - 0.1 - 1e-9).tolist()
            features.append(uses @ edge_features(graph)[scored.split.origins])
            gains.append(own)
            oracles.append(~(uses[:, ~kept] > 0).any(axis=1))
            costs.append(np.where(oracles[-1], 0.0, 30.0 * (own.max() - own)))
            sizes.append(len(own))
        rows = np.concatenate(features).astype(np.float32)
        self.offsets = np.cumsum(sizes)
        n = len(rows)
        sparse = SparseRows(np.arange(n + 1), np.zeros(n, np.int32), rows[:, 2].copy())
        nothing = np.zeros((n, 9), np.int32)
        lists = TuningSet(
            SPACE, np.arange(2), self.offsets, rows[:, :2], sparse, nothing, nothing[:, 0]
        )
        self.lists = WholeLists(lists)
        self.model = rows
        self.gains, self.costs = np.concatenate(gains), np.concatenate(costs)
        self.oracles = np.concatenate(oracles)


def uses_of(split: SplitGraph) -> NDArray[np.float64]:
    """How often each derivation of a split graph uses each edge, float64 ``[n, n_edges]``."""
    return as_graph(split).uses


def split_derivations(split: SplitGraph) -> list[list[int]]:
    """The edges of each derivation of a split graph, in the same order."""
    return as_graph(split).edges


def as_graph(split: SplitGraph) -> Every:
    names = ("edge_offsets", "tail_offsets", "tails")
    nothing = dict.fromkeys(field.name for field in fields(Hypergraph))
    return every(Hypergraph(**{**nothing, **{name: getattr(split, name) for name in names}}))  # type: ignore[arg-type]


def edge_features(graph: Hypergraph) -> NDArray[np.float64]:
    return np.array([graph.features(np.array([edge]), 3) for edge in range(graph.n_edges)])


def check_alike(found: Objective, expected: Objective) -> None:
    """The same values, and gradients, at some weights."""
    for factor in (0.0, 1.0, 3.0):
        (value, gradient), (other, slopes) = found(factor * WEIGHTS), expected(factor * WEIGHTS)
        assert value == pytest.approx(other, rel=1e-6)
        assert gradient == pytest.approx(slopes, rel=1e-5, abs=1e-7)


@pytest.mark.parametrize("temperature", [0.0, 0.4])
def test_risk_is_that_of_all_derivations(derivations: GraphDerivations, temperature: float) -> None:
    expanded = Expanded(derivations)
    listed = objectives.risk(expanded.lists, -expanded.gains, temperature)
    check_alike(derivations.expected_error(GAINS.scale(0.5), temperature), listed)


@pytest.mark.parametrize("margin", [0.0, 30.0])
def test_softmax_is_that_of_all_derivations(derivations: GraphDerivations, margin: float) -> None:
    expanded = Expanded(derivations)
    assert 2 <= expanded.oracles.sum() < len(expanded.oracles)
    costs = expanded.costs if margin else None
    listed = objectives.softmax(expanded.lists, expanded.oracles, costs)
    check_alike(derivations.softmax(GAINS, 0.1, margin, np.arange(2)), listed)


def test_softmax_of_single_oracles_wants_a_best_derivation(
    derivations: GraphDerivations,
) -> None:
    expanded, choices = Expanded(derivations), []
    scores = expanded.model @ WEIGHTS
    for first, last in pairwise(expanded.offsets):
        own, gains = scores[first:last], expanded.gains[first:last]
        losses = np.logaddexp.reduce(own) - own
        choices.append(losses[gains >= gains.max() - 1e-12])
    value = derivations.softmax(GAINS, None, 0.0, np.arange(2))(WEIGHTS)[0]
    means = [np.mean(losses) for losses in product(*choices)]
    assert np.abs(np.array(means) - value).min() < 1e-9


@pytest.mark.parametrize("temperature", [0.0, 0.4])
def test_xbleu_with_entropy(derivations: GraphDerivations, temperature: float) -> None:
    objective = derivations.expected_bleu(temperature)
    plain, entropy = (
        derivations.expected_bleu(0.0)(WEIGHTS)[0],
        derivations.expected_error(LinearBleu(0.0, 0 * GAINS.ngrams), 1.0),
    )
    assert objective(WEIGHTS)[0] == pytest.approx(plain + temperature * entropy(WEIGHTS)[0])
    check_gradient(objective)
    assert derivations.matches().all()


def check_gradient(objective: Objective) -> None:
    _, gradient = objective(WEIGHTS)
    for column, change in enumerate(1e-5 * np.eye(3)):
        slope = (objective(WEIGHTS + change)[0] - objective(WEIGHTS - change)[0]) / 2e-5
        assert gradient[column] == pytest.approx(slope, rel=1e-5, abs=1e-8)


def merits(
    derivations: GraphDerivations, place: int, gain: float
) -> dict[tuple[bytes, ...], float]:
    """The maximum of model score plus ``gain`` times BLEU+1, by translation."""
    graph = derivations.graphs[place]
    texts = [graph.translation(np.array(edges)) for edges in every(graph).edges]
    spelled = [b" ".join(text) for text in texts]
    ends = np.cumsum([len(text) for text in spelled])
    lines = [
        [b" ".join(words) for words in each] for each in zip(*derivations.references, strict=True)
    ]
    statistics = BLEU.statistics(
        BLEU.prepare(lines),
        np.full(len(texts), place),
        np.frombuffer(b"".join(spelled), np.uint8),
        np.concatenate([[0], ends[:-1]]),
        ends,
    )
    scores = every(graph).uses @ graph.edge_scores(WEIGHTS)
    values = scores + gain * BLEU.sentence_scores(statistics.astype(np.float64), "lin-och")
    found: dict[tuple[bytes, ...], float] = {}
    for text, value in zip(texts, values, strict=True):
        found[tuple(text)] = max(value, found.get(tuple(text), -np.inf))
    return found


def test_hopes_and_fears_are_the_best_of_all_derivations(derivations: GraphDerivations) -> None:
    lists = derivations.hopes_and_fears(np.arange(2), lambda: WEIGHTS, 1, 1000)
    assert lists.sentence_ids.tolist() == [0, 1]
    scores = lists.model_scores(WEIGHTS)
    gains = BLEU.sentence_scores(lists.stats.astype(np.float64), "lin-och")
    for place in range(2):
        own = slice(lists.offsets[place], lists.offsets[place + 1])
        assert 1 <= own.stop - own.start <= 3
        assert (
            scores[own][0]
            == scores[own].max()
            == pytest.approx(max(merits(derivations, place, 0.0).values()))
        )
        for gain in (1.0, -1.0):
            best = max(merits(derivations, place, gain).values())
            assert (scores + gain * gains)[own].max() == pytest.approx(best)


def with_a_reference(seed: int, phrase_based: bool) -> GraphDerivations:
    """The first sentence's graph yields a reference; the second one's yields none."""
    found = derivations_of(seed, phrase_based)
    graph = found.graphs[0]
    text = graph.translation(np.array(every(graph).edges[seed]))
    first, second = found.references
    return replace(found, references=([*first, text], [[b"x", *words] for words in second]))


@pytest.fixture(params=[(seed, kind) for seed in range(2) for kind in (True, False)])
def reachable(request: pytest.FixtureRequest) -> GraphDerivations:
    return with_a_reference(*request.param)


def yields_reference(derivations: GraphDerivations, place: int) -> NDArray[np.bool_]:
    """Whether each derivation of a graph yields a reference."""
    graph, texts = derivations.graphs[place], derivations.references[place]
    every_edges = every(graph).edges
    return np.array([graph.translation(np.array(edges)) in texts for edges in every_edges])


@pytest.mark.parametrize("margin", [0.0, 30.0])
@pytest.mark.parametrize("sentences", [[0], [0, 1]])
def test_softmax_of_derivations_of_references(
    reachable: GraphDerivations, margin: float, sentences: list[int]
) -> None:
    expanded, losses = Expanded(reachable), []
    for place in sentences:
        own = slice(expanded.offsets[place], expanded.offsets[place + 1])
        scores, gains = expanded.model[own] @ WEIGHTS, expanded.gains[own]
        split = reachable._scored[place].split
        graph = reachable.graphs[place]
        texts = [
            graph.translation(split.origins[np.array(edges)]) for edges in split_derivations(split)
        ]
        good = np.array([text in reachable.references[place] for text in texts])
        if place:
            assert not good.any()
            good = expanded.oracles[own]
        costly = scores + np.where(good, 0.0, margin * (gains.max() - gains))
        losses.append(np.logaddexp.reduce(costly) - np.logaddexp.reduce(scores[good]))
    objective = reachable.softmax(GAINS, 0.1, margin, np.array(sentences), bold=True)
    assert objective(WEIGHTS)[0] == pytest.approx(np.mean(losses))
    check_gradient(objective)
    assert reachable.choose_sentences("bold")[0].tolist() == [0]


def test_the_best_derivation_of_a_reference_is_the_oracle(reachable: GraphDerivations) -> None:
    for sentences, place in (([0, 1], 0), ([1, 0], 1), ([0], 0)):
        lists = reachable.hopes_and_fears(np.array(sentences), lambda: WEIGHTS, 1, 1000, bold=True)
        plain = reachable.hopes_and_fears(np.array(sentences), lambda: WEIGHTS, 1, 1000)
        assert lists.oracles is not None
        assert plain.oracles is None
        scores = lists.model_scores(WEIGHTS)
        graph = reachable.graphs[0]
        totals = every(graph).uses @ graph.edge_scores(WEIGHTS)
        best = totals[yields_reference(reachable, 0)].max()
        assert scores[lists.oracles[place]] == pytest.approx(best)
        assert lists.offsets[place] <= lists.oracles[place] < lists.offsets[place + 1]
        assert [row for at, row in enumerate(lists.oracles) if at != place] == [-1] * (
            len(sentences) - 1
        )
        # The 1-best stays the first, and nothing is lost.
        assert scores[lists.offsets[:-1]] == pytest.approx(
            plain.model_scores(WEIGHTS)[plain.offsets[:-1]]
        )
        assert (np.diff(lists.offsets) >= np.diff(plain.offsets)).all()


def test_best_lists_are_distinct_and_sorted(derivations: GraphDerivations) -> None:
    lists = derivations.best_lists(WEIGHTS, 4)
    scores = lists.model_scores(WEIGHTS)
    for place in range(2):
        own = slice(lists.offsets[place], lists.offsets[place + 1])
        expected = sorted(merits(derivations, place, 0.0).values(), reverse=True)[:4]
        assert scores[own] == pytest.approx(np.array(expected))
    few = derivations.hopes_and_fears(np.array([1]), lambda: WEIGHTS, 2, 2)
    assert few.n_sentences == 1
    assert few.n_hyps >= 2


def test_lists_have_the_statistics_of_their_translations(derivations: GraphDerivations) -> None:
    lists = derivations.best_lists(WEIGHTS, 1)
    assert lists.stats.sum(axis=0).tolist() == derivations.first_best(WEIGHTS).tolist()
    assert (lists.stats[:, 1] == lists.lengths).all()
