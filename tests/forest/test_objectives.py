"""Objectives on graphs against every derivation, and their gradients against differences."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from formats.graphs.hypergraph import Edge
from mosesplug.errors import DataError
from mosesplug.forest import Hypergraph
from mosesplug.forest.k_best import Derivations, k_best
from mosesplug.forest.ngrams.reference_ngrams import ReferenceNgramTree
from mosesplug.forest.objectives import (
    GraphObjective,
    ScoredGraph,
    entropy,
    risk,
    softmax_loss,
    xbleu,
)
from mosesplug.forest.pruning import prune_to_edges
from mosesplug.metrics.linear_bleu import LinearBleu
from tests.forest.every_derivation import WORDS, every, made, random_graph
from tests.forest.ngrams.test_split import ngrams

WEIGHTS = np.array([0.9, -0.7, 0.31])
SCALE = 1.3
GAINS = LinearBleu(-0.02, np.array([0.05, 0.07, 0.11, 0.2]))


class Corpus:
    """Two graphs, each with two references, one of them near the best translation."""

    def __init__(self, seed: int, phrase_based: bool) -> None:
        rng = np.random.default_rng(seed)
        self.graphs = [random_graph(rng, phrase_based=phrase_based) for _ in range(2)]
        self.every = [every(graph) for graph in self.graphs]
        self.references: list[list[list[bytes]]] = []
        for graph, all_of_them in zip(self.graphs, self.every, strict=True):
            near = graph.translation(np.array(all_of_them.edges[rng.integers(8)]))
            far = [WORDS[k] for k in rng.integers(0, len(WORDS), len(near) + 1)]
            self.references.append([near[1:], far])
        self.scored = [
            ScoredGraph.of(graph, ReferenceNgramTree.of(references))
            for graph, references in zip(self.graphs, self.references, strict=True)
        ]

    def probabilities(self, sentence: int) -> NDArray[np.float64]:
        scores = self.graphs[sentence].edge_scores(WEIGHTS)
        return self.every[sentence].probabilities(SCALE * scores)

    def translations(self, sentence: int) -> list[list[bytes]]:
        graph = self.graphs[sentence]
        return [graph.translation(np.array(edges)) for edges in self.every[sentence].edges]


@pytest.fixture(params=[(seed, kind) for seed in range(3) for kind in (True, False)])
def corpus(request: pytest.FixtureRequest) -> Corpus:
    return Corpus(*request.param)


def check_gradient(objective: Callable[[NDArray[np.float64], float], GraphObjective]) -> None:
    """Central differences of the value in each weight and in the scale."""
    found = objective(WEIGHTS, SCALE)
    step = 1e-5
    for column in range(len(WEIGHTS)):
        change = step * np.eye(len(WEIGHTS))[column]
        above, below = objective(WEIGHTS + change, SCALE), objective(WEIGHTS - change, SCALE)
        slope = (above.value - below.value) / (2 * step)
        assert found.gradient[column] == pytest.approx(slope, rel=1e-6, abs=1e-8)
    above, below = objective(WEIGHTS, SCALE + step), objective(WEIGHTS, SCALE - step)
    slope = (above.value - below.value) / (2 * step)
    assert found.scale_gradient == pytest.approx(slope, rel=1e-6, abs=1e-8)


def test_softmax_loss_of_listed_oracles(corpus: Corpus) -> None:
    oracles = [k_best(graph, graph.edge_scores(-WEIGHTS), 3) for graph in corpus.graphs]
    expected = 0.0
    for sentence, listed in enumerate(oracles):
        good = {tuple(listed.derivation(number).tolist()) for number in range(3)}
        chosen = np.array([tuple(edges) in good for edges in corpus.every[sentence].edges])
        assert chosen.sum() == 3
        expected -= math.log(corpus.probabilities(sentence)[chosen].sum()) / 2
    found = softmax_loss(corpus.graphs, oracles, WEIGHTS, scale=SCALE)
    assert found.value == pytest.approx(expected)
    check_gradient(lambda w, scale: softmax_loss(corpus.graphs, oracles, w, scale=scale))


def test_softmax_loss_of_a_graph_of_oracles(corpus: Corpus) -> None:
    against = -WEIGHTS.astype(np.float32)
    oracles = [prune_to_edges(graph, against, 4) for graph in corpus.graphs]
    expected = 0.0
    for graph, oracle in zip(corpus.graphs, oracles, strict=True):
        sums = [
            np.exp(SCALE * (every(g).uses @ g.edge_scores(WEIGHTS))).sum() for g in (graph, oracle)
        ]
        expected += math.log(sums[0] / sums[1]) / 2
    found = softmax_loss(corpus.graphs, oracles, WEIGHTS, scale=SCALE)
    assert found.value == pytest.approx(expected)
    assert found.value > 0.0
    check_gradient(lambda w, scale: softmax_loss(corpus.graphs, oracles, w, scale=scale))


def test_risk(corpus: Corpus) -> None:
    expected = 0.0
    for sentence, references in enumerate(corpus.references):
        known = set().union(*(ngrams(reference, 4) for reference in references))
        errors = []
        for words in corpus.translations(sentence):
            gain = GAINS.word * len(words)
            for ngram, count in ngrams(words, 4).items():
                gain += GAINS.ngrams[len(ngram) - 1] * count * (ngram in known)
            errors.append(-gain)
        expected += corpus.probabilities(sentence) @ np.array(errors) / 2
    assert risk(corpus.scored, WEIGHTS, GAINS, scale=SCALE).value == pytest.approx(expected)
    check_gradient(lambda w, scale: risk(corpus.scored, w, GAINS, scale=scale))


def test_xbleu(corpus: Corpus) -> None:
    statistics = np.zeros(9)
    for sentence, references in enumerate(corpus.references):
        counted = [ngrams(words, 4) for words in corpus.translations(sentence)]
        limits: Counter[tuple[bytes, ...]] = Counter()
        for reference in references:
            limits |= ngrams(reference, 4)
        probabilities = corpus.probabilities(sentence)
        for ngram in set().union(*counted):
            mean = probabilities @ np.array([counts[ngram] for counts in counted])
            statistics[2 * len(ngram) - 2] += min(mean, limits[ngram])
            statistics[2 * len(ngram) - 1] += mean
        statistics[8] += min(map(len, references))
    precisions = statistics[0:8:2] / statistics[1:8:2]
    expected = math.exp(np.log(precisions).mean() + min(0.0, 1 - statistics[8] / statistics[1]))
    found = xbleu(corpus.scored, WEIGHTS, scale=SCALE)
    assert 0.0 < found.value < 1.0
    assert found.value == pytest.approx(expected, rel=1e-4)
    check_gradient(lambda w, scale: xbleu(corpus.scored, w, scale=scale))


def test_xbleu_of_sharp_posteriors_is_bleu_of_the_best() -> None:
    """Without clipped n-grams the limit of a large scale is plain BLEU."""
    from sacrebleu.metrics import BLEU

    edges = [
        Edge((b"the", b"cat", b"sat", b"on", b"a", b"mat"), 1, (1.0, 0.0, 0.0)),
        Edge((b"dogs",), 1, (0.0, 0.0, 0.0)),
    ]
    reference = b"one cat sat on a mat too".split()
    scored = ScoredGraph.of(made([edges]), ReferenceNgramTree.of([reference]))
    found = xbleu([scored], WEIGHTS, scale=1e3)
    bleu = BLEU(tokenize="none", smooth_method="none", force=True)
    score = bleu.corpus_score(["the cat sat on a mat"], [[b" ".join(reference).decode()]]).score
    assert found.value == pytest.approx(score / 100)


def test_xbleu_without_matches_is_zero() -> None:
    graph = made([[Edge((b"a", b"b"), 1, (1.0, 0.0, 0.0)), Edge((b"c",), 1, (0.0, 1.0, 0.0))]])
    scored = ScoredGraph.of(graph, ReferenceNgramTree.of([[b"a", b"b", b"c", b"d"]]))
    found = xbleu([scored], WEIGHTS)
    assert found.value == found.scale_gradient == 0.0
    assert not found.gradient.any()
    assert xbleu([], WEIGHTS).value == 0.0


def test_entropy(corpus: Corpus) -> None:
    expected = 0.0
    for sentence in range(2):
        probabilities = corpus.probabilities(sentence)
        expected -= probabilities @ np.log(probabilities) / 2
    assert entropy(corpus.graphs, WEIGHTS, scale=SCALE).value == pytest.approx(expected)
    check_gradient(lambda w, scale: entropy(corpus.graphs, w, scale=scale))


def test_values_do_not_depend_on_threads() -> None:
    corpora = [Corpus(seed, seed % 2 == 0) for seed in range(4)]
    graphs = [graph for corpus in corpora for graph in corpus.graphs]
    scored = [graph for corpus in corpora for graph in corpus.scored]
    oracles = [k_best(graph, graph.edge_scores(-WEIGHTS), 2) for graph in graphs]
    for objective in (
        lambda threads: softmax_loss(graphs, oracles, WEIGHTS, threads=threads),
        lambda threads: risk(scored, WEIGHTS, GAINS, threads=threads),
        lambda threads: xbleu(scored, WEIGHTS, threads=threads),
        lambda threads: entropy(graphs, WEIGHTS, threads=threads),
    ):
        one, three = objective(1), objective(3)
        assert one.value == three.value
        assert one.gradient.tobytes() == three.gradient.tobytes()
        assert one.scale_gradient == three.scale_gradient


def test_names_the_sentence_that_cannot_be_used() -> None:
    graph = made([[Edge((b"a",), 1, (1.0,))]])
    empty = Hypergraph(**{**vars(graph), "edge_offsets": np.array([0, 1, 1])})
    with pytest.raises(DataError, match="sentence 1: no derivation"):
        entropy([graph, empty], WEIGHTS[:1])
    none = Derivations(np.zeros(0), np.zeros(1, dtype=np.int64), np.zeros(0, dtype=np.int64))
    with pytest.raises(DataError, match="sentence 0: there is no oracle"):
        softmax_loss([graph], [none], WEIGHTS[:1])
    with pytest.raises(ValueError, match="1 search graphs but 0 oracles"):
        softmax_loss([graph], [], WEIGHTS[:1])
